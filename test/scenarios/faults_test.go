package scenarios

import (
	"context"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/test/harness"
)

func TestCleanRestartsRepeatNothing(t *testing.T) {
	parallel(t)
	cleanRestarts(newStand(t, options{}))
}

// cleanRestarts: SIGTERM delivers and confirms what is open, so that the next
// start repeats nothing, ten times.
func cleanRestarts(s *stand) {
	for range 10 {
		p := s.run()
		s.load(10, 20)
		s.delivered()
		s.stop(p)
		s.betweenRuns()
	}
	if report := s.check(nil); report.Repeated != 0 {
		s.t.Errorf("%d records repeated after clean restarts", report.Repeated)
	}
}

func TestSIGTERMInTheMiddleOfALargeTransaction(t *testing.T) {
	parallel(t)
	sigtermInTransaction(newStand(t, options{}))
}

// sigtermInTransaction: a shutdown reads on to the end of the open transaction.
// A cancelled context is never taken for a commit.
func sigtermInTransaction(s *stand) {
	consumer := harness.NewConsumer(s.t, s.kafka.Direct(), s.topic)
	s.load(1, 50000)
	p := s.run()
	s.arrived(consumer, 1000)
	s.no(p.Signal(syscall.SIGTERM))
	s.exit(p)
	s.betweenRuns()
	p = s.run()
	s.load(1, 10)
	s.delivered()
	s.stop(p)
	s.check(nil)
}

func TestKill9WhileTheBrokerStalls(t *testing.T) {
	killWhileStalled(newStand(t, options{kafka: proxied(t)}), 20)
}

// killWhileStalled: the publisher dies at random moments while the broker does
// not answer; whatever was read and not acknowledged comes again.
func killWhileStalled(s *stand, times int) {
	seed := uint64(time.Now().UnixNano())
	s.t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	proxy := s.kafka.Proxy(0)
	for range times {
		p := s.run()
		s.load(20, 10)
		proxy.Freeze()
		s.load(20, 10)
		// The moment of death is what is random here; nothing waits for it.
		<-time.After(time.Duration(random.IntN(300)) * time.Millisecond)
		s.no(p.Kill9())
		proxy.Cut() // what the proxy still holds dies with the publisher
		s.no(proxy.Restore())
	}
	p := s.run()
	s.load(1, 10)
	s.delivered()
	s.stop(p)
	s.check(nil)
}

func TestWalsenderTerminated(t *testing.T) {
	parallel(t)
	walsenderTerminated(newStand(t, options{}))
}

// walsenderTerminated: the replication connection is ended on the server's
// side, with rows on it.
func walsenderTerminated(s *stand) {
	p := s.run()
	for range 5 {
		s.load(50, 20)
		s.exec("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = $1 AND active", s.slot)
		s.load(50, 20)
		s.delivered()
	}
	s.stop(p)
	s.check(nil)
}

func TestPostgreSQLKilledAndRestarted(t *testing.T) {
	parallel(t)
	s := newStand(t, options{postgres: harness.Postgres(t, "")})
	p := s.run()
	for range 3 {
		s.load(50, 20)
		s.no(s.pg.Kill())
		s.no(s.pg.Start(s.ctx))
		s.sql = s.connect()
		s.load(50, 20)
		s.delivered()
	}
	s.stop(p)
	// The slot may stand earlier after a crash than it had confirmed.
	s.check(nil)
}

func TestBrokerRestarted(t *testing.T) {
	parallel(t)
	s := newStand(t, options{kafka: harness.Kafka(t, harness.KafkaOptions{})})
	p := s.run()
	for range 2 {
		s.load(50, 20)
		s.no(s.kafka.Kill(0))
		s.load(50, 20)
		s.no(s.kafka.Start(s.ctx, 0))
		s.delivered()
	}
	s.stop(p)
	s.check(nil)
}

func TestAnswersLostAfterAppend(t *testing.T) {
	s := newStand(t, options{kafka: proxied(t)})
	p := s.run()
	s.load(50, 20)
	s.delivered()
	for range 3 {
		s.kafka.Proxy(0).DropResponses()
		s.load(50, 20)
		s.until("the producer has noticed", func() bool { return s.kafka.Proxy(0).Connections() == 0 })
		s.no(s.kafka.Proxy(0).Restore())
		s.delivered()
	}
	s.stop(p)
	// Sequence numbers let the broker drop what it already has.
	if report := s.check(nil); report.Repeated != 0 {
		t.Errorf("%d records repeated although their sequence numbers were known", report.Repeated)
	}
}

func TestCleanRestartsUnderLoadRepeatNothing(t *testing.T) {
	parallel(t)
	restartsUnderLoad(newStand(t, options{}))
}

// restartsUnderLoad: writers do not stop for our restarts, and a backlog of
// small transactions lies behind the one at which we stop. What a clean
// shutdown has delivered is confirmed to the end of the last transaction.
func restartsUnderLoad(s *stand) {
	consumer := harness.NewConsumer(s.t, s.kafka.Direct(), s.topic)
	ctx, cancel := context.WithCancel(s.ctx)
	written := make(chan error, 1)
	go func() { written <- s.writeUntil(ctx) }()
	for i := range 5 {
		s.load(2000, 1)
		p := s.run()
		s.arrived(consumer, len(consumer.Records())+100)
		s.no(p.Signal(syscall.SIGTERM))
		if code := s.exit(p); code != 0 {
			s.t.Fatalf("exit %d in round %d\n%s", code, i, p.Stderr())
		}
		s.betweenRuns()
	}
	cancel()
	s.no(<-written)
	p := s.run()
	s.delivered()
	s.stop(p)
	if report := s.check(nil); report.Repeated != 0 {
		s.t.Errorf("%d records repeated after clean restarts", report.Repeated)
	}
}

func TestKeepalivesOverRowsInFlight(t *testing.T) {
	keepalivesOverRowsInFlight(newStand(t, options{kafka: proxied(t)}))
}

// keepalivesOverRowsInFlight: while the broker does not answer, other writes
// and keepalives move the server's position far beyond our rows. It must not be
// confirmed; then the publisher dies.
func keepalivesOverRowsInFlight(s *stand) {
	p := s.run()
	s.load(20, 10)
	s.delivered()
	proxy := s.kafka.Proxy(0)
	proxy.Freeze()
	s.load(20, 10)
	s.keepaliveBeyond()
	s.no(s.sampler.take(s.ctx, s, s.sql))
	s.no(p.Kill9())
	proxy.Cut()
	s.no(proxy.Restore())
	p = s.run()
	s.load(1, 10)
	s.delivered()
	s.stop(p)
	s.check(nil)
}

func TestBrokerCutOffUnderLoad(t *testing.T) {
	brokerCutOff(newStand(t, options{kafka: proxied(t)}))
}

// brokerCutOff: the connection to the broker is lost with requests on it, and
// refused for a while.
func brokerCutOff(s *stand) {
	p := s.run()
	proxy := s.kafka.Proxy(0)
	for range 3 {
		s.load(10, 100)
		proxy.Freeze()
		s.load(10, 100)
		proxy.Cut()
		s.load(10, 100)
		s.no(proxy.Restore())
		s.delivered()
	}
	s.stop(p)
	s.check(nil)
}
