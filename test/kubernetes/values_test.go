package kubernetes

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What `helm lint --strict` says.
func TestHelmLintHasNothingToSay(t *testing.T) {
	for _, message := range lint.All(chartDir, nil, "events", true).Messages {
		// An icon is for catalogs.
		if message.Severity > support.InfoSev {
			t.Error(message)
		}
	}
}

// Values that cannot work are refused with the words that lead to the cure,
// before anything is installed.
func TestValuesThatCannotWorkAreRefused(t *testing.T) {
	for _, c := range []struct{ what, values, says string }{
		{"a misspelt value", "replica: 3", "replica"},
		{"a misspelt part of one", "networkPolicy: {egres: []}", "egres"},
		{"a wrong type", "replicas: two", "replicas"},
		{"a moving tag", "image: {tag: latest}", "tag"},
		{"a configuration that is no text", "config: {postgres: {}}", "config"},
		{"no configuration", "config: ''", "config"},
		{"a configuration that is no YAML", "config: 'a: [b'", "config is no YAML"},
		{"a loopback address", "config: 'http: {listen: \"127.0.0.1:9477\"}'", "set it to 0.0.0.0:9477"},
		{"no address, which is loopback", "config: 'on_stop: stay'", "set it to 0.0.0.0:9477"},
		{"a loopback address by name", "config: 'http: {listen: localhost:9477}'", "the probes cannot reach"},
		{"a loopback address of IPv6", "config: 'http: {listen: \"[::1]:9477\"}'", "the probes cannot reach"},
		{"another port", "config: 'http: {listen: 0.0.0.0:8080}'", "port 9477"},
		{"no HTTP", "config: 'http: {listen: \"off\"}'", "port 9477"},
		{"an end that Kubernetes undoes", listening("on_stop: exit"), "on_stop is exit"},
		{"a shutdown that is cut off", listening("shutdown_timeout: 30s"), "must be above shutdown_timeout of config, which is 30s"},
		{"a longer one", listening("shutdown_timeout: 1m30s"), "which is 90s"},
		{"a shorter grace", "terminationGracePeriodSeconds: 10", "must be above shutdown_timeout of config, which is 10s"},
		{"a password of Kafka", listening("kafka: {sasl: {password: x}}"), "kafka.sasl.password_file"},
		{"a secret of OAuth", listening("kafka: {sasl: {oauth: {client_secret: x}}}"), "oauth.client_secret_file"},
		{"a password in the URL", listening("postgres: {url: 'postgres://a:b@c/d'}"), "postgres.password_file"},
		{"a password in keyword form", listening("postgres: {url: 'host=c password=b'}"), "postgres.password_file"},
		{"an image without a name", "image: {repository: ''}", "repository"},
		{"a digest that is none", "image: {digest: abc}", "digest"},
	} {
		t.Run(c.what, func(t *testing.T) {
			all, err := release{name: "cdcpub", values: c.values}.render()
			if err == nil {
				t.Fatalf("accepted: %v", all.objects)
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q does not say %q", err, c.says)
			}
		})
	}
}

// listening are values of a configuration that passes but for what is added.
func listening(more string) string {
	return "config: |\n  http: {listen: 0.0.0.0:9477}\n  " + more + "\n"
}

func TestAnOlderKubernetesIsRefused(t *testing.T) {
	if _, err := (release{name: "cdcpub", cluster: "v1.26.9"}).render(); err == nil {
		t.Error("1.26 is accepted")
	}
	for _, version := range []string{"v1.27.0", "v1.34.2-eks-1234", "v1.37.0"} {
		if _, err := (release{name: "cdcpub", cluster: version}).render(); err != nil {
			t.Error(err)
		}
	}
}

