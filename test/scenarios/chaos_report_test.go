package scenarios

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// chaosRow is one line of the report, as its columns.
type chaosRow []string

const chaosColumns = "seed | commit | PostgreSQL | brokers | publishers | faults | events | lost | reordered | repeated | bound | sessions | slowest recovery | stalls named | log"

func (o *chaosOutcome) row(commit string) chaosRow {
	bound := "-"
	if o.bound > 0 {
		bound = strconv.Itoa(o.bound)
	}
	slices.Sort(o.stalls)
	r := &o.report
	return chaosRow{
		strconv.FormatUint(o.schedule.seed, 10), commit, o.schedule.version, strconv.Itoa(o.schedule.brokers), strconv.Itoa(o.schedule.publishers),
		o.schedule.kinds(), strconv.Itoa(r.Events), strconv.Itoa(r.Lost), strconv.Itoa(r.OutOfOrder + r.VersionInverted), strconv.Itoa(r.Repeated), bound,
		strconv.Itoa(o.sessions), fmt.Sprintf("%.1f s", o.recovery.Seconds()), strings.Join(o.stalls, ", "), o.hash,
	}
}

const chaosHead = `# Chaos

Each line is one run of ` + "`make chaos`" + `: a schedule of random faults that follows from its
seed, on real PostgreSQL and real Apache Kafka, while three writers commit transactions of
one to three hundred rows, some of them in swapped order, some rolled back. cdcpub is
started again when it ends. When the last fault is over, everything must be delivered, and
the checker compares the topic with PostgreSQL's own history: no loss, commit order, exact
content, nothing confirmed before it was acknowledged.

` + "`make chaos SEEDS=7`" + ` runs one of them again, ` + "`SEEDS=1-60 REPORT=docs/chaos.md`" + ` writes lines
here. A seed gives the same schedule; what the machine makes of it differs from run to run.

*Repeated* are records beyond the first of their event; *bound* is what the number of
sessions explains (the window, here 2000 records, the largest transaction, and what was
confirmed within the last moments). It is "-" where PostgreSQL was stopped or killed, after
which it may come back with an older position, and where the link to it was broken, over
which it does not hear what was confirmed of the rows in the sockets' buffers. *Slowest recovery* is the longest time from
the end of the last active fault until everything written by then was confirmed. *Stalls
named* are the kinds that ` + "`/status`" + ` gave. *Log* is the hash of the run's log.

`

// chaosReport adds the rows to the report, in place of earlier ones of the same
// seeds.
func chaosReport(path string, added []chaosRow) error {
	rows, err := chaosRows(path)
	if err != nil {
		return err
	}
	for _, row := range added {
		rows = append(slices.DeleteFunc(rows, func(old chaosRow) bool { return old[0] == row[0] }), row)
	}
	slices.SortFunc(rows, func(a, b chaosRow) int {
		x, _ := strconv.Atoi(a[0])
		y, _ := strconv.Atoi(b[0])
		return x - y
	})
	var b strings.Builder
	b.WriteString(chaosHead)
	b.WriteString(chaosTotals(rows))
	columns := strings.Count(chaosColumns, "|") + 1
	fmt.Fprintf(&b, "| %s |\n|%s\n", chaosColumns, strings.Repeat("---|", columns))
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

func chaosTotals(rows []chaosRow) string {
	var events, lost, reordered, repeated int
	slowest := 0.0
	for _, row := range rows {
		for i, sum := range map[int]*int{6: &events, 7: &lost, 8: &reordered, 9: &repeated} {
			n, _ := strconv.Atoi(row[i])
			*sum += n
		}
		seconds, _ := strconv.ParseFloat(strings.TrimSuffix(row[12], " s"), 64)
		slowest = max(slowest, seconds)
	}
	return fmt.Sprintf("**%d schedules, %d events: %d lost, %d reordered, %d repeated; slowest recovery %.1f s.**\n\n", len(rows), events, lost, reordered, repeated, slowest)
}

// chaosRows reads the rows of a report, none if there is no file.
func chaosRows(path string) ([]chaosRow, error) {
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var rows []chaosRow
	for lines := bufio.NewScanner(file); lines.Scan(); {
		cells := strings.Split(strings.Trim(lines.Text(), "| "), " | ")
		if _, err := strconv.Atoi(cells[0]); err == nil && len(cells) == strings.Count(chaosColumns, "|")+1 {
			rows = append(rows, cells)
		}
	}
	return rows, nil
}

func TestChaosReportKeepsOneLineOfEachSeed(t *testing.T) {
	path := t.TempDir() + "/chaos.md"
	outcome := func(seed uint64, events int, recovery time.Duration) chaosRow {
		o := &chaosOutcome{schedule: scheduleOf(seed), recovery: recovery, stalls: []string{"partition", "kafka"}, hash: "c0ffee00"}
		o.report.Events = events
		return o.row("abc1234")
	}
	for _, rows := range [][]chaosRow{{outcome(10, 5, time.Second)}, {outcome(9, 7, 2*time.Second), outcome(10, 6, time.Second)}} {
		if err := chaosReport(path, rows); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := chaosRows(path)
	if err != nil || len(rows) != 2 || rows[0][0] != "9" || rows[1][6] != "6" {
		t.Errorf("rows %v, %v", rows, err)
	}
	if want := "**2 schedules, 13 events: 0 lost, 0 reordered, 0 repeated; slowest recovery 2.0 s.**"; !strings.Contains(string(text), want) {
		t.Errorf("does not say %q:\n%s", want, text)
	}
}
