package scenarios

import (
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

// verdicts collects what became of the scenarios of this run.
var verdicts struct {
	sync.Mutex
	rows []string
	// ended counts, by scenario and version, those that passed and failed.
	ended map[string]map[string]*tally
}

type tally struct{ passed, failed int }

// versionElement is what a test's name says of PostgreSQL's version.
var versionElement = regexp.MustCompile(`/(?:PostgreSQL_)?(1[4-9])(/|$)`)

// place splits a test's name into the scenario and PostgreSQL's version:
// TestEveryVersion/PostgreSQL_14/CopyOf10000Rows is CopyOf10000Rows on 14.
func place(test string) (scenario, version string) {
	scenario = strings.TrimPrefix(strings.TrimPrefix(test, "TestEveryVersion/"), "Test")
	if found := versionElement.FindStringSubmatch("/" + scenario); found != nil {
		before, after, _ := strings.Cut("/"+scenario, found[0])
		return strings.TrimPrefix(before+found[2]+after, "/"), found[1]
	}
	version, _, _ = strings.Cut(harness.PostgresVersion(test), ".")
	return scenario, version
}

// record notes the report of a scenario.
func record(name string, took time.Duration, r verify.Report) {
	verdict := "ok"
	if !r.OK() {
		verdict = "VIOLATED"
	}
	scenario, version := place(name)
	verdicts.Lock()
	defer verdicts.Unlock()
	verdicts.rows = append(verdicts.rows, fmt.Sprintf("%s\t%s\t%s\t%.1f\t%d\t%d\t%d\t%d\t%d\t%d\t%d", scenario, version, verdict, took.Seconds(),
		r.Events, r.Lost, r.OutOfOrder, r.Repeated, r.Altered, r.EarlyConfirmed, r.ConfirmedSamples))
}

// ended notes that a test has ended, whether or not it had a report.
func ended(name string, failed bool) {
	scenario, version := place(name)
	scenario, _, _ = strings.Cut(scenario, "/")
	verdicts.Lock()
	defer verdicts.Unlock()
	if verdicts.ended == nil {
		verdicts.ended = map[string]map[string]*tally{}
	}
	if verdicts.ended[scenario] == nil {
		verdicts.ended[scenario] = map[string]*tally{}
	}
	if verdicts.ended[scenario][version] == nil {
		verdicts.ended[scenario][version] = &tally{}
	}
	if failed {
		verdicts.ended[scenario][version].failed++
	} else {
		verdicts.ended[scenario][version].passed++
	}
}

func (t *tally) String() string {
	switch {
	case t == nil:
		return "-"
	case t.failed > 0:
		return fmt.Sprintf("%d FAILED", t.failed)
	case t.passed > 1:
		return fmt.Sprintf("ok (%d)", t.passed)
	}
	return "ok"
}

// printVerdicts shows the tables of all scenarios at the end of the run: what
// the checker said, and which ran on which version of PostgreSQL.
func printVerdicts() {
	verdicts.Lock()
	defer verdicts.Unlock()
	if len(verdicts.rows) > 0 {
		table(os.Stdout, "scenario\tPostgreSQL\tverdict\tseconds\tevents\tlost\tout of order\trepeated\taltered\tconfirmed early\tsamples", verdicts.rows)
	}
	if len(verdicts.ended) == 0 {
		return
	}
	var rows []string
	for _, scenario := range slices.Sorted(maps.Keys(verdicts.ended)) {
		row := scenario
		for _, version := range everyVersion {
			row += "\t" + verdicts.ended[scenario][version].String()
		}
		rows = append(rows, row)
	}
	table(os.Stdout, "\nscenario \\ PostgreSQL\t"+strings.Join(everyVersion, "\t"), rows)
}

func table(to io.Writer, heading string, rows []string) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, heading)
	for _, row := range rows {
		fmt.Fprintln(w, row)
	}
	_ = w.Flush()
}
