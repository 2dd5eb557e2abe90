package kubernetes

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
)

// What whoever has typed `helm install` reads.
func TestNotesNameWhatIsThere(t *testing.T) {
	all := release{name: "billing", values: "secretName: from-vault"}.must(t)
	for _, words := range []string{
		"image.repository is still the example", "config is still the example",
		"secret generic from-vault --from-file=postgres-password=",
		"helm -n events test billing --logs",
		"-l app.kubernetes.io/instance=billing,app.kubernetes.io/component=publisher",
		"kubectl -n events exec deploy/billing-cdcpub -- /cdcpub slot status",
	} {
		if !strings.Contains(all.notes, words) {
			t.Errorf("the notes do not say %q:\n%s", words, all.notes)
		}
	}
	if name := one[*apps.Deployment](t, all.objects).Name; name != "billing-cdcpub" {
		t.Errorf("there is no deployment billing-cdcpub but %s", name)
	}
	own := release{name: "cdcpub", values: "image: {repository: r.internal/cdcpub}\n" + listening("postgres: {url: 'host=shop'}")}.must(t)
	if strings.Contains(own.notes, "example") {
		t.Errorf("the notes find an example:\n%s", own.notes)
	}
	if none := (release{name: "cdcpub", values: "replicas: 0"}).must(t); !strings.Contains(none.notes, "nothing is published") {
		t.Errorf("the notes do not say that nothing runs:\n%s", none.notes)
	}
}

// inPod finds commands that are run in the image, by kubectl exec.
var inPod = regexp.MustCompile(`-- /cdcpub ([a-z][^\n]*)`)

func TestCommandsInPodsParse(t *testing.T) {
	cdcpub := build(t)
	tried := []string{}
	for _, text := range []string{
		read(t, "docs/kubernetes.md"), read(t, "deploy/kubernetes/README.md"), read(t, "deploy/helm/cdcpub/README.md"), standard.must(t).notes,
	} {
		for _, found := range inPod.FindAllStringSubmatch(text, -1) {
			if slices.Contains(tried, found[1]) {
				continue
			}
			tried = append(tried, found[1])
			args := append(strings.Fields(found[1]), "--help")
			if out, err := exec.CommandContext(t.Context(), cdcpub, args...).CombinedOutput(); err != nil || !bytes.HasPrefix(out, []byte("Usage: cdcpub ")) {
				t.Errorf("%q: %v\n%s", found[1], err, out)
			}
		}
	}
	// Those of the pods themselves.
	for name, pod := range pods(t) {
		args := append(slices.Clone(pod.Containers[0].Args), "--help")
		if out, err := exec.CommandContext(t.Context(), cdcpub, args...).CombinedOutput(); err != nil || !bytes.HasPrefix(out, []byte("Usage: cdcpub "+args[0])) {
			t.Errorf("%s: %q: %v\n%s", name, args, err, out)
		}
	}
	if len(tried) < 2 {
		t.Errorf("only %q were found", tried)
	}
}

// The README makes a PrometheusRule of the rules with the shell: what comes out is
// one, and has every rule.
func TestTheCommandForRulesMakesAPrometheusRule(t *testing.T) {
	var command string
	for line := range strings.Lines(read(t, "deploy/kubernetes/README.md")) {
		if before, _, found := strings.Cut(line, " | kubectl apply -f -"); found && strings.Contains(before, "kind: PrometheusRule") {
			command = before
		}
	}
	if command == "" {
		t.Fatal("README.md has no command that makes a PrometheusRule")
	}
	shell := exec.CommandContext(t.Context(), "sh", "-c", command)
	shell.Dir = repository
	out, err := shell.Output()
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	o, err := decode("README.md", out)
	if err != nil {
		t.Fatal(err)
	}
	rules := 0
	for _, group := range o.typed.(*monitoring.PrometheusRule).Spec.Groups {
		rules += len(group.Rules)
	}
	file := read(t, filepath.Join("deploy", "prometheus", "cdcpub.rules.yml"))
	if want := strings.Count(file, "- alert: ") + strings.Count(file, "- record: "); rules == 0 || rules != want {
		t.Errorf("%d rules, the file has %d", rules, want)
	}
}
