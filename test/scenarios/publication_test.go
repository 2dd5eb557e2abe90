package scenarios

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pglogrepl"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/slotmon"
	"github.com/cdcpub/cdcpub/test/harness"
)

// alteration is what somebody does to the publication while cdcpub runs and
// writers write. In its statements {p} is the publication, and "rows" writes
// some.
type alteration struct {
	name  string
	since string // the first version that has it; empty: every
	does  []string
	// says is what the blocked publisher must say, cures what it or the
	// operator's manual tells to do. Then it is started again.
	says  []string
	cures []string
	alert slotmon.FindingID
	// loses: rows are left out by PostgreSQL for good.
	loses bool
}

const changed = "was changed while cdcpub was running"

// alterations after which the slot can still be read.
var alterations = []alteration{
	{name: "table out of it", does: []string{"ALTER PUBLICATION {p} DROP TABLE outbox", "rows"},
		says: []string{"does not contain outbox table public.outbox"}, cures: []string{"ALTER PUBLICATION {p} ADD TABLE outbox"},
		alert: slotmon.PublicationTables, loses: true},
	{name: "table out and in again", does: []string{"ALTER PUBLICATION {p} DROP TABLE outbox", "rows", "ALTER PUBLICATION {p} ADD TABLE outbox", "rows"},
		says: []string{changed, "compare the outbox with the topics", "restart cdcpub"}, alert: slotmon.PublicationChanged, loses: true},
	{name: "updates only", does: []string{"ALTER PUBLICATION {p} SET (publish = 'update')", "rows"},
		says: []string{"does not publish inserts"}, cures: []string{"ALTER PUBLICATION {p} SET (publish = 'insert')"},
		alert: slotmon.PublicationTables, loses: true},
	{name: "row filter", since: "15", does: []string{"ALTER PUBLICATION {p} SET TABLE outbox WHERE (aggregate_version < 0)", "rows"},
		says: []string{"has a row filter on public.outbox"}, cures: []string{"ALTER PUBLICATION {p} SET TABLE outbox"},
		alert: slotmon.PublicationTables, loses: true},
	{name: "all tables", does: []string{"BEGIN", "DROP PUBLICATION {p}", "CREATE PUBLICATION {p} FOR ALL TABLES WITH (publish = 'insert')", "COMMIT", "rows"},
		says: []string{changed}, alert: slotmon.PublicationChanged},
	{name: "tables in schema", since: "15", does: []string{"ALTER PUBLICATION {p} SET TABLES IN SCHEMA public", "rows"},
		says: []string{changed}, alert: slotmon.PublicationChanged},
	{name: "via root", does: []string{"ALTER PUBLICATION {p} SET (publish_via_partition_root = false)", "ALTER PUBLICATION {p} SET (publish_via_partition_root = true)", "rows"},
		says: []string{changed}, alert: slotmon.PublicationChanged},
}

func TestAlteredPublicationBlocksThePublisherAndSaysFromWhere(t *testing.T) {
	for _, version := range versions {
		for _, a := range alterations {
			if version < a.since {
				continue
			}
			t.Run(version+"/"+a.name, func(t *testing.T) {
				parallel(t)
				altered(t, version, a)
			})
		}
	}
}

func altered(t *testing.T, version string, a alteration) {
	w := harness.NewWebhook(t)
	s := newStand(t, options{postgres: shared.Postgres(t, version, "max_prepared_transactions=10"), http: true, sections: alerting(w)})
	p := s.run()
	written := s.underLoad()
	s.load(2, 10)
	s.delivered()
	s.watched()
	before := s.written()
	s.does(a.does)

	text := fmt.Sprint(s.blockedProcess(p)["error"])
	s.says(text, a.says...)
	from := s.lsnIn(text, `rows written after LSN ([0-9A-F]+/[0-9A-F]+) may be missing in the topics`)
	if from > before {
		t.Errorf("the publisher says that nothing before %s is missing; the publication was altered after %s", from, before)
	}
	s.alert(w, 0, a.alert, "raised", slotmon.Critical, "nothing written before LSN")

	s.does(a.cures)
	cured := s.written()
	s.load(2, 10)
	written()
	if code := s.stopBlocked(p); code != 3 && code != 4 {
		t.Errorf("exit %d of a publisher that waits for a human, want 3 or 4\n%s", code, p.Stderr())
	}
	p = s.run()
	s.delivered()
	s.stop(p)
	missing := s.missing()
	if (len(missing) > 0) != a.loses {
		t.Errorf("%d rows are missing in the topic; that some are is %v", len(missing), a.loses)
	}
	given := map[string]bool{}
	for _, row := range missing {
		given[row.EventID] = true
		if row.CommitEnd <= from || row.CommitEnd > cured {
			t.Errorf("a row that was committed at %s is missing, outside of what the publisher named: from %s to the cure at %s", row.CommitEnd, from, cured)
		}
	}
	s.check(func(o *verify.Options) { o.Quarantined = given })
}

// underLoad writes until the function that it returns is called.
func (s *stand) underLoad() func() {
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() { done <- s.writeUntil(ctx) }()
	return func() {
		s.t.Helper()
		cancel()
		s.no(<-done)
	}
}

// watched waits until the monitor has taken two samples more: the later of them
// saw the publication as it is now.
func (s *stand) watched() {
	s.t.Helper()
	sampled := func() string { return s.status().text("monitor", "servers", "0", "asked") }
	for range 2 {
		last := sampled()
		s.until("the slot was sampled", func() bool { return sampled() != last })
	}
}

func (s *stand) does(statements []string) {
	s.t.Helper()
	for _, statement := range statements {
		if statement == "rows" {
			s.load(1, 10)
			continue
		}
		s.exec(strings.ReplaceAll(statement, "{p}", s.slot))
	}
}

func (s *stand) lsnIn(text, pattern string) pglogrepl.LSN {
	s.t.Helper()
	lsn, err := pglogrepl.ParseLSN(submatch(text, pattern))
	if err != nil {
		s.t.Fatalf("names no LSN by %s:\n%s", pattern, text)
	}
	return lsn
}

// missing are the rows of the history that no record in the topics has.
func (s *stand) missing() []verify.Row {
	s.t.Helper()
	s.history()
	found := map[string]bool{}
	s.no(harness.ReadEach(s.ctx, s.kafka.Direct(), s.topics, func(r verify.Record) error {
		for _, header := range r.Headers {
			if header.Key == "id" {
				found[string(header.Value)] = true
			}
		}
		return nil
	}))
	var missing []verify.Row
	for _, row := range s.rows {
		if !found[row.EventID] {
			missing = append(missing, row)
		}
	}
	return missing
}
