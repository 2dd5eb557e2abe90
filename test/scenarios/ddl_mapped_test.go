package scenarios

import (
	"fmt"
	"testing"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

// These scenarios rename aggregate_id to subject. The oracle shows each row
// under the name that its column had.
func subjectOf(r verify.Row) []byte {
	for _, name := range []string{"aggregate_id", "subject"} {
		if v := r.Columns[name]; v != nil {
			return []byte(*v)
		}
	}
	return nil
}

func bySubject(o *verify.Options) { o.Expect.Key = subjectOf }

const (
	subjectIsKey = "  columns: {aggregate_id: subject}\n"
	insertOne    = "INSERT INTO outbox (aggregate_type, %s, aggregate_version, event_type) VALUES ('order', 'one', %d, 'T')"
)

// one writes a row of the aggregate "one" and gives its id in the named column.
func (s *stand) one(column string) {
	s.t.Helper()
	s.exec(fmt.Sprintf(insertOne, column, s.next))
	s.next++
}

func everyColumn() options { return options{oracle: harness.OracleOptions{AllColumns: true}} }

// unpublished waits until the stream stands still at the first row of the new
// shape: all before it is delivered, nothing behind it. It returns the commit
// LSN that the message names.
func (s *stand) unpublished(p *harness.Process, pending int, says ...string) string {
	s.t.Helper()
	line := s.awaitLog(p, "blocked")
	text := fmt.Sprint(line["error"])
	s.says(text, append(says, "table public.outbox", "next step: ")...)
	if line["slot"] != s.slot {
		s.t.Errorf("the line names slot %v, not %s", line["slot"], s.slot)
	}
	report := s.judge(func(o *verify.Options) { bySubject(o); o.Incomplete = true })
	if !report.OK() || report.Pending != pending {
		s.t.Fatalf("while the stream is blocked, %d pending:\n%s", pending, report.Table())
	}
	return submatch(text, `committed at LSN ([0-9A-F]+/[0-9A-F]+)`)
}

// restart ends a blocked process and starts one with other lines in the outbox
// section.
func (s *stand) restart(p *harness.Process, outbox string) *harness.Process {
	s.t.Helper()
	s.stopBlocked(p)
	s.options.sections = map[string]string{"outbox": outbox}
	return s.run()
}

func TestAMappedColumnIsRenamed(t *testing.T) {
	parallel(t)
	mappedRenamed(newStand(t, everyColumn()))
}

// mappedRenamed: the stream stops at the first row without the column, until
// the configuration names the new one.
func mappedRenamed(s *stand) {
	p := s.run()
	s.load(1, 10)
	s.delivered()
	s.exec("ALTER TABLE outbox RENAME aggregate_id TO subject")
	s.delivered()
	for range 3 {
		s.one("subject")
	}
	s.unpublished(p, 3, "has no column aggregate_id", "outbox.columns")
	p = s.restart(p, subjectIsKey)
	s.one("subject")
	s.delivered()
	s.stop(p)
	if report := s.check(bySubject); report.Events != 14 {
		s.t.Errorf("%d events, want 14", report.Events)
	}
}

func TestAMappedColumnIsRenamedForAWhile(t *testing.T) {
	parallel(t)
	renamedForAWhile(newStand(t, everyColumn()))
}

// renamedForAWhile: rows of that while have no column aggregate_id for ever,
// though the table has it again. A column of the other name lets the
// configuration that can read them start.
func renamedForAWhile(s *stand) {
	p := s.run()
	s.one("aggregate_id")
	s.delivered()
	s.exec("ALTER TABLE outbox RENAME aggregate_id TO subject")
	s.one("subject")
	s.one("subject")
	s.exec("ALTER TABLE outbox RENAME subject TO aggregate_id")
	s.one("aggregate_id")
	s.unpublished(p, 3, "has no column aggregate_id", "its columns are event_id, aggregate_type, subject,", "until such rows are published")
	s.stopBlocked(p)
	s.options.sections = map[string]string{"outbox": subjectIsKey}
	s.refused(s.config(), 3, []string{"outbox table public.outbox has no column subject", "or add the column"})
	s.exec("ALTER TABLE outbox ADD subject text")
	p = s.run()
	s.unpublished(p, 1, "has no column subject")
	p = s.restart(p, "")
	s.one("aggregate_id")
	s.delivered()
	s.stop(p)
	if report := s.check(bySubject); report.Events != 5 {
		s.t.Errorf("%d events, want 5", report.Events)
	}
}

func TestAMappedColumnIsRenamedWithinATransaction(t *testing.T) {
	parallel(t)
	renamedWithin(newStand(t, everyColumn()))
}

// renamedWithin: no configuration can publish a transaction with rows of both
// shapes. It is given up as the README says, and its rows are written again.
func renamedWithin(s *stand) {
	p := s.run()
	s.one("aggregate_id")
	s.exec("BEGIN")
	s.one("aggregate_id")
	s.exec("ALTER TABLE outbox RENAME aggregate_id TO subject")
	s.one("subject")
	s.exec("COMMIT")
	s.one("subject")
	commit := s.unpublished(p, 2, "row 2 of the transaction", "has no column aggregate_id", "A row that cannot be published")
	s.stopBlocked(p)
	s.giveUp(commit, s.rows[1], s.rows[2])
	lost := s.rows[2]
	p = s.restart(p, subjectIsKey)
	s.delivered()
	// The history cannot have an event twice: what is written again is a row of
	// its own there.
	s.exec("DELETE FROM outbox WHERE event_id = $1", lost.EventID)
	s.one("subject")
	s.delivered()
	s.stop(p)
	report := s.check(func(o *verify.Options) {
		bySubject(o)
		o.Quarantined = map[string]bool{lost.EventID: true}
	})
	if report.Events != 5 || report.Quarantined != 1 {
		s.t.Errorf("%d events, %d given up, want 5 and 1", report.Events, report.Quarantined)
	}
}

func TestAMappedColumnIsDropped(t *testing.T) {
	parallel(t)
	mappedDropped(newStand(t, everyColumn()))
}

// mappedDropped: as when it is renamed, and a configuration without the column
// goes on.
func mappedDropped(s *stand) {
	p := s.run()
	s.load(1, 10)
	s.exec("BEGIN")
	s.insert(2)
	s.exec("ALTER TABLE outbox DROP event_type")
	s.exec("COMMIT")
	s.delivered()
	const insert = "INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version) VALUES ('order', 'one', $1)"
	s.exec(insert, 1)
	s.exec(insert, 2)
	s.unpublished(p, 2, "has no column event_type", "outbox.headers")
	p = s.restart(p, "  columns: {event_type: ''}\n")
	s.exec(insert, 3)
	s.delivered()
	s.stop(p)
	report := s.check(func(o *verify.Options) {
		o.Expect.Headers = func(r verify.Row) []verify.Header {
			headers := verify.DefaultHeaders(r)
			if _, has := r.Columns["event_type"]; !has {
				headers = append(headers[:2:2], headers[3:]...)
			}
			return headers
		}
	})
	if report.Events != 15 {
		s.t.Errorf("%d events, want 15", report.Events)
	}
}
