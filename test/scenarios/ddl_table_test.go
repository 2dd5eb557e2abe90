package scenarios

import (
	"fmt"
	"testing"

	"github.com/cdcpub/cdcpub/internal/verify"
)

// A publication contains tables by oid. One that takes the name of another is
// not in it.
const (
	newOutbox = "CREATE TABLE outbox (LIKE outbox_old INCLUDING ALL)"
	rename    = "ALTER TABLE outbox RENAME TO outbox_old"
)

// monitored says how often the catalogs are looked at beside the stream.
func monitored(interval string) map[string]string {
	return map[string]string{"": "slot_monitor:\n  interval: " + interval + "\n"}
}

func TestTheOutboxIsReplacedInOneTransaction(t *testing.T) {
	parallel(t)
	replaced(newStand(t, options{sections: monitored("1h")}))
}

// replaced: if the new table is published from its first row on, nothing is
// lost, in the stream that runs, after a restart in the middle of it, and for
// rows that only the WAL has.
func replaced(s *stand) {
	p := s.run()
	s.load(2, 5)
	s.swap()
	s.load(2, 5)
	s.delivered()
	s.stop(p)
	s.betweenRuns()
	s.load(2, 5)
	s.exec("DROP TABLE outbox_old")
	s.swap()
	s.load(2, 5)
	s.exec("DROP TABLE outbox_old")
	p = s.run()
	s.load(2, 5)
	s.delivered()
	s.stop(p)
	if report := s.check(nil); report.Events != 58 || report.Repeated != 0 {
		s.t.Errorf("%d events and %d repeated, want 58 and none", report.Events, report.Repeated)
	}
}

// swap puts a new table in the place of the outbox, with rows before and after.
func (s *stand) swap() {
	s.t.Helper()
	s.exec("BEGIN")
	s.insert(2)
	s.exec(rename)
	s.exec(newOutbox)
	s.exec("ALTER PUBLICATION " + s.slot + " ADD TABLE outbox")
	s.insert(2)
	s.exec("COMMIT")
}

func TestATableOfTheSameNameIsNotPublished(t *testing.T) {
	for name, statements := range map[string][]string{
		"renamed": {rename, newOutbox},
		"dropped": {"CREATE TABLE outbox_old (LIKE outbox INCLUDING ALL)", "DROP TABLE outbox", newOutbox},
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			unpublishedTable(newStand(t, options{sections: monitored("1s")}), statements)
		})
	}
}

// unpublishedTable: nothing in the stream tells that rows are missing. The
// monitor does, and the message says which table and what to do. What was
// written meanwhile is in no stream, and everything else arrives.
func unpublishedTable(s *stand, statements []string) {
	p := s.run()
	s.load(2, 5)
	s.delivered()
	before := len(s.history())
	s.exec("BEGIN")
	s.insert(2)
	for _, sql := range statements {
		s.exec(sql)
	}
	s.exec("COMMIT")
	s.insert(3)
	line := s.awaitLog(p, "blocked")
	s.says(fmt.Sprint(line["error"]), s.slot, "does not contain outbox table public.outbox", "ALTER PUBLICATION", "rows written before that will not be published")
	if line["slot"] != s.slot {
		s.t.Errorf("the line names slot %v, not %s", line["slot"], s.slot)
	}
	missing := map[string]bool{}
	for _, row := range s.history()[2:] {
		missing[row.EventID] = true
	}
	s.refused(s.config(), 3, []string{"does not contain outbox table public.outbox"})
	s.exec("ALTER PUBLICATION " + s.slot + " ADD TABLE outbox")
	s.load(2, 5)
	s.stopBlocked(p)
	p = s.run()
	s.load(2, 5)
	s.delivered()
	s.stop(p)
	report := s.check(func(o *verify.Options) { o.Quarantined = missing })
	if report.Events != before+25 || report.Quarantined != 3 || len(missing) != 3 {
		s.t.Errorf("%d events, %d of them missing as said; want %d and 3", report.Events, report.Quarantined, before+25)
	}
}
