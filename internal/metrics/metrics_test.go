package metrics

import (
	"bytes"
	"flag"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write the golden files")

// exposed is what a scrape gives, without the Go runtime and the process.
func exposed(t *testing.T, s situation) string {
	t.Helper()
	answer := httptest.NewRecorder()
	New(s.sources()).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	if answer.Code != 200 {
		t.Fatalf("%d: %s", answer.Code, answer.Body)
	}
	var ours strings.Builder
	for line := range strings.Lines(answer.Body.String()) {
		if ourLine.MatchString(line) {
			ours.WriteString(line)
		}
	}
	return ours.String()
}

var ourLine = regexp.MustCompile(`^(# (HELP|TYPE) )?cdcpub_`)

func situations() map[string]func() situation {
	return map[string]func() situation{"healthy": healthy, "stalled_and_lost": stalled, "watch": watch}
}

// In fake time, which always begins at the same instant.
func TestExposition(t *testing.T) {
	for name, make := range situations() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, file := exposed(t, make()), filepath.Join("testdata", name+".txt")
				if *update {
					if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if got != string(want) {
					t.Errorf("%s is not what is exposed; look at the difference, then run with -update:\n%s", file, got)
				}
			})
		})
	}
}

func TestNamesAndHelpFollowTheConventions(t *testing.T) {
	for name, make := range situations() {
		problems, err := promlint.New(strings.NewReader(exposed(t, make()))).Lint()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s: %s", name, p.Metric, p.Text)
		}
	}
}

func TestRuntimeAndProcessAreThere(t *testing.T) {
	answer := httptest.NewRecorder()
	New(Sources{Version: "1.2.3"}).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for _, name := range []string{"cdcpub_build_info", "go_goroutines", "process_resident_memory_bytes", "promhttp_metric_handler_errors_total"} {
		if !bytes.Contains(answer.Body.Bytes(), []byte("\n"+name)) {
			t.Errorf("no %s", name)
		}
	}
}

var usedName = regexp.MustCompile(`\bcdcpub_[a-z_]+\b`)

// Rules that name a metric which does not exist never fire.
func TestRulesNameMetricsThatExist(t *testing.T) {
	described := names(healthy())
	rules, err := os.ReadFile("../../deploy/prometheus/cdcpub.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(rules)) {
		line = regexp.MustCompile(`\bid: \w+|runbook\.md#\w+|#.*`).ReplaceAllString(line, "")
		for _, name := range usedName.FindAllString(line, -1) {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				name = strings.TrimSuffix(name, suffix)
			}
			if !slices.Contains(described, name) {
				t.Errorf("no metric %s: %s", name, line)
			}
		}
	}
}

// names are those of all metrics that such a process may have.
func names(s situation) (all []string) {
	for _, desc := range newCollector(s.sources()).described {
		all = append(all, regexp.MustCompile(`fqName: "(\w+)"`).FindStringSubmatch(desc.String())[1])
	}
	return all
}
