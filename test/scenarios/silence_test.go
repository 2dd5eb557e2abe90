package scenarios

import (
	"flag"
	"fmt"
	"testing"

	"github.com/cdcpub/cdcpub/test/harness"
)

var silentMiB = flag.Int("silence.mib", 300, "size of the transaction in TestSilentServerIsNotLeft, MiB")

// While PostgreSQL decodes a large transaction that is none of ours it may say
// nothing for longer than wal_sender_timeout. Whoever reconnects then has it
// decoded again, for ever.
func TestSilentServerIsNotLeft(t *testing.T) {
	for _, version := range versions {
		t.Run("PostgreSQL_"+version, func(t *testing.T) {
			parallel(t)
			s := newStand(t, options{
				postgres: harness.Postgres(t, version),
				sections: map[string]string{"postgres": "  wal_sender_timeout: 1s\n  status_interval: 500ms\n"},
			})
			s.exec("CREATE TABLE foreign_table (text text)")
			p := s.run()
			s.load(1, 10)
			s.delivered()
			s.exec(fmt.Sprintf("INSERT INTO foreign_table SELECT repeat('x', 1000) FROM generate_series(1, %d)", *silentMiB*1000))
			s.load(1, 10)
			s.delivered()
			s.stop(p)
			if report := s.check(nil); s.sessions() != 1 || report.Repeated != 0 {
				t.Errorf("%d sessions, %d repeated: the publisher left the server\n%s", s.sessions(), report.Repeated, p.Stderr())
			}
		})
	}
}

// A publisher that waits for Kafka keeps its session, whatever the server has to
// say: a new one would decode everything again. Many small messages are what
// fills the buffers of the kernel to the point where it drops some.
func TestWaitingForKafkaCostsNoSession(t *testing.T) {
	parallel(t)
	s := newStand(t, options{topic: rejectingTopic, sections: map[string]string{
		"kafka": rejectingSections["kafka"], "": rejectingSections[""] + "window: {records: 100}\n", "postgres": quickLease["postgres"],
	}})
	p := s.run()
	s.exec(`INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type, payload)
		VALUES ('order', 'large', 0, 'T', to_jsonb(repeat('x', 50000)))`)
	s.awaitLog(p, "rejected")
	const transactions = 10_000
	s.exec("SET synchronous_commit = off")
	s.exec(fmt.Sprintf(`DO $$ BEGIN FOR n IN 1..%d LOOP
		INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type) VALUES ('order', 'small', n, 'T');
		COMMIT;
	END LOOP; END $$`, transactions))
	s.awaitOldWalsender("20s") // several times wal_sender_timeout
	s.deliverToALargerTopic(p)
	if report := s.check(nil); report.Events != 1+transactions || s.sessions() != 2 {
		t.Errorf("%d events, %d sessions; want %d and 2", report.Events, s.sessions(), 1+transactions)
	}
}

// awaitOldWalsender waits until the slot's holder has been there for that long.
func (s *stand) awaitOldWalsender(age string) {
	s.t.Helper()
	s.until("the walsender has been there for "+age, func() bool {
		var old bool
		err := s.sql.QueryRow(s.ctx, `SELECT now() - a.backend_start > $2::interval FROM pg_stat_activity a JOIN pg_replication_slots s ON s.active_pid = a.pid
			WHERE s.slot_name = $1`, s.slot, age).Scan(&old)
		return err == nil && old
	})
}
