package kubernetes

import (
	"errors"
	"fmt"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// object is one of a manifest.
type object struct {
	path string
	meta.TypeMeta
	// typed is the object in the type of its API.
	typed meta.Object
}

func (o object) String() string {
	return fmt.Sprintf("%s %s (%s)", o.Kind, o.typed.GetName(), o.path)
}

// hook is when Helm makes the object, "" for always.
func (o object) hook() string { return o.typed.GetAnnotations()["helm.sh/hook"] }

// types are the kinds that are deployed.
var types = map[meta.TypeMeta]func() meta.Object{
	{APIVersion: "v1", Kind: "ConfigMap"}:                            func() meta.Object { return &core.ConfigMap{} },
	{APIVersion: "v1", Kind: "Pod"}:                                  func() meta.Object { return &core.Pod{} },
	{APIVersion: "v1", Kind: "Service"}:                              func() meta.Object { return &core.Service{} },
	{APIVersion: "v1", Kind: "ServiceAccount"}:                       func() meta.Object { return &core.ServiceAccount{} },
	{APIVersion: "apps/v1", Kind: "Deployment"}:                      func() meta.Object { return &apps.Deployment{} },
	{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"}:      func() meta.Object { return &networking.NetworkPolicy{} },
	{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}:           func() meta.Object { return &policy.PodDisruptionBudget{} },
	{APIVersion: "monitoring.coreos.com/v1", Kind: "ServiceMonitor"}: func() meta.Object { return &monitoring.ServiceMonitor{} },
	{APIVersion: "monitoring.coreos.com/v1", Kind: "PrometheusRule"}: func() meta.Object { return &monitoring.PrometheusRule{} },
}

// decode reads one YAML document; it is nil if there is nothing but comments in
// it. Unknown fields, fields in another case, and fields that are stated twice
// are errors, as with `kubectl apply --validate=strict`.
func decode(path string, text []byte) (*object, error) {
	raw, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if string(raw) == "null" {
		return nil, nil
	}
	o := &object{path: path}
	if err := yaml.Unmarshal(raw, &o.TypeMeta); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	make, known := types[o.TypeMeta]
	if !known {
		return nil, fmt.Errorf("%s: %s %s is not among the kinds of this test", path, o.APIVersion, o.Kind)
	}
	o.typed = make()
	strict, err := json.UnmarshalStrict(raw, o.typed)
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", path, o.Kind, err)
	}
	return o, nil
}

// one is the object of a type, of which there must be exactly one.
func one[T meta.Object](t *testing.T, all []object) T {
	t.Helper()
	var found []T
	for _, o := range all {
		if typed, ok := o.typed.(T); ok {
			found = append(found, typed)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects of %T, want 1", len(found), *new(T))
	}
	return found[0]
}

func TestWhatNoAPIHasIsRefused(t *testing.T) {
	for what, text := range map[string]string{
		"an unknown field":    "apiVersion: v1\nkind: Service\nspec: {clusterIp: None}\n",
		"a field of another":  "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {containers: [{name: x, livenessProbe: {http: {}}}]}}}\n",
		"a field twice":       "apiVersion: v1\nkind: Service\nspec: {}\nspec: {}\n",
		"a wrong type":        "apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: two}\n",
		"a wrong quantity":    "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: x, resources: {limits: {memory: 5GiB}}}]}\n",
		"an unknown kind":     "apiVersion: apps/v1beta1\nkind: Deployment\n",
		"of the operator too": "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nspec: {endpoints: [{relabeling: []}]}\n",
	} {
		if o, err := decode("test", []byte(text)); err == nil {
			t.Errorf("%s is accepted: %+v", what, o)
		}
	}
	if o, err := decode("test", []byte("# nothing\n")); o != nil || err != nil {
		t.Errorf("nothing is %+v, %v", o, err)
	}
}
