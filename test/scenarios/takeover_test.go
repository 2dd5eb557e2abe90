package scenarios

import (
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

// quickLease makes a takeover after a freeze quick.
var quickLease = map[string]string{"postgres": "  wal_sender_timeout: 3s\n  status_interval: 1s\n"}

// The active publisher dies, under load: the standby goes on.
func TestStandbyTakesOverFromTheDead(t *testing.T) {
	parallel(t)
	s := newStand(t, options{sections: quickLease})
	active, standby := s.pair()
	s.whileWriting(func(consumer *harness.Consumer) {
		s.no(active.Kill9())
		s.tookOver(standby, "death")
		s.arrived(consumer, len(consumer.Records())+200)
	})
	s.stop(standby)
	s.check(nil)
}

// The active publisher is frozen with full buffers, and thaws when another one
// publishes. It sends nothing more, and becomes the standby.
func TestStandbyTakesOverFromTheFrozen(t *testing.T) {
	parallel(t)
	s := newStand(t, options{sections: quickLease})
	active, standby := s.pair()
	s.whileWriting(func(consumer *harness.Consumer) {
		s.no(active.Freeze())
		s.tookOver(standby, "freeze")
		s.arrived(consumer, len(consumer.Records())+200)
		s.no(active.Thaw())
		s.awaitLog(active, "standby")
		s.arrived(consumer, len(consumer.Records())+200)
	})
	// And the other way round: what was frozen once can take over.
	s.no(standby.Kill9())
	s.awaitLog(active, "resumed")
	s.load(10, 10)
	s.delivered()
	s.stop(active)
	s.check(nil)
}

// A rolling update: the new one runs beside the old one before that is stopped.
// Nothing is repeated.
func TestRollingUpdateRepeatsNothing(t *testing.T) {
	parallel(t)
	s := newStand(t, options{sections: quickLease})
	active, next := s.pair()
	s.whileWriting(func(consumer *harness.Consumer) {
		for range 3 {
			stopped := time.Now()
			s.stop(active)
			s.awaitLog(next, "resumed")
			s.t.Logf("rolling update: published again %.1f s after SIGTERM", time.Since(stopped).Seconds())
			s.arrived(consumer, len(consumer.Records())+100)
			active, next = next, s.launch()
			s.awaitLog(next, "standby")
		}
	})
	s.stop(next)
	s.stop(active)
	if report := s.check(nil); report.Repeated != 0 {
		t.Errorf("%d records were repeated", report.Repeated)
	}
}

// pair starts an active publisher and a standby.
func (s *stand) pair() (active, standby *harness.Process) {
	s.t.Helper()
	active = s.run()
	standby = s.launch()
	s.awaitLog(standby, "standby")
	return active, standby
}

// whileWriting runs disturb while single-row transactions are written, and waits
// until all of them are delivered.
func (s *stand) whileWriting(disturb func(*harness.Consumer)) {
	s.t.Helper()
	consumer := harness.NewConsumer(s.t, s.kafka.Direct(), s.topics...)
	end := s.underLoad()
	s.arrived(consumer, 200)
	disturb(consumer)
	end()
	s.delivered()
}

func (s *stand) tookOver(standby *harness.Process, after string) {
	s.t.Helper()
	began := time.Now()
	s.awaitLog(standby, "resumed")
	s.t.Logf("taken over %.1f s after %s", time.Since(began).Seconds(), after)
}

// A request that a dead publisher has written arrives when its successor has
// gone on. With the fence the broker refuses it. Without, a consumer sees old
// records again, behind newer ones; first occurrences stay in order.
func TestLateRequestOfADeadPublisher(t *testing.T) {
	for name, late := range map[string]func(*stand, verify.Report){
		"fenced": func(s *stand, r verify.Report) {
			if !r.OK() {
				s.t.Errorf("the guarantees do not hold:\n%s", r.Table())
			}
			record(s.t.Name(), time.Since(s.began), r)
		},
		"unfenced": func(s *stand, r verify.Report) {
			if r.OK() || r.OutOfOrder == 0 || r.Lost+r.VersionInverted+r.Altered+r.Foreign+r.EarlyConfirmed != 0 {
				s.t.Errorf("the consumer sees something else than the documentation says:\n%s", r.Table())
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := proxied(t)
			fencing := map[string]string{"kafka": "  fencing: " + map[string]string{"fenced": "true", "unfenced": "false"}[name] + "\n"}
			s := newStand(t, options{kafka: cluster, partitions: 1, sections: fencing})
			lateRequest(s, cluster.Proxy(0))
			late(s, s.judge(nil))
		})
	}
}

// lateRequest has the dead publisher's request for 20 rows arrive behind what
// its successor has sent: them and 20 more.
func lateRequest(s *stand, proxy *harness.Proxy) {
	dead := s.run()
	s.load(5, 4)
	s.delivered()
	proxy.Freeze()
	s.load(1, 20)
	s.until("the request is on its way", func() bool { return proxy.Held() > 0 })
	s.no(dead.Kill9())
	s.options.brokers = s.kafka.Direct()
	successor := s.run()
	s.load(1, 20)
	s.delivered()
	s.no(proxy.Restore())
	// The answer finds nobody, which ends the connection.
	s.until("the late request was answered", func() bool { return proxy.Connections() == 0 })
	s.load(1, 20)
	s.delivered()
	s.stop(successor)
}
