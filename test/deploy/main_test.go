// Package deploy_test tests what is deployed beside the binary: alert rules,
// dashboard and runbook.
package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cdcpub/cdcpub/test/harness"
)

var shared harness.Shared

func TestMain(m *testing.M) { harness.Main(m, &shared) }

// Files under test, from this directory.
const (
	rulesFile     = "../../deploy/prometheus/cdcpub.rules.yml"
	rulesTestGlob = "../../deploy/prometheus/*.test.yml"
	rulesReadme   = "../../deploy/prometheus/README.md"
	scrapeFile    = "../../deploy/prometheus/prometheus.yml"
	dashboardFile = "../../deploy/grafana/cdcpub.json"
	runbookFile   = "../../docs/runbook.md"
	findingsFile  = "../../slotmon/finding.go"
	stallsFile    = "../../internal/publisher/stall.go"
	goldens       = "../../internal/metrics/testdata"
)

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// promtool runs Prometheus' own checker.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatalf("%v\nto install it: apt-get update && apt-get install -y --no-install-recommends prometheus", err)
	}
	if out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %q: %v\n%s", args, err, out)
	}
}

// write makes a file for promtool and returns its path.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
