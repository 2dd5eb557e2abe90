package deploy_test

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/cdcpub/cdcpub/internal/config"
)

const (
	kubernetesDir = "../../deploy/kubernetes"
	chartDir      = "../../deploy/helm/cdcpub"
)

// manifest reads one of the plain manifests. That it is what Kubernetes takes, and
// what the chart makes, is tested in test/kubernetes.
func manifest(t *testing.T, name string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(kubernetesDir, name))), into); err != nil {
		t.Fatal(err)
	}
}

// podConfiguration is the configuration in the ConfigMap, read by its own loader.
func podConfiguration(t *testing.T) *config.Config {
	t.Helper()
	var made struct{ Data map[string]string }
	manifest(t, "configmap.yaml", &made)
	if len(made.Data) != 1 {
		t.Fatalf("%d files in the ConfigMap, want cdcpub.yaml", len(made.Data))
	}
	// As in a pod, where a Service has the same name.
	env := []string{"CDCPUB_SERVICE_HOST=None", "CDCPUB_PORT=tcp://10.0.0.1:9477", "CDCPUB_PORT_9477_TCP_ADDR=10.0.0.1"}
	loaded, err := config.Load(write(t, "cdcpub.yaml", made.Data["cdcpub.yaml"]), env)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func TestTheConfigurationInThePodFitsThePod(t *testing.T) {
	loaded := podConfiguration(t)
	var deployment struct {
		Spec struct {
			Template struct {
				Spec struct {
					Grace      int `yaml:"terminationGracePeriodSeconds"`
					Containers []struct {
						Mounts []struct {
							Path string `yaml:"mountPath"`
							Name string
						} `yaml:"volumeMounts"`
					}
				}
			}
		}
	}
	manifest(t, "deployment.yaml", &deployment)
	pod := deployment.Spec.Template.Spec
	for what, shutdown := range map[string]config.Duration{"the ConfigMap": loaded.ShutdownTimeout, "the default": config.Default().ShutdownTimeout} {
		if grace := time.Duration(pod.Grace) * time.Second; grace <= time.Duration(shutdown) {
			t.Errorf("a pod is killed after %v, shutdown_timeout of %s is %v", grace, what, time.Duration(shutdown))
		}
	}
	// A new process takes what it finds: none may come without a human.
	if loaded.OnStop != config.OnStopStay || config.Default().OnStop != config.OnStopStay {
		t.Errorf("on_stop is %s", loaded.OnStop)
	}
	if loaded.HTTP.Listen != "0.0.0.0:9477" {
		t.Errorf("http.listen is %s: probes come from outside", loaded.HTTP.Listen)
	}
	secrets := ""
	for _, m := range pod.Containers[0].Mounts {
		if m.Name == "secret" {
			secrets = m.Path
		}
	}
	if file := loaded.Postgres.PasswordFile; filepath.Dir(file) != secrets {
		t.Errorf("postgres.password_file is %s, the Secret is at %q", file, secrets)
	} else if text := read(t, filepath.Join(kubernetesDir, "README.md")); !strings.Contains(text, "--from-file="+filepath.Base(file)+"=") {
		t.Errorf("README.md makes no Secret with %s", filepath.Base(file))
	}
}

func TestTheNetworkPolicyLetsTheConfigurationThrough(t *testing.T) {
	loaded := podConfiguration(t)
	var policy struct {
		Spec struct {
			Egress []struct {
				Ports []struct{ Port string }
			}
		}
	}
	manifest(t, "networkpolicy.yaml", &policy)
	var open []string
	for _, rule := range policy.Spec.Egress {
		for _, p := range rule.Ports {
			open = append(open, p.Port)
		}
	}
	database, err := url.Parse(string(loaded.Postgres.URL))
	if err != nil {
		t.Fatal(err)
	}
	needed := []string{"53", database.Port()}
	for _, broker := range loaded.Kafka.Brokers {
		_, port, err := net.SplitHostPort(broker)
		if err != nil {
			t.Fatal(err)
		}
		needed = append(needed, port)
	}
	for _, port := range needed {
		if !slices.Contains(open, port) {
			t.Errorf("port %s is needed, open are %q", port, open)
		}
	}
}

// One name of the image: in manifests, chart and the commands that make it.
func TestTheImageHasOneName(t *testing.T) {
	image := regexp.MustCompile(`registry\.example\.com/[a-z./-]*cdcpub(:[0-9a-z.]+)?`)
	var chart struct {
		AppVersion string `yaml:"appVersion"`
	}
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(chartDir, "Chart.yaml"))), &chart); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, root := range []string{kubernetesDir, chartDir, "../../docs"} {
		err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			for _, name := range image.FindAllString(read(t, path), -1) {
				seen++
				if name != "registry.example.com/cdcpub" && name != "registry.example.com/cdcpub:"+chart.AppVersion {
					t.Errorf("%s names %s", path, name)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 4 {
		t.Errorf("the image is named %d times", seen)
	}
}
