package deploy_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/unit"

	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/test/harness"
)

const (
	unitFile      = "../../deploy/systemd/cdcpub.service"
	upgradingFile = "../../docs/upgrading.md"
)

// service is a unit: the values of each setting of a section, in order. An empty
// one forgets those before it, as systemd does.
type service map[string][]string

func readUnit(t *testing.T) service {
	t.Helper()
	file, err := os.Open(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	settings, err := unit.DeserializeOptions(file)
	if err != nil {
		t.Fatal(err)
	}
	s := service{}
	for _, o := range settings {
		name := o.Section + "." + o.Name
		if o.Value == "" {
			s[name] = []string{}
			continue
		}
		s[name] = append(s[name], o.Value)
	}
	return s
}

// one is the value of a setting that is stated once.
func (s service) one(t *testing.T, name string) string {
	t.Helper()
	if len(s[name]) != 1 {
		t.Fatalf("%s is stated as %q, want one value", name, s[name])
	}
	return s[name][0]
}

func (s service) seconds(t *testing.T, name string) time.Duration {
	t.Helper()
	n, err := strconv.Atoi(s.one(t, name)) // a number without unit is seconds
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return time.Duration(n) * time.Second
}

func TestTheUnitLetsAShutdownEnd(t *testing.T) {
	s := readUnit(t)
	if limit, needed := s.seconds(t, "Service.TimeoutStopSec"), time.Duration(config.Default().ShutdownTimeout); limit <= needed {
		t.Errorf("TimeoutStopSec=%v, and shutdown_timeout is %v", limit, needed)
	}
	if signal := s.one(t, "Service.KillSignal"); signal != "SIGTERM" {
		t.Errorf("KillSignal=%s", signal)
	}
}

// A process that is ended by the watchdog was never going to say READY=1, or has
// said it: both need this type.
func TestTheUnitWatchesWhatCdcpubTells(t *testing.T) {
	s := readUnit(t)
	if kind := s.one(t, "Service.Type"); kind != "notify" {
		t.Errorf("Type=%s", kind)
	}
	if from := s.one(t, "Service.NotifyAccess"); from != "main" {
		t.Errorf("NotifyAccess=%s", from)
	}
	// cdcpub tells at least three times in this time.
	if within := s.seconds(t, "Service.WatchdogSec"); within < 3*time.Second || within > time.Minute {
		t.Errorf("WatchdogSec=%v", within)
	}
}

// exitCode is a row of the table of exit codes.
var exitCode = regexp.MustCompile(`(?m)^\| ([0-9]+) \| (.*) \|$`)

// Restarts are for what they may cure: all other codes of the manual are listed.
func TestTheUnitRestartsWhatARestartMayCure(t *testing.T) {
	_, table, found := strings.Cut(read(t, upgradingFile), "\n## Exit codes\n")
	if !found {
		t.Fatalf("%s has no exit codes", upgradingFile)
	}
	table, _, _ = strings.Cut(table, "\n## ")
	var prevent []string
	for _, row := range exitCode.FindAllStringSubmatch(table, -1) {
		if row[2] != "done" && !strings.Contains(row[2], "another try may cure") {
			prevent = append(prevent, row[1])
		}
	}
	s := readUnit(t)
	if got := strings.Fields(s.one(t, "Service.RestartPreventExitStatus")); len(prevent) == 0 || !slices.Equal(got, prevent) {
		t.Errorf("RestartPreventExitStatus=%q, the manual has %q for a human", got, prevent)
	}
	if restart := s.one(t, "Service.Restart"); restart != "on-failure" {
		t.Errorf("Restart=%s", restart)
	}
	if limit := s.one(t, "Unit.StartLimitIntervalSec"); limit != "0" {
		t.Errorf("StartLimitIntervalSec=%s: it gives up", limit)
	}
}

func TestTheUnitStartsCdcpubWithItsCredential(t *testing.T) {
	s := readUnit(t)
	words := strings.Fields(s.one(t, "Service.ExecStart"))
	if words[0] != "/usr/local/bin/cdcpub" {
		t.Errorf("ExecStart=%q", words)
	}
	credential, source, _ := strings.Cut(s.one(t, "Service.LoadCredential"), ":")
	if file := words[len(words)-1]; file != "${CREDENTIALS_DIRECTORY}/"+credential {
		t.Errorf("the configuration is %s, and the credential is %s", file, credential)
	}
	if !strings.Contains(read(t, "../../deploy/systemd/README.md"), " "+source+"\n") {
		t.Errorf("README.md does not say how %s comes there", source)
	}
	args := append(words[1:], "--help")
	out, err := exec.CommandContext(t.Context(), shared.Binary(t, harness.BuildOptions{}), args...).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "Usage: cdcpub run ") {
		t.Errorf("%q: %v\n%s", args, err, out)
	}
}

// What the process may do without: a setting that is lost by a merge shows here.
func TestTheUnitTakesRightsAway(t *testing.T) {
	s := readUnit(t)
	for _, name := range []string{"CapabilityBoundingSet", "AmbientCapabilities"} {
		if values, stated := s["Service."+name]; !stated || len(values) > 0 {
			t.Errorf("%s=%q, want none", name, values)
		}
	}
	for _, name := range []string{"DynamicUser", "NoNewPrivileges", "ProtectHome", "PrivateTmp", "PrivateDevices", "RestrictNamespaces", "MemoryDenyWriteExecute"} {
		if s.one(t, "Service."+name) != "yes" {
			t.Errorf("%s=%s", name, s.one(t, "Service."+name))
		}
	}
	if s.one(t, "Service.ProtectSystem") != "strict" {
		t.Errorf("ProtectSystem=%s", s.one(t, "Service.ProtectSystem"))
	}
	// PostgreSQL may be asked over a Unix socket.
	if families := strings.Fields(s.one(t, "Service.RestrictAddressFamilies")); !slices.Equal(families, []string{"AF_INET", "AF_INET6", "AF_UNIX"}) {
		t.Errorf("RestrictAddressFamilies=%q", families)
	}
}
