package kubernetes

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	admission "k8s.io/pod-security-admission/api"
	security "k8s.io/pod-security-admission/policy"
)

// pods are the two that there are: the publisher's and that of the check.
func pods(t *testing.T) map[string]core.PodSpec {
	t.Helper()
	return map[string]core.PodSpec{
		"publisher": one[*apps.Deployment](t, manifests(t, "")).Spec.Template.Spec,
		"check":     one[*core.Pod](t, manifests(t, "check")).Spec,
	}
}

// The namespace may have pod-security.kubernetes.io/enforce: restricted.
func TestPodsFulfilTheRestrictedStandard(t *testing.T) {
	evaluator, err := security.NewEvaluator(security.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := admission.LevelVersion{Level: admission.LevelRestricted, Version: admission.LatestVersion()}
	for name, pod := range pods(t) {
		judged := func(spec core.PodSpec) []string {
			var against []string
			for _, result := range evaluator.EvaluatePod(restricted, &meta.ObjectMeta{}, &spec) {
				if !result.Allowed {
					against = append(against, result.ForbiddenReason+": "+result.ForbiddenDetail)
				}
			}
			return against
		}
		if against := judged(pod); len(against) > 0 {
			t.Errorf("%s: %q", name, against)
		}
		if weaker := pod; len(judged(*withoutSecurity(&weaker))) == 0 {
			t.Error("the standard forbids nothing")
		}
		container := pod.Containers[0].SecurityContext
		if container.ReadOnlyRootFilesystem == nil || !*container.ReadOnlyRootFilesystem {
			t.Errorf("%s may write to its image", name)
		}
		if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
			t.Errorf("%s has a token of the cluster", name)
		}
	}
}

func withoutSecurity(pod *core.PodSpec) *core.PodSpec {
	pod.SecurityContext = nil
	return pod
}

func TestSelectorsFindTheirPods(t *testing.T) {
	all := manifests(t, "")
	deployment := one[*apps.Deployment](t, all)
	publisher, check := labels.Set(deployment.Spec.Template.Labels), labels.Set(one[*core.Pod](t, manifests(t, "check")).Labels)
	service, monitor := one[*core.Service](t, all), one[*monitoring.ServiceMonitor](t, manifests(t, "prometheus-operator"))
	for _, c := range []struct {
		what               string
		selector           *meta.LabelSelector
		publishers, checks bool
	}{
		{"Deployment", deployment.Spec.Selector, true, false},
		{"Service", &meta.LabelSelector{MatchLabels: service.Spec.Selector}, true, false},
		{"PodDisruptionBudget", one[*policy.PodDisruptionBudget](t, all).Spec.Selector, true, false},
		// The check must meet what the publisher meets.
		{"NetworkPolicy", &one[*networking.NetworkPolicy](t, all).Spec.PodSelector, true, true},
		{"first spread", deployment.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector, true, false},
		{"second spread", deployment.Spec.Template.Spec.TopologySpreadConstraints[1].LabelSelector, true, false},
	} {
		selector, err := meta.LabelSelectorAsSelector(c.selector)
		if err != nil {
			t.Fatal(err)
		}
		if selector.Matches(publisher) != c.publishers || selector.Matches(check) != c.checks {
			t.Errorf("%s selects publishers: %v, checks: %v", c.what, selector.Matches(publisher), selector.Matches(check))
		}
	}
	selector, err := meta.LabelSelectorAsSelector(&monitor.Spec.Selector)
	if err != nil || !selector.Matches(labels.Set(service.Labels)) {
		t.Errorf("the ServiceMonitor does not find the Service: %v", err)
	}
	// The rules of deploy/prometheus are for this job.
	if job := service.Labels[monitor.Spec.JobLabel]; job != "cdcpub" {
		t.Errorf("job %q", job)
	}
	if endpoint := monitor.Spec.Endpoints[0]; endpoint.Port != service.Spec.Ports[0].Name || endpoint.RelabelConfigs[0].TargetLabel != "publisher" {
		t.Errorf("endpoint %+v", endpoint)
	}
}

func TestPortsAndProbesLeadToTheContainer(t *testing.T) {
	all := manifests(t, "")
	container := one[*apps.Deployment](t, all).Spec.Template.Spec.Containers[0]
	port := container.Ports[0]
	if port.ContainerPort != 9477 {
		t.Errorf("port %d", port.ContainerPort)
	}
	for path, probe := range map[string]*core.Probe{"/livez": container.LivenessProbe, "/readyz": container.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.StrVal != port.Name {
			t.Errorf("probe of %s: %+v", path, probe)
		}
	}
	if target := one[*core.Service](t, all).Spec.Ports[0].TargetPort; target.StrVal != port.Name {
		t.Errorf("the Service leads to port %s", target.String())
	}
	if in := one[*networking.NetworkPolicy](t, all).Spec.Ingress; len(in) != 1 || len(in[0].From) == 0 || in[0].Ports[0].Port.IntVal != port.ContainerPort {
		t.Errorf("let in: %+v", in)
	}
}

