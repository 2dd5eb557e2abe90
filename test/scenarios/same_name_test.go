package scenarios

import (
	"testing"

	"github.com/cdcpub/cdcpub/test/harness"
)

// An outbox per schema, all of the same name, on one slot: each is published,
// also in one transaction, and the order is that of the commits.
func TestOutboxOfTheSameNameInEachSchema(t *testing.T) {
	parallel(t)
	tables := []string{"sales.outbox", "billing.outbox"}
	s := newStand(t, options{unprepared: true, tables: tables, oracle: harness.OracleOptions{Tables: tables}})
	s.sql = s.connect()
	s.exec("CREATE SCHEMA sales")
	s.exec("CREATE SCHEMA billing")
	s.prepare()
	// A table of that name that is not ours, where the search path finds it
	// first.
	s.exec("CREATE TABLE public.outbox (LIKE sales.outbox INCLUDING ALL)")
	p := s.run()
	for i := range 50 {
		s.exec("BEGIN")
		for _, table := range []string{"sales.outbox", "billing.outbox", "public.outbox", "sales.outbox"} {
			s.exec("INSERT INTO "+table+` (aggregate_type, aggregate_id, aggregate_version, event_type)
				SELECT 'order', $1 || '-' || n, $2 + (SELECT count(*) FROM `+table+` WHERE aggregate_id = $1 || '-' || n), $1 FROM generate_series(1, 3) n`, table, 10*i)
		}
		s.exec("COMMIT")
	}
	s.delivered()
	s.stop(p)
	if report := s.check(nil); report.Events != 450 || report.Repeated != 0 {
		t.Errorf("%d events, %d repeated, want 450 and 0", report.Events, report.Repeated)
	}
}
