package kubernetes

import (
	"context"
	"fmt"
	"strings"
	"testing"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podapi "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install" // into the scheme
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/networking"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	networkingvalidation "k8s.io/kubernetes/pkg/apis/networking/validation"
	"k8s.io/kubernetes/pkg/apis/policy"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	policyvalidation "k8s.io/kubernetes/pkg/apis/policy/validation"
)

// accept does with an object what the API server does when it is created: sets
// defaults, converts and validates. The second list is what kubectl shows as
// warnings.
func accept(o object) (field.ErrorList, []string, error) {
	versioned := o.typed.(runtime.Object).DeepCopyObject()
	versioned.(meta.Object).SetNamespace("events")
	legacyscheme.Scheme.Default(versioned)
	converted, err := legacyscheme.Scheme.ConvertToVersion(versioned, runtime.InternalGroupVersioner)
	if err != nil {
		return nil, nil, err
	}
	switch internal := converted.(type) {
	case *apps.Deployment:
		template := &internal.Spec.Template
		return appsvalidation.ValidateDeployment(internal, podapi.GetValidationOptionsFromPodTemplate(template, nil)),
			podapi.GetWarningsForPodTemplate(context.Background(), field.NewPath("template"), template, nil), nil
	case *core.Pod:
		return corevalidation.ValidatePodCreate(internal, podapi.GetValidationOptionsFromPodSpecAndMeta(&internal.Spec, nil, &internal.ObjectMeta, nil)),
			podapi.GetWarningsForPod(context.Background(), internal, nil), nil
	case *core.Service:
		if internal.Spec.ClusterIP != "" { // the server allocates it otherwise
			internal.Spec.ClusterIPs = []string{internal.Spec.ClusterIP}
		}
		return corevalidation.ValidateServiceCreate(internal), nil, nil
	case *core.ConfigMap:
		return corevalidation.ValidateConfigMap(internal), nil, nil
	case *core.ServiceAccount:
		return corevalidation.ValidateServiceAccount(internal), nil, nil
	case *networking.NetworkPolicy:
		return networkingvalidation.ValidateNetworkPolicy(internal, networkingvalidation.NetworkPolicyValidationOptions{}), nil, nil
	case *policy.PodDisruptionBudget:
		return policyvalidation.ValidatePodDisruptionBudget(internal, policyvalidation.PodDisruptionBudgetValidationOptions{}), nil, nil
	}
	return nil, nil, fmt.Errorf("%s: nothing validates %T", o, converted)
}

// The API server's own validation has nothing against any object.
func TestTheServerAcceptsEveryObject(t *testing.T) {
	long := release{name: strings.Repeat("r", 53), values: "check: {types: [order]}"}.must(t) // Helm's limit
	full := release{name: "r1", values: everything}.must(t)
	for from, all := range map[string][]object{
		"manifests":       append(manifests(t, ""), manifests(t, "check")...),
		"chart, long":     append(long.objects, long.tests...),
		"chart, all used": append(full.objects, full.tests...),
	} {
		judged := 0
		for _, o := range all {
			if o.Kind == "ServiceMonitor" {
				continue // its server is the operator's
			}
			judged++
			problems, warnings, err := accept(o)
			if err != nil {
				t.Fatal(err)
			}
			if len(problems) > 0 || len(warnings) > 0 {
				t.Errorf("%s: %s: %v, warnings %q", from, o, problems.ToAggregate(), warnings)
			}
		}
		if judged < 7 {
			t.Errorf("%s: only %d objects were judged", from, judged)
		}
	}
}

func TestTheServerRefusesWhatItRefuses(t *testing.T) {
	deployment := func(spec string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: " + spec + "}}\n"
	}
	for what, c := range map[string]struct{ text, says string }{
		"a mount without a volume": {deployment("{containers: [{name: x, image: x, volumeMounts: [{name: data, mountPath: /data}]}]}"), "volumeMounts"},
		"a probe of no port":       {deployment("{containers: [{name: x, image: x, livenessProbe: {httpGet: {path: /, port: NO_PORT}}}]}"), "port"},
		"keys without a selector":  {deployment("{containers: [{name: x, image: x}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [b]}]}"), "matchLabelKeys"},
		"a name that is too long":  {"apiVersion: v1\nkind: Service\nmetadata: {name: " + strings.Repeat("a", 64) + "}\nspec: {clusterIP: None}\n", "name"},
		"a port out of range":      {"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: x}\nspec: {podSelector: {}, egress: [{ports: [{port: 70000}]}]}\n", "port"},
	} {
		o, err := decode("test", []byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if problems, _, err := accept(*o); err != nil || len(problems) == 0 || !strings.Contains(problems.ToAggregate().Error(), c.says) {
			t.Errorf("%s: %v, %v", what, problems.ToAggregate(), err)
		}
	}
}
