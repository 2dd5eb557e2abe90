package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/test/harness"
)

// result is one measurement. Times are in seconds, memory in bytes.
type result struct {
	Load        string   `json:"load"`
	Subject     string   `json:"subject"`
	Round       int      `json:"round"`
	Rows        int      `json:"rows"`
	Payload     int      `json:"payload_bytes"`
	Seconds     float64  `json:"seconds"`
	First       float64  `json:"seconds_to_first_record,omitempty"`
	Walsender   float64  `json:"cpu_seconds_walsender"`
	Subjects    float64  `json:"cpu_seconds_subject"`
	Broker      float64  `json:"cpu_seconds_broker,omitempty"`
	PeakRSS     int64    `json:"peak_rss_bytes"`
	Allocations uint64   `json:"allocations,omitempty"`
	Latency     *latency `json:"latency_ms,omitempty"`
	Commit      *latency `json:"commit_ms,omitempty"` // COMMIT until its answer
}

// latency is from just before COMMIT to the consumer, in milliseconds.
type latency struct {
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
	Max  float64 `json:"max"`
}

func (r result) rate() float64                { return float64(r.Rows) / r.Seconds }
func (r result) perEvent(cpu float64) float64 { return cpu * 1e6 / float64(r.Rows) }

func (r result) String() string {
	s := fmt.Sprintf("%s, round %d, %s: %.0f events/s, first after %.2f s, us of CPU per event: walsender %.1f, itself %.1f, broker %.1f; peak RSS %.1f MiB",
		r.Load, r.Round, r.Subject, r.rate(), r.First, r.perEvent(r.Walsender), r.perEvent(r.Subjects), r.perEvent(r.Broker), float64(r.PeakRSS)/(1<<20))
	if r.Latency != nil {
		s += fmt.Sprintf("; p50 %.2f ms, p99 %.2f ms, p99.9 %.2f ms; COMMIT alone p50 %.2f ms, p99 %.2f ms",
			r.Latency.P50, r.Latency.P99, r.Latency.P999, r.Commit.P50, r.Commit.P99)
	}
	return s
}

// machine is where and with what a report was made.
type machine struct {
	Date       string `json:"date"`
	Commit     string `json:"commit"`
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	Go         string `json:"go"`
	PostgreSQL string `json:"postgresql"`
	Kafka      string `json:"kafka"`
	Debezium   string `json:"debezium,omitempty"`
}

func machineOf(b *testing.B, s *stand) machine {
	m := machine{
		Date: time.Now().UTC().Format(time.DateOnly), Commit: commit(), CPU: processor(), Cores: runtime.NumCPU(), Go: runtime.Version(),
		PostgreSQL: s.server.Installation().Version, Kafka: jarVersion(harness.FindJava(b, "kafka").Jars, "kafka-clients"),
	}
	if *withJVM {
		jars := harness.FindJava(b, "debezium").Jars
		m.Debezium = jarVersion(jars, "debezium-connector-postgres") + " on Kafka Connect " + jarVersion(jars, "connect-runtime")
	}
	return m
}

func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	_, after, _ := bytes.Cut(info, []byte("model name"))
	line, _, _ := bytes.Cut(after, []byte("\n"))
	return strings.TrimSpace(strings.TrimLeft(string(line), "\t :"))
}

// jarVersion is the version in the name of a jar, NAME-VERSION.jar.
func jarVersion(dir, name string) string {
	found, _ := filepath.Glob(filepath.Join(dir, name+"-[0-9]*.jar"))
	if len(found) == 0 {
		return "unknown"
	}
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(found[0]), name+"-"), ".jar")
}

// report is everything that one run has measured.
type report struct {
	Machine machine  `json:"machine"`
	Rounds  int      `json:"rounds"`
	Loads   []string `json:"loads"`
	Results []result `json:"results"`
}

// write replaces the files of the report, if one is wanted.
func (r *report) write(b *testing.B) {
	if *reportTo == "" {
		return
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		b.Fatal(err)
	}
	if err := os.MkdirAll(*reportTo, 0o755); err != nil {
		b.Fatal(err)
	}
	for suffix, content := range map[string][]byte{".json": append(data, '\n'), ".md": []byte(r.markdown())} {
		if err := os.WriteFile(filepath.Join(*reportTo, *reportAs+suffix), content, 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

// of are the results of a subject under a load, by round.
func (r *report) of(load, subject string) []result {
	var found []result
	for _, one := range r.Results {
		if one.Load == load && one.Subject == subject {
			found = append(found, one)
		}
	}
	return found
}

func (r *report) subjects(load string) []string {
	var names []string
	for _, one := range r.Results {
		if one.Load == load && !slices.Contains(names, one.Subject) {
			names = append(names, one.Subject)
		}
	}
	return names
}