// What a standby pair needs of a Deployment.
func TestAnUpdateNeverLeavesTheSlotWithoutAStandby(t *testing.T) {
	d := one[*apps.Deployment](t, manifests(t, "")).Spec
	if *d.Replicas != 2 {
		t.Errorf("%d replicas", *d.Replicas)
	}
	if update := d.Strategy.RollingUpdate; update.MaxUnavailable.IntValue() != 0 || update.MaxSurge.IntValue() != 1 {
		t.Errorf("%+v", update)
	}
	// A pod that has taken over and cannot publish must be unready before the next
	// old one goes: /readyz says so after ten seconds.
	probe := d.Template.Spec.Containers[0].ReadinessProbe
	if unready := 10 + probe.PeriodSeconds*probe.FailureThreshold; d.MinReadySeconds <= unready {
		t.Errorf("minReadySeconds %d, and a pod is unready after %d", d.MinReadySeconds, unready)
	}
	for _, spread := range d.Template.Spec.TopologySpreadConstraints {
		if !slices.Equal(spread.MatchLabelKeys, []string{apps.DefaultDeploymentUniqueLabelKey}) {
			t.Errorf("%s counts pods of the last revision", spread.TopologyKey)
		}
	}
}

func TestMountsComeFromVolumes(t *testing.T) {
	for name, pod := range pods(t) {
		volumes := map[string]core.Volume{}
		for _, v := range pod.Volumes {
			volumes[v.Name] = v
		}
		at := map[string]core.Volume{}
		for _, m := range pod.Containers[0].VolumeMounts {
			if _, ok := volumes[m.Name]; !ok || !m.ReadOnly || m.SubPath != "" {
				t.Errorf("%s: mount %+v; a subPath never changes", name, m)
			}
			at[m.MountPath] = volumes[m.Name]
			delete(volumes, m.Name)
		}
		if len(volumes) > 0 {
			t.Errorf("%s: nothing mounts %v", name, slices.Collect(maps.Keys(volumes)))
		}
		config := one[*core.ConfigMap](t, manifests(t, ""))
		args := pod.Containers[0].Args
		file := args[slices.Index(args, "-c")+1]
		if v := at[path.Dir(file)]; v.ConfigMap == nil || v.ConfigMap.Name != config.Name || config.Data[path.Base(file)] == "" {
			t.Errorf("%s: there is no %s in %+v", name, file, v)
		}
		secret := at["/run/secrets/cdcpub"].Secret
		if secret == nil || *secret.DefaultMode&0o007 != 0 || *secret.DefaultMode&0o040 == 0 || pod.SecurityContext.FSGroup == nil {
			t.Errorf("%s: the group of the pod alone must be able to read %+v", name, secret)
		}
		if pod.ServiceAccountName != one[*core.ServiceAccount](t, manifests(t, "")).Name {
			t.Errorf("%s runs as %s", name, pod.ServiceAccountName)
		}
	}
}

// The image's user is a number in the Dockerfile.
func TestPodsRunAsTheUserOfTheImage(t *testing.T) {
	_, after, found := strings.Cut(read(t, "Dockerfile"), "\nUSER ")
	user, group, _ := strings.Cut(strings.Fields(after)[0], ":")
	if !found {
		t.Fatal("the Dockerfile has no USER")
	}
	for name, pod := range pods(t) {
		s := pod.SecurityContext
		if strconv.FormatInt(*s.RunAsUser, 10) != user || strconv.FormatInt(*s.RunAsGroup, 10) != group || *s.FSGroup != *s.RunAsGroup {
			t.Errorf("%s runs as %d:%d, the image as %s:%s", name, *s.RunAsUser, *s.RunAsGroup, user, group)
		}
		if command := pod.Containers[0].Command; command != nil {
			t.Errorf("%s replaces the image's program by %q", name, command)
		}
	}
}

func TestResourcesBoundMemoryAndDoNotThrottle(t *testing.T) {
	for name, pod := range pods(t) {
		r := pod.Containers[0].Resources
		if r.Limits.Memory().IsZero() || r.Requests.Memory().IsZero() || r.Requests.Memory().Cmp(*r.Limits.Memory()) > 0 {
			t.Errorf("%s: memory %s of %s", name, r.Requests.Memory(), r.Limits.Memory())
		}
		if r.Requests.Cpu().IsZero() || !r.Limits.Cpu().IsZero() {
			t.Errorf("%s: CPU %s, limit %s", name, r.Requests.Cpu(), r.Limits.Cpu())
		}
	}
}
