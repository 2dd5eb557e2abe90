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

const chaosColumns = "seed | commit | PostgreSQL | brokers | publishers | faults | events | lost | excused | reordered | repeated | bound | sessions | first progress | slowest recovery | stalls named | log"

func (o *chaosOutcome) row(commit string) chaosRow {
	bound := "-"
	if o.bound > 0 {
		bound = strconv.Itoa(o.bound)
	}
	slices.Sort(o.stalls)
	r := &o.report
	return chaosRow{
		strconv.FormatUint(o.schedule.seed, 10), commit, o.schedule.servers(), o.schedule.kafka(), strconv.Itoa(o.schedule.publishers),
		o.schedule.kinds(), strconv.Itoa(r.Events), strconv.Itoa(r.Lost), strconv.Itoa(o.excused), strconv.Itoa(r.OutOfOrder + r.VersionInverted), strconv.Itoa(r.Repeated), bound,
		strconv.Itoa(o.sessions), fmt.Sprintf("%.1f s", o.recovery.first.Seconds()), fmt.Sprintf("%.1f s", o.recovery.whole.Seconds()), strings.Join(o.stalls, ", "), o.hash,
	}
}

const chaosHead = `# Chaos

Each line is one run of ` + "`make chaos`" + `: a schedule of random faults that follows from its
seed, on real PostgreSQL and real Apache Kafka (or brokers that answer as they are told,
where it says *fake*), while three writers commit transactions of one to three hundred rows,
some of them in swapped order, some rolled back. cdcpub is started again when it ends. When
the last fault is over, everything must be delivered, and the checker compares the topic
with PostgreSQL's own history: no loss, commit order, exact content, nothing confirmed
before it was acknowledged.

` + "`make chaos SEEDS=7`" + ` runs one of them again, ` + "`SEEDS=1-60 REPORT=docs/chaos.md`" + ` writes lines
here, ` + "`SEEDS=1-500 KINDS=\"leader moves,slot dropped\"`" + ` runs those with a fault of these
kinds. A seed gives the same schedule; what the machine makes of it differs from run to run.

What some of it means:

- *fake* brokers are [kfake](https://pkg.go.dev/github.com/twmb/franz-go/pkg/kfake). They answer
  produce requests with every error code of the protocol (but DUPLICATE_SEQUENCE_NUMBER,
  which would be a lie), with those that leave it open also for batches that they have
  appended, or up to 4 s late, when kafka.request_timeout (here 2 s) is over.
- *standby promoted*: the primary is stopped at once, and its standby, which has the failover
  slot, takes its place behind the same address. What is committed to a writer is on the
  standby (synchronous_standby_names), and what the standby lacks is not sent
  (synchronized_standby_slots).
- *slot dropped*, *slot invalidated*: a publisher must say so and stand still. Then the slot is
  created again and the publishers are restarted, as the message says. *Excused* are the rows
  that were in no slot: those committed after the LSN that the publisher named, or after the
  last position that was seen confirmed, up to where ` + "`cdcpub slot create`" + ` says that the new slot
  begins. Each other row must be there.
- *disk of a broker full*: no file of it grows any more, until Kafka has given up the
  directory and itself.
- *records refused*, *producer fenced*, *record too large*: a publisher waits for a human, who
  cures the cause and restarts the publishers.

*Repeated* are records beyond the first of their event; *bound* is what the number of
sessions explains (the window, here 2000 records, the largest transaction, and what was
confirmed within the last moments). It is "-" where PostgreSQL was stopped or killed, after
which it may come back with an older position, as a promoted standby may, and where the
link to it was broken, over which it does not hear what was confirmed of the rows in the
sockets' buffers. *First progress* is the longest time from
the end of the last active fault until anything more was confirmed, *slowest recovery* that
until everything written by then was: the rest is the backlog, at the speed of the machine. *Stalls named* are the kinds that
` + "`/status`" + ` gave. *Log* is the hash of the run's log.

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
	var events, lost, excused, reordered, repeated int
	slowest := 0.0
	for _, row := range rows {
		for i, sum := range map[int]*int{6: &events, 7: &lost, 8: &excused, 9: &reordered, 10: &repeated} {
			n, _ := strconv.Atoi(row[i])
			*sum += n
		}
		seconds, _ := strconv.ParseFloat(strings.TrimSuffix(row[14], " s"), 64)
		slowest = max(slowest, seconds)
	}
	return fmt.Sprintf("**%d schedules, %d events: %d lost, %d excused, %d reordered, %d repeated; slowest recovery %.1f s.**\n\n", len(rows), events, lost, excused, reordered, repeated, slowest)
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
	outcome := func(seed uint64, events int, whole time.Duration) chaosRow {
		o := &chaosOutcome{schedule: scheduleOf(seed), recovery: recovery{whole: whole}, stalls: []string{"partition", "kafka"}, hash: "c0ffee00"}
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
	if want := "**2 schedules, 13 events: 0 lost, 0 excused, 0 reordered, 0 repeated; slowest recovery 2.0 s.**"; !strings.Contains(string(text), want) {
		t.Errorf("does not say %q:\n%s", want, text)
	}
}
