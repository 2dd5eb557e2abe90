package compose

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/test/harness"
)

var shared harness.Shared

func TestMain(m *testing.M) { harness.Main(m, &shared) }

// root is the directory of the module, which is the build context.
const root = "../.."

// configurationTarget is where the image looks for its configuration.
const configurationTarget = "/etc/cdcpub/cdcpub.yaml"

// load reads docker-compose.yml as Compose does, all profiles included. The
// specification's schema is checked on the way.
func load(t *testing.T) *types.Project {
	t.Helper()
	directory, err := filepath.Abs(root)
	must(t, err)
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  directory,
		ConfigFiles: types.ToConfigFiles([]string{filepath.Join(directory, "docker-compose.yml")}),
		Environment: types.Mapping{},
	}, loader.WithProfiles([]string{"*"}), func(o *loader.Options) { o.SetProjectName("cdcpub", true) })
	must(t, err)
	return project
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ours tells if the service runs the image of the Dockerfile.
func ours(s types.ServiceConfig) bool { return s.Build != nil }

func environment(s types.ServiceConfig) []string {
	var list []string
	for name, value := range s.Environment {
		if value != nil {
			list = append(list, name+"="+*value)
		}
	}
	slices.Sort(list)
	return list
}

// mounted is the file of this repository that the service sees at target.
func mounted(t *testing.T, s types.ServiceConfig, target string) string {
	t.Helper()
	for _, v := range s.Volumes {
		if v.Type == types.VolumeTypeBind && v.Target == target {
			return v.Source
		}
	}
	t.Fatalf("service %s has nothing at %s", s.Name, target)
	return ""
}

func TestServicesWaitForWhatTheyNeed(t *testing.T) {
	project := load(t)
	needs := map[string]map[string]string{
		"init":   {"postgres": types.ServiceConditionHealthy, "kafka": types.ServiceConditionHealthy},
		"cdcpub": {"init": types.ServiceConditionCompletedSuccessfully},
		"watch":  {"postgres": types.ServiceConditionHealthy},
		"shop":   {"init": types.ServiceConditionCompletedSuccessfully},
	}
	for name, s := range project.Services {
		if len(s.DependsOn) != len(needs[name]) {
			t.Errorf("service %s depends on %v, want %v", name, s.DependsOn, needs[name])
		}
		for other, condition := range needs[name] {
			if got := s.DependsOn[other].Condition; got != condition {
				t.Errorf("service %s waits until %s is %q, want %s", name, other, got, condition)
			}
		}
		for other, dependency := range s.DependsOn {
			needed := project.Services[other]
			switch dependency.Condition {
			case types.ServiceConditionHealthy:
				if needed.HealthCheck == nil || needed.HealthCheck.Disable {
					t.Errorf("service %s waits for the health of %s, which has no health check", name, other)
				}
			case types.ServiceConditionCompletedSuccessfully:
				if needed.Restart != "" && needed.Restart != types.RestartPolicyNo {
					t.Errorf("service %s waits for the end of %s, which starts again (%s)", name, other, needed.Restart)
				}
			}
		}
	}
	for _, name := range []string{"postgres", "kafka", "cdcpub"} {
		if check := project.Services[name].HealthCheck; check == nil || len(check.Test) < 2 || check.Test[0] != "CMD" {
			t.Errorf("service %s: want a health check without a shell, have %+v", name, check)
		} else if check.StartPeriod == nil || check.StartInterval == nil {
			t.Errorf("service %s: a slow start must not count as ill: %+v", name, check)
		}
	}
}

// exactVersion is a tag that names one release.
var exactVersion = regexp.MustCompile(`:([0-9]+\.[0-9]+(\.[0-9]+)?)(-[a-z0-9.]+)?$`)

func TestImagesAreExactVersions(t *testing.T) {
	project := load(t)
	for name, s := range project.Services {
		if ours(s) {
			if s.Build.Context != project.WorkingDir || s.Image != "" {
				t.Errorf("service %s: build context %q and image %q, want this repository", name, s.Build.Context, s.Image)
			}
		} else if !exactVersion.MatchString(s.Image) {
			t.Errorf("service %s: image %q does not name one release", name, s.Image)
		}
	}
	if image := project.Services["postgres"].Image; !strings.HasPrefix(image, "postgres:18.") {
		t.Errorf("image %q is not PostgreSQL 18", image)
	}
	if image, want := project.Services["kafka"].Image, "apache/kafka:"+testedKafka(t); image != want {
		t.Errorf("image %q, want %s as in the tests", image, want)
	}
	if project.Services["shop"].Image != project.Services["postgres"].Image {
		t.Error("services shop and postgres have different images")
	}
}

