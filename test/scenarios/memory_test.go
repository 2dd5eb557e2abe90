package scenarios

import (
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/test/harness"
)

const MiB = 1 << 20

// measured is a build without the race detector, whose memory may be judged.
func measured(t testing.TB) string { return shared.Binary(t, harness.BuildOptions{}) }

func TestMillionRowTransactionInBoundedMemory(t *testing.T) {
	s := newStand(t, options{binary: measured(t)})
	s.load(1, 1_000_000)
	began := time.Now()
	p := s.run()
	s.delivered()
	took := time.Since(began)
	s.stop(p)
	t.Logf("VmHWM %.1f MiB, %.0f rows/s", float64(p.VmHWM())/MiB, 1_000_000/took.Seconds())
	if p.VmHWM() > 64*MiB {
		t.Errorf("VmHWM %d bytes for one transaction of a million rows", p.VmHWM())
	}
	s.check(nil)
}

// An outage under load: memory stays flat once the window is full, the log
// stays short, and everything arrives afterwards. Kafka is away for as long as
// the load takes, which is many windows.
func TestOutageUnderLoadKeepsMemoryFlat(t *testing.T) {
	cluster := harness.Kafka(t, harness.KafkaOptions{})
	s := newStand(t, options{binary: measured(t), kafka: cluster})
	p := s.run()
	s.load(100, 100)
	s.delivered()
	s.no(cluster.Kill(0))
	s.load(100, 1000)
	s.awaitLog(p, "stalled")
	full := p.VmHWM()
	lines := len(p.Log())
	for range 20 {
		s.load(50, 1000)
	}
	if grown := p.VmHWM(); float64(grown) > 1.1*float64(full) {
		t.Errorf("VmHWM grew from %d to %d bytes during the outage", full, grown)
	}
	if more := len(p.Log()) - lines; more > 10 {
		t.Errorf("%d log lines during the outage", more)
	}
	s.no(cluster.Start(s.ctx, 0))
	s.delivered()
	t.Logf("VmHWM %.1f MiB when the window was full, %.1f MiB at the end", float64(full)/MiB, float64(p.VmHWM())/MiB)
	s.stop(p)
	s.check(nil)
}
