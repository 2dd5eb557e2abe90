package kubernetes

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// The plain manifests are what the chart makes of its defaults, so that neither
// can be right alone.
func TestTheChartMakesThePlainManifests(t *testing.T) {
	all := standard.must(t)
	deployment := one[*apps.Deployment](t, all.objects)
	// `kubectl apply` knows nothing of a changed ConfigMap: that is the one thing
	// that the chart has and they have not.
	annotations := deployment.Spec.Template.Annotations
	if len(annotations) != 1 || annotations["checksum/config"] == "" {
		t.Errorf("annotations of pods %v, want checksum/config alone", annotations)
	}
	deployment.Spec.Template.Annotations = nil
	same(t, all.objects, manifests(t, ""))
}

func TestTheChartsTestIsThePlainCheck(t *testing.T) {
	all := standard.must(t)
	pod := one[*core.Pod](t, all.tests)
	for name := range pod.Annotations {
		if !strings.HasPrefix(name, "helm.sh/hook") {
			t.Errorf("annotation %s", name)
		}
	}
	pod.Annotations = nil
	same(t, all.tests, manifests(t, "check"))
}

func TestTheChartMakesThePlainServiceMonitor(t *testing.T) {
	without := identities(standard.must(t).objects)
	var added []object
	for _, o := range (release{name: "cdcpub", values: "serviceMonitor: {enabled: true}"}).must(t).objects {
		if _, there := without[identity(o)]; !there {
			added = append(added, o)
		}
	}
	same(t, added, manifests(t, "prometheus-operator"))
}

func identity(o object) string { return o.Kind + " " + o.typed.GetName() }

func identities(all []object) map[string]object {
	byIdentity := map[string]object{}
	for _, o := range all {
		byIdentity[identity(o)] = o
	}
	return byIdentity
}

func same(t *testing.T, chart, plain []object) {
	t.Helper()
	fromChart, fromFiles := identities(chart), identities(plain)
	if len(fromChart) != len(chart) || len(fromFiles) != len(plain) {
		t.Error("an object is there twice")
	}
	if got, want := slices.Sorted(maps.Keys(fromChart)), slices.Sorted(maps.Keys(fromFiles)); !slices.Equal(got, want) {
		t.Errorf("the chart makes %q, the files have %q", got, want)
	}
	for name, o := range fromChart {
		if file, ok := fromFiles[name]; ok && !equality.Semantic.DeepEqual(o.typed, file.typed) {
			t.Errorf("%s: chart (-) and file (+) differ:\n%s", name, cmp.Diff(o.typed, file.typed))
		}
	}
}

// The text as well: comments are for whoever opens the ConfigMap in the cluster.
func TestValuesAndConfigMapHaveTheSameText(t *testing.T) {
	file := one[*core.ConfigMap](t, manifests(t, ""))
	made := one[*core.ConfigMap](t, standard.must(t).objects)
	if diff := cmp.Diff(made.Data, file.Data); diff != "" {
		t.Error(diff)
	}
}

func TestAnotherReleaseSharesNothing(t *testing.T) {
	first := identities(standard.must(t).objects)
	other := (release{name: "billing", values: "serviceMonitor: {enabled: true}"}).must(t)
	for _, o := range append(other.objects, other.tests...) {
		if _, taken := first[identity(o)]; taken {
			t.Errorf("%s is of both releases", o)
		}
		if name := o.typed.GetName(); name != "billing-cdcpub" && name != "billing-cdcpub-check" {
			t.Errorf("%s: name %q", o, name)
		}
		if instance := o.typed.GetLabels()["app.kubernetes.io/instance"]; instance != "billing" {
			t.Errorf("%s: instance %q", o, instance)
		}
	}
	for _, volume := range one[*apps.Deployment](t, other.objects).Spec.Template.Spec.Volumes {
		if volume.ConfigMap != nil && volume.ConfigMap.Name != "billing-cdcpub" || volume.Secret != nil && volume.Secret.SecretName != "billing-cdcpub" {
			t.Errorf("volume %+v", volume)
		}
	}
}

// A process reads its configuration once: pods must be made anew with it, and
// only with it.
func TestAChangedConfigurationMakesOtherPods(t *testing.T) {
	template := func(values string) core.PodTemplateSpec {
		return one[*apps.Deployment](t, release{name: "cdcpub", values: values}.must(t).objects).Spec.Template
	}
	if equality.Semantic.DeepEqual(template(""), template(configured("log: {level: debug}\n"))) {
		t.Error("another configuration makes the same pods")
	}
	if !equality.Semantic.DeepEqual(template(""), template("replicas: 3")) {
		t.Errorf("another number of pods makes other pods:\n%s", cmp.Diff(template(""), template("replicas: 3")))
	}
}

// configured are values whose config is the standard one and more.
func configured(more string) string {
	text, err := os.ReadFile(filepath.Join(chartDir, "values.yaml"))
	if err != nil {
		panic(err)
	}
	_, rest, found := strings.Cut(string(text), "\nconfig: |\n")
	if !found {
		panic("values.yaml has no config")
	}
	var config strings.Builder
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "  ") {
			break
		}
		config.WriteString(strings.TrimPrefix(line, "  "))
	}
	return fmt.Sprintf("config: %q\n", config.String()+more)
}