// testedKafka is the version of Apache Kafka that the harness runs.
func testedKafka(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "test", "kafka", "pom.xml"))
	must(t, err)
	var pom struct {
		Dependencies []struct {
			Group   string `xml:"groupId"`
			Version string `xml:"version"`
		} `xml:"dependencies>dependency"`
	}
	must(t, xml.Unmarshal(text, &pom))
	for _, d := range pom.Dependencies {
		if d.Group == "org.apache.kafka" {
			return d.Version
		}
	}
	t.Fatal("test/kafka/pom.xml names no Apache Kafka")
	return ""
}

func TestMountsExistAndDataSurvives(t *testing.T) {
	project := load(t)
	for name, s := range project.Services {
		for _, v := range s.Volumes {
			switch v.Type {
			case types.VolumeTypeBind:
				// Containers have another user: everybody must be able to read it.
				if info, err := os.Stat(v.Source); err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o004 == 0 {
					t.Errorf("service %s: %s is no file that everybody may read: %v", name, v.Source, err)
				}
				if !v.ReadOnly {
					t.Errorf("service %s may write to %s", name, v.Source)
				}
			case types.VolumeTypeVolume:
				if _, ok := project.Volumes[v.Source]; !ok {
					t.Errorf("service %s: volume %s is not declared", name, v.Source)
				}
			}
		}
	}
	// Both must live as long as each other, or the slot is ahead of the topic.
	// From 18 on the image keeps its data below this directory, not in data/.
	volumeAt(t, project.Services["postgres"], "/var/lib/postgresql")
	volumeAt(t, project.Services["kafka"], value(t, project.Services["kafka"], "KAFKA_LOG_DIRS"))
}

func volumeAt(t *testing.T, s types.ServiceConfig, target string) {
	t.Helper()
	if !slices.ContainsFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool {
		return v.Type == types.VolumeTypeVolume && v.Target == target
	}) {
		t.Errorf("service %s has no volume at %s", s.Name, target)
	}
}

func value(t *testing.T, s types.ServiceConfig, name string) string {
	t.Helper()
	if s.Environment[name] == nil {
		t.Fatalf("service %s: %s is not set", s.Name, name)
	}
	return *s.Environment[name]
}

// foreignVariables are for libraries of cdcpub, not for its configuration.
var foreignVariables = []string{"PGPASSWORD"}

func TestConfigurationAndVariablesLoad(t *testing.T) {
	project := load(t)
	var seen int
	for name, s := range project.Services {
		if !ours(s) {
			continue
		}
		seen++
		loaded, err := config.Load(mounted(t, s, configurationTarget), environment(s))
		if err != nil {
			t.Errorf("service %s: %v", name, err)
			continue
		}
		for variable := range s.Environment {
			// Load refuses unknown variables, but only those with the prefix.
			if !strings.HasPrefix(variable, "CDCPUB_") && !slices.Contains(foreignVariables, variable) {
				t.Errorf("service %s: nothing reads %s", name, variable)
			}
		}
		if host := string(loaded.Postgres.URL); !strings.Contains(host, "@postgres:5432/") {
			t.Errorf("service %s does not reach service postgres", name)
		}
		if !slices.Equal(loaded.Kafka.Brokers, []string{"kafka:9092"}) {
			t.Errorf("service %s does not reach service kafka: %v", name, loaded.Kafka.Brokers)
		}
		if grace := s.StopGracePeriod; name == "cdcpub" && (grace == nil || *grace <= types.Duration(loaded.ShutdownTimeout)) {
			t.Errorf("service %s is killed after %v, within shutdown_timeout %v", name, grace, loaded.ShutdownTimeout)
		}
	}
	if seen != 3 {
		t.Errorf("%d services run cdcpub, want init, cdcpub and watch", seen)
	}
}

func TestContainersOfCdcpubHaveNoRightsToSpare(t *testing.T) {
	for name, s := range load(t).Services {
		if !ours(s) {
			continue
		}
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") || s.Privileged || s.User != "" {
			t.Errorf("service %s: read_only %v, cap_drop %v, security_opt %v, privileged %v, user %q", name, s.ReadOnly, s.CapDrop, s.SecurityOpt, s.Privileged, s.User)
		}
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" {
				t.Errorf("service %s is published beyond the host: %+v", name, p)
			}
		}
	}
}
