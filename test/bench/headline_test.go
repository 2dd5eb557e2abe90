package bench

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the README's table anew, from docs/benchmarks/core.json")

const (
	coreReport = "../../docs/benchmarks/core.json"
	readme     = "../../README.md"
)

var headlineMarks = regexp.MustCompile(`(?s)<!-- benchmark: [^\n]* -->\n(.*?)<!-- end of benchmark -->`)

// TestHeadlineIsTheReports: the README's table has the figures of the report
// that is in the repository.
func TestHeadlineIsTheReports(t *testing.T) {
	data, err := os.ReadFile(coreReport)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	at := headlineMarks.FindSubmatchIndex(page)
	if at == nil {
		t.Fatal("README.md has no marks around the table")
	}
	want := r.headline()
	if got := string(page[at[2]:at[3]]); got == want {
		return
	}
	if !*update {
		t.Fatal("README.md has other figures than docs/benchmarks/core.json: go test ./test/bench -run Headline -update")
	}
	if err := os.WriteFile(readme, append(append(append([]byte(nil), page[:at[2]]...), want...), page[at[3]:]...), 0o644); err != nil {
		t.Fatal(err)
	}
}

// headline is the table for a first look: medians.
func (r *report) headline() string {
	var b strings.Builder
	version, _, _ := strings.Cut(r.Machine.Debezium, " ")
	fmt.Fprintf(&b, "| | cdcpub | Debezium %s, warm JVM | cold JVM | `pg_recvlogical` to `/dev/null` |\n|---|---|---|---|---|\n", version)
	subjects := []string{cdcpub, debeziumWarm, debeziumCold, reference}
	row := func(name, load, format string, of func(result) float64, subjects []string) {
		if len(r.subjects(load)) == 0 {
			return
		}
		fmt.Fprintf(&b, "| %s |", name)
		for _, subject := range subjects {
			cell := " "
			if all := r.of(load, subject); subject != "" && len(all) > 0 {
				cell = " " + thousands(middle(all, format, of)) + " "
			}
			fmt.Fprintf(&b, "%s|", cell)
		}
		fmt.Fprintln(&b)
	}
	drains := loadNames("a", "b")
	for _, load := range drains {
		row("backlog of "+load, load, "%.0f events/s", result.rate, subjects)
	}
	large := drains[0]
	row("processor time per event, in transactions of 1,000", large, "%.1f us", func(o result) float64 { return o.perEvent(o.Subjects) }, subjects)
	row("peak memory (RSS), in transactions of 1,000", large, "%.0f MiB", func(o result) float64 { return float64(o.PeakRSS) / (1 << 20) }, subjects)
	row("start to first record", large, "%.1f s", func(o result) float64 { return o.First }, []string{cdcpub, "", debeziumCold, ""})
	steady := loadNames("d")[0]
	row(steady+", COMMIT to consumer, p50", steady, "%.1f ms", func(o result) float64 { return o.Latency.P50 }, []string{cdcpub, debeziumWarm, "", ""})
	row(steady+", COMMIT to consumer, p99", steady, "%.1f ms", func(o result) float64 { return o.Latency.P99 }, []string{cdcpub, debeziumWarm, "", ""})
	return b.String()
}

// loadNames are the names of the loads behind letters.
func loadNames(letters ...string) []string {
	var names []string
	for _, letter := range letters {
		for _, l := range loadsOf(letter) {
			names = append(names, l.Name)
		}
	}
	return names
}

var digits = regexp.MustCompile(`^\d{4,}`)

// thousands puts commas into the number in front.
func thousands(text string) string {
	return digits.ReplaceAllStringFunc(text, func(number string) string {
		for i := len(number) - 3; i > 0; i -= 3 {
			number = number[:i] + "," + number[i:]
		}
		return number
	})
}
