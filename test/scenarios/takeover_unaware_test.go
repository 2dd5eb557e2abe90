package scenarios

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cdcpub/cdcpub/test/harness"
)

// longLease lets a publisher that is cut off believe for long that the slot is
// its own.
var longLease = map[string]string{"postgres": "  wal_sender_timeout: 10m\n"}

// A publisher loses the slot and does not hear of it, and its first claim of the
// producer id is held up until its successor has claimed and written. The
// coordinator then gives it the newest epoch, under which the broker would take
// its batch. It sends none before PostgreSQL has said that the slot is still its
// own, and PostgreSQL says otherwise.
func TestAnUnawarePublisherWithTheNewestEpochSendsNothing(t *testing.T) {
	s := newStand(t, options{kafka: proxied(t), partitions: 1, sections: longLease})
	newestEpoch(s)
}

func newestEpoch(s *stand) {
	link, err := harness.NewProxy(fmt.Sprintf("127.0.0.1:%d", s.pg.Port()))
	s.no(err)
	s.t.Cleanup(func() { _ = link.Close() })
	s.load(5, 4)

	s.kafka.Proxy(0).Freeze()
	s.options.address, s.listen = link.Addr(), s.freeAddress()
	unaware, listen := s.run(), s.listen
	s.until("it has read the rows", func() bool { return s.status().number("in_flight", "records") == 20 })
	link.Freeze()
	s.terminate()

	s.options.address, s.listen, s.options.brokers = "", "off", s.kafka.Direct()
	successor := s.run()
	s.load(5, 4)
	s.delivered()

	s.no(s.kafka.Proxy(0).Restore())
	s.listen = listen
	s.until("it has the newest epoch", func() bool {
		now := s.status()
		cause, _ := now.at("stall", "cause").(string)
		return strings.Contains(cause, "PostgreSQL has not said yet that the slot is still held") || now.number("records_acknowledged") > 0
	})
	s.no(link.Restore())
	s.awaitLog(unaware, "standby")
	s.load(5, 4)
	s.delivered()
	s.stop(unaware)
	s.stop(successor)
	s.check(nil)
}

// terminate ends the walsender that holds the slot.
func (s *stand) terminate() {
	s.t.Helper()
	s.exec("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = '" + s.slot + "'")
	s.until("the slot is free", func() (free bool) {
		s.no(s.sql.QueryRow(s.ctx, "SELECT NOT active FROM pg_replication_slots WHERE slot_name = $1", s.slot).Scan(&free))
		return free
	})
}
