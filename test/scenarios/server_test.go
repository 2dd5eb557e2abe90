package scenarios

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

// fastStopLimit is how long an operator may have to wait for PostgreSQL because
// of us.
const fastStopLimit = 15 * time.Second

func TestFastStopWithKafkaUp(t *testing.T) {
	parallel(t)
	s := newStand(t, options{postgres: harness.Postgres(t, "")})
	p := s.run()
	s.load(100, 10)
	s.no(s.pg.Stop(pgserver.Fast, fastStopLimit))
	s.no(s.pg.Start(s.ctx))
	s.sql = s.connect()
	s.load(10, 10)
	s.delivered()
	s.stop(p)
	s.check(nil)
}

func TestFastStopWithKafkaDown(t *testing.T) {
	parallel(t)
	fastStop(t, "", 20, 10)
}

// The window is full and the message that announces the shutdown lies behind
// data that is not read.
func TestFastStopWithKafkaDownAndFullWindow(t *testing.T) {
	parallel(t)
	fastStop(t, "", 200, 1000)
}

func fastStop(t *testing.T, version string, transactions, rows int) {
	s := newStand(t, options{postgres: harness.Postgres(t, version), kafka: harness.Kafka(t, harness.KafkaOptions{})})
	p := s.run()
	s.load(10, 10)
	s.delivered()
	s.no(s.kafka.Kill(0))
	s.load(transactions, rows)
	s.awaitLog(p, "stalled")
	s.no(s.pg.Stop(pgserver.Fast, fastStopLimit))
	s.no(s.pg.Start(s.ctx))
	s.sql = s.connect()
	s.no(s.kafka.Start(s.ctx, 0))
	s.delivered()
	s.stop(p)
	s.check(nil)
}

// followLimit is how long the slot of an idle outbox may trail other writes.
const followLimit = 15 * time.Second

func TestIdleOutboxHoldsNoWAL(t *testing.T) {
	parallel(t)
	idleOutbox(newStand(t, options{postgres: harness.Postgres(t, "")}))
}

// idleOutbox: while the outbox is quiet the slot follows what others write.
func idleOutbox(s *stand) {
	p := s.run()
	s.load(1, 10)
	s.delivered()
	other, err := pgx.Connect(s.ctx, s.pg.URL("postgres"))
	s.no(err)
	s.t.Cleanup(func() { _ = other.Close(s.ctx) })
	for where, conn := range map[string]*pgx.Conn{"another table": s.sql, "another database": other} {
		_, err := conn.Exec(s.ctx, "CREATE TABLE noise AS SELECT repeat('x', 1000) AS text FROM generate_series(1, 200000)")
		s.no(err)
		target := s.written()
		began := time.Now()
		s.until("the slot has followed 200 MB written to "+where, func() bool {
			lsn, err := harness.ConfirmedFlushLSN(s.ctx, s.url, s.slot)
			return err == nil && lsn >= target
		})
		if took := time.Since(began); took > followLimit {
			s.t.Errorf("the slot followed %s after %s", where, took)
		}
	}
	s.stop(p)
	s.check(nil)
}

func TestHostileRoleAndDatabaseSettings(t *testing.T) {
	parallel(t)
	s := newStand(t, options{postgres: harness.Postgres(t, ""), sections: map[string]string{
		"outbox": "  headers: {id: event_id, aggregateVersion: aggregate_version, eventType: event_type, at: at, f: f, i: i, b: b}\n",
	}})
	// init makes text columns for headers; this table has other types.
	s.exec("ALTER TABLE outbox DROP at, DROP f, DROP i, DROP b, ADD at timestamptz, ADD f float8, ADD i interval, ADD b bytea")
	for _, setting := range []string{
		"DateStyle = 'SQL, DMY'", "TimeZone = 'Asia/Kathmandu'", "IntervalStyle = 'sql_standard'",
		"extra_float_digits = -15", "bytea_output = 'escape'", "client_encoding = 'LATIN1'", "client_min_messages = 'error'",
	} {
		s.exec("ALTER ROLE postgres SET " + setting)
		s.exec(fmt.Sprintf("ALTER DATABASE %s SET %s", s.slot, setting))
	}
	p := s.run()
	s.exec(`INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type, payload, at, f, i, b)
		VALUES ('order', 'ü', 1, 'T', '{"ü": "€"}', '2026-02-03 04:05:06.789+00', 0.1::float8 + 0.2, '1 year 2 days 03:04:05', '\x00ff41')`)
	s.delivered()
	s.stop(p)
	text := func(v string) []byte { return []byte(v) }
	s.check(func(o *verify.Options) {
		o.Expect.Headers = func(r verify.Row) []verify.Header {
			return append(verify.DefaultHeaders(r),
				verify.Header{Key: "at", Value: text("2026-02-03 04:05:06.789+00")},
				verify.Header{Key: "f", Value: text("0.30000000000000004")},
				verify.Header{Key: "i", Value: text("1 year 2 days 03:04:05")},
				verify.Header{Key: "b", Value: []byte{0, 0xff, 'A'}})
		}
	})
}
