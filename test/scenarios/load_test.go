package scenarios

import (
	"context"
	"fmt"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/test/harness"
)

func (s *stand) connect() *pgx.Conn {
	s.t.Helper()
	conn, err := pgx.Connect(s.ctx, s.url)
	s.no(err)
	s.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (s *stand) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.sql.Exec(s.ctx, sql, args...); err != nil {
		s.t.Fatalf("%v\n%s", err, sql)
	}
}

// load writes transactions of the given number of rows, one after the other.
// Every row goes to the next aggregate in turn, with its next version.
func (s *stand) load(transactions, rows int) {
	s.t.Helper()
	s.exec(fmt.Sprintf(`DO $$ BEGIN FOR t IN 0..%d LOOP
		INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type, payload)
		SELECT 'order', '%s-' || i %% %d, i / %d, 'OrderChanged', jsonb_build_object('number', i, 'text', repeat('x', 100))
		FROM generate_series(%d + t * %d, %d + (t + 1) * %d - 1) i;
		COMMIT; END LOOP; END $$`, transactions-1, s.prefix, aggregates, aggregates, s.next, rows, s.next, rows))
	s.next += transactions * rows
}

// writeUntil writes single-row transactions until ctx ends.
func (s *stand) writeUntil(ctx context.Context) error {
	conn, err := pgx.Connect(s.ctx, s.url)
	if err != nil {
		return err
	}
	defer conn.Close(s.ctx)
	return s.writeOn(ctx, conn)
}

func (s *stand) writeOn(ctx context.Context, conn *pgx.Conn) error {
	for i := 0; ctx.Err() == nil; i++ {
		_, err := conn.Exec(s.ctx, `INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type)
			VALUES ('order', $1, $2, 'T')`, fmt.Sprintf("w-%d", i%aggregates), i/aggregates)
		if err != nil {
			return err
		}
	}
	return nil
}

// written is the end of the WAL.
func (s *stand) written() pglogrepl.LSN {
	s.t.Helper()
	var end pglogrepl.LSN
	s.no(s.sql.QueryRow(s.ctx, "SELECT pg_current_wal_lsn()").Scan(&end))
	return end
}

// confirmed is the slot's confirmed_flush_lsn.
func (s *stand) confirmed() pglogrepl.LSN {
	s.t.Helper()
	lsn, err := harness.ConfirmedFlushLSN(s.ctx, s.url, s.slot)
	s.no(err)
	return lsn
}

// delivered waits until everything written so far is confirmed.
func (s *stand) delivered() {
	s.t.Helper()
	target := s.written()
	s.until("everything up to "+target.String()+" is confirmed", func() bool {
		lsn, err := harness.ConfirmedFlushLSN(s.ctx, s.url, s.slot)
		return err == nil && lsn >= target
	})
}

// keepaliveBeyond writes to another table and waits until the publisher has
// received a position beyond all that was written: had it a reason to confirm
// more, it could have.
func (s *stand) keepaliveBeyond() {
	s.t.Helper()
	s.exec("CREATE TABLE IF NOT EXISTS noise (text text)")
	s.exec("INSERT INTO noise SELECT repeat('x', 1000) FROM generate_series(1, 10000)")
	target := s.written()
	s.until("a keepalive beyond our rows was received", func() bool {
		var write pglogrepl.LSN
		err := s.sql.QueryRow(s.ctx, `SELECT r.write_lsn FROM pg_stat_replication r
			JOIN pg_replication_slots s ON s.active_pid = r.pid WHERE s.slot_name = $1`, s.slot).Scan(&write)
		return err == nil && write >= target
	})
}

// arrived waits until the consumer has n records.
func (s *stand) arrived(consumer *harness.Consumer, n int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, s.options.patience)
	defer cancel()
	if _, err := consumer.WaitN(ctx, n); err != nil {
		s.t.Fatalf("%v%s", err, s.lastLines())
	}
}
