package scenarios

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
)

// The oldest version that is supported and the newest that exists.
var versions = []string{"14", "18"}

// onVersions are the scenarios in which PostgreSQL's versions differ most:
// decoding, the end of a walsender, shutdown, keepalives.
var onVersions = map[string]func(*stand){
	"InterleavedAndSwappedCommits":          swappedCommits,
	"SavepointRollback":                     savepointRollback,
	"SIGTERMInTheMiddleOfALargeTransaction": sigtermInTransaction,
	"WalsenderTerminated":                   walsenderTerminated,
	"IdleOutboxHoldsNoWAL":                  idleOutbox,
	"CopyOf10000Rows":                       copied,
	"InsertAndDeleteInOneTransaction":       insertedAndDeleted,
	"PreparedTransactions":                  preparedTransactions,
}

func TestOldestAndNewestPostgreSQL(t *testing.T) {
	for _, version := range versions {
		for name, scenario := range onVersions {
			t.Run(version+"/"+name, func(t *testing.T) {
				parallel(t)
				server := shared.Postgres(t, version, "max_prepared_transactions=10")
				if got := fmt.Sprint(server.Installation().Major); got != version {
					t.Fatalf("PostgreSQL %s runs, the scenario wants %s", got, version)
				}
				scenario(newStand(t, options{postgres: server}))
			})
		}
		t.Run(version+"/FastStopWithKafkaDown", func(t *testing.T) {
			parallel(t)
			fastStop(t, version, 20, 10)
		})
	}
}

// copied: COPY writes its rows to the WAL in another form than INSERT.
func copied(s *stand) {
	const rows = 10_000
	p := s.run()
	n, err := s.sql.CopyFrom(s.ctx, pgx.Identifier{"outbox"},
		[]string{"aggregate_type", "aggregate_id", "aggregate_version", "event_type", "payload"},
		pgx.CopyFromSlice(rows, func(i int) ([]any, error) {
			return []any{"order", fmt.Sprintf("o-%d", i%aggregates), i / aggregates, "OrderChanged", map[string]int{"number": i}}, nil
		}))
	s.no(err)
	s.delivered()
	s.stop(p)
	if report := s.check(nil); n != rows || report.Events != rows || report.Repeated != 0 {
		s.t.Errorf("%d rows copied, %d events, %d repeated", n, report.Events, report.Repeated)
	}
}

// insertedAndDeleted: what counts is the INSERT in the WAL. The table is empty
// at every commit.
func insertedAndDeleted(s *stand) {
	p := s.run()
	for i := range 20 {
		s.exec("BEGIN")
		s.exec("INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type) SELECT 'order', 'gone-' || n, $1, 'T' FROM generate_series(1, 5) n", i)
		s.exec("DELETE FROM outbox")
		s.exec("COMMIT")
	}
	s.delivered()
	s.stop(p)
	if report := s.check(nil); report.Events != 100 || report.Records != 100 {
		s.t.Errorf("%d events and %d records, want 100", report.Events, report.Records)
	}
}

// preparedTransactions: a row exists from COMMIT PREPARED on, behind what was
// committed since PREPARE, and not at all after ROLLBACK PREPARED.
func preparedTransactions(s *stand) {
	const insert = "INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type) VALUES ('order', $1, $2, 'T')"
	p := s.run()
	for i := range 10 {
		kept, undone := fmt.Sprintf("%s-kept-%d", s.slot, i), fmt.Sprintf("%s-undone-%d", s.slot, i)
		s.exec("BEGIN")
		s.exec(insert, "prepared", i)
		s.exec("PREPARE TRANSACTION '" + kept + "'")
		s.exec("BEGIN")
		s.exec(insert, "undone", i)
		s.exec("PREPARE TRANSACTION '" + undone + "'")
		s.exec(insert, "between", i)
		s.delivered()
		s.exec("COMMIT PREPARED '" + kept + "'")
		s.exec("ROLLBACK PREPARED '" + undone + "'")
		s.delivered()
	}
	s.stop(p)
	if report := s.check(nil); report.Events != 20 {
		s.t.Errorf("%d events, want 20", report.Events)
	}
	for i, row := range s.rows {
		if want := []string{"between", "prepared"}[i%2]; row.AggregateID != want {
			s.t.Fatalf("the history is not what the scenario means: row %d is %s, not %s", i, row.AggregateID, want)
		}
	}
}