// everything states each value of the chart.
const everything = `
image: {repository: r.internal/team/cdcpub, digest: "sha256:` + digest + `", pullPolicy: Always}
imagePullSecrets: [{name: pull}]
secretName: from-vault
replicas: 3
minReadySeconds: 60
terminationGracePeriodSeconds: 90
resources: {requests: {cpu: 1, memory: 1Gi}, limits: {memory: 1Gi}}
env: [{name: AWS_REGION, value: eu-central-1}]
serviceAccount: {annotations: {eks.amazonaws.com/role-arn: "arn:aws:iam::1:role/cdcpub"}}
podAnnotations: {a: b}
podLabels: {team: orders}
priorityClassName: high
nodeSelector: {disk: ssd}
tolerations: [{key: dedicated, operator: Exists}]
affinity: {podAffinity: {}}
networkPolicy:
  ingressFrom: [{ipBlock: {cidr: 10.0.0.0/8}}]
  egress: [{to: [{ipBlock: {cidr: 10.1.0.0/16}}], ports: [{port: 9093}]}]
serviceMonitor: {enabled: true, interval: 30s, labels: {release: kube-prometheus-stack}}
check: {types: [order, customer]}
fullnameOverride: outbox
`

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// The three lists of values are one.
func TestEveryValueIsExplainedCheckedAndTried(t *testing.T) {
	parse := func(text string) map[string]any {
		values, err := chartutil.ReadValues([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return values
	}
	names := func(of map[string]any, without ...string) []string {
		return slices.DeleteFunc(slices.Sorted(maps.Keys(of)), func(name string) bool { return slices.Contains(without, name) })
	}
	explained := parse(read(t, "deploy/helm/cdcpub/values.yaml"))
	schema := parse(read(t, "deploy/helm/cdcpub/values.schema.json"))["properties"].(map[string]any)
	// Helm adds global; config is tried elsewhere.
	if got, want := names(schema, "global"), names(explained); !slices.Equal(got, want) {
		t.Errorf("the schema has %q, values.yaml %q", got, want)
	}
	if got, want := names(parse(everything)), names(explained, "config"); !slices.Equal(got, want) {
		t.Errorf("tried are %q, values.yaml has %q", got, want)
	}
	for name, value := range explained {
		if group, ok := value.(map[string]any); ok && schema[name].(map[string]any)["additionalProperties"] == false {
			if got, want := names(schema[name].(map[string]any)["properties"].(map[string]any), "claims"), names(group); !slices.Equal(got, want) {
				t.Errorf("%s: the schema has %q, values.yaml %q", name, got, want)
			}
		}
	}
}

func TestEveryValueArrives(t *testing.T) {
	all := release{name: "r1", values: everything}.must(t)
	deployment := one[*apps.Deployment](t, all.objects)
	pod, check := deployment.Spec.Template.Spec, one[*core.Pod](t, all.tests)
	for what, ok := range map[string]bool{
		"name":        deployment.Name == "outbox" && check.Name == "outbox-check" && pod.Volumes[0].ConfigMap.Name == "outbox",
		"secret":      pod.Volumes[1].Secret.SecretName == "from-vault" && check.Spec.Volumes[1].Secret.SecretName == "from-vault",
		"image":       pod.Containers[0].Image == "r.internal/team/cdcpub@sha256:"+digest && check.Spec.Containers[0].Image == pod.Containers[0].Image,
		"pull":        pod.ImagePullSecrets[0].Name == "pull" && check.Spec.ImagePullSecrets[0].Name == "pull" && pod.Containers[0].ImagePullPolicy == core.PullAlways,
		"replicas":    *deployment.Spec.Replicas == 3 && deployment.Spec.MinReadySeconds == 60 && *pod.TerminationGracePeriodSeconds == 90,
		"resources":   pod.Containers[0].Resources.Requests.Cpu().Value() == 1 && check.Spec.Containers[0].Resources.Limits.Memory().Value() == 1<<30,
		"env":         pod.Containers[0].Env[0].Name == "AWS_REGION" && check.Spec.Containers[0].Env[0].Name == "AWS_REGION",
		"account":     len(one[*core.ServiceAccount](t, all.objects).Annotations) == 1,
		"annotations": deployment.Spec.Template.Annotations["a"] == "b" && deployment.Spec.Template.Annotations["checksum/config"] != "",
		"labels":      deployment.Spec.Template.Labels["team"] == "orders" && deployment.Spec.Template.Labels["app.kubernetes.io/component"] == "publisher",
		"placement":   pod.PriorityClassName == "high" && pod.NodeSelector["disk"] == "ssd" && len(pod.Tolerations) == 1 && pod.Affinity.PodAffinity != nil && len(check.Spec.Tolerations) == 1,
		"network":     one[*networking.NetworkPolicy](t, all.objects).Spec.Egress[0].To[0].IPBlock.CIDR == "10.1.0.0/16",
		"types":       strings.Join(check.Spec.Containers[0].Args[3:], " ") == "--types order,customer",
	} {
		if !ok {
			t.Errorf("%s does not arrive", what)
		}
	}
	if image := one[*apps.Deployment](t, release{name: "r1", values: "image: {tag: 9.8.7}"}.must(t).objects).Spec.Template.Spec.Containers[0].Image; image != "registry.example.com/cdcpub:9.8.7" {
		t.Errorf("image %s", image)
	}
	without := release{name: "r1", values: "networkPolicy: {enabled: false}"}.must(t)
	for _, o := range without.objects {
		if o.Kind == "NetworkPolicy" {
			t.Error("the policy is there although it is off")
		}
	}
	closed := one[*networking.NetworkPolicy](t, release{name: "r1", values: "networkPolicy: {ingressFrom: [], egress: []}"}.must(t).objects)
	if len(closed.Spec.Ingress)+len(closed.Spec.Egress) != 0 || len(closed.Spec.PolicyTypes) != 2 {
		t.Errorf("empty lists must let nothing through: %+v", closed.Spec)
	}
}

// --set-file config=cdcpub.yaml carries every byte: what cdcpub says of the
// ConfigMap is what it says of the file.
func TestTheWholeConfigurationSurvivesTheChart(t *testing.T) {
	const loopback, anywhere = "listen: 127.0.0.1:9477", "listen: 0.0.0.0:9477"
	example := read(t, "cdcpub.example.yaml")
	if !strings.Contains(example, loopback) {
		t.Fatalf("the example has no %q", loopback)
	}
	example = strings.Replace(example, loopback, anywhere, 1)
	made := one[*core.ConfigMap](t, release{name: "cdcpub", values: fmt.Sprintf("config: %q", example)}.must(t).objects).Data["cdcpub.yaml"]
	if made != example {
		t.Errorf("the ConfigMap has\n%s", made)
	}
	cdcpub := build(t)
	for what, config := range map[string]string{
		"the example":  made,
		"the standard": one[*core.ConfigMap](t, standard.must(t).objects).Data["cdcpub.yaml"],
	} {
		file := filepath.Join(t.TempDir(), "cdcpub.yaml")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), cdcpub, "config", "print", "-c", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", what, err, out)
		}
	}
}

// build makes the program that is in the image.
func build(t *testing.T) string {
	t.Helper()
	cdcpub := filepath.Join(t.TempDir(), "cdcpub")
	command := exec.CommandContext(t.Context(), "go", "build", "-tags", "release", "-o", cdcpub, "./cmd/cdcpub")
	command.Dir = repository
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return cdcpub
}
