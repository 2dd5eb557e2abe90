package scenarios

import "testing"

func TestInterleavedAndSwappedCommits(t *testing.T) {
	parallel(t)
	swappedCommits(newStand(t, options{}))
}

// swappedCommits: the transaction that wrote first commits last. Commit order
// decides, not row order.
func swappedCommits(s *stand) {
	p := s.run()
	a, b := s.connect(), s.connect()
	const insert = "INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type) VALUES ('order', $1, $2, 'T')"
	for i := range 200 {
		for _, step := range []struct {
			first bool
			sql   string
			args  []any
		}{
			{true, "BEGIN", nil}, {false, "BEGIN", nil},
			{true, insert, []any{"a", i}}, {false, insert, []any{"b", i}}, {true, insert, []any{"c", i}},
			{false, "COMMIT", nil}, {true, "COMMIT", nil},
		} {
			conn := b
			if step.first {
				conn = a
			}
			_, err := conn.Exec(s.ctx, step.sql, step.args...)
			s.no(err)
		}
	}
	s.delivered()
	s.stop(p)
	s.check(nil)
}

func TestThousandRowsInOneTransactionAndThousandTransactions(t *testing.T) {
	parallel(t)
	s := newStand(t, options{})
	p := s.run()
	s.load(1, 1000)
	s.load(1000, 1)
	s.delivered()
	s.stop(p)
	s.check(nil)
}

func TestSavepointRollbackPublishesOnlyWhatWasKept(t *testing.T) {
	parallel(t)
	savepointRollback(newStand(t, options{}))
}

func savepointRollback(s *stand) {
	p := s.run()
	for i := range 20 {
		s.exec("BEGIN")
		s.exec("INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type) VALUES ('order', 'kept', $1, 'T')", 2*i)
		s.exec("SAVEPOINT s")
		s.exec("INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type) VALUES ('order', 'undone', $1, 'T')", i)
		s.exec("ROLLBACK TO SAVEPOINT s")
		s.exec("INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type) VALUES ('order', 'kept', $1, 'T')", 2*i+1)
		s.exec("COMMIT")
	}
	s.delivered()
	s.stop(p)
	if report := s.check(nil); report.Events != 40 {
		s.t.Errorf("%d events, want 40", report.Events)
	}
}
