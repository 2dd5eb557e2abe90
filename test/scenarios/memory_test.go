package scenarios

import (
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

const MiB = 1 << 20

// measured is a build without the race detector, whose memory may be judged.
func measured(t testing.TB) string { return shared.Binary(t, harness.BuildOptions{}) }

// What load writes can be computed from a row's aggregate and version, so the
// oracle need not keep it: a million rows are large enough without.
var computed = harness.OracleOptions{Columns: map[string]string{"aggregate_type": "", "event_type": "", "payload": ""}}

func expectComputed(o *verify.Options) {
	text := strings.Repeat("x", 100)
	o.Expect.Value = func(r verify.Row) []byte {
		_, id, _ := strings.Cut(r.AggregateID, "-")
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return nil
		}
		return fmt.Appendf(nil, `{"text": "%s", "number": %d}`, text, r.Version*aggregates+n)
	}
	o.Expect.Headers = func(r verify.Row) []verify.Header {
		r.EventType = "OrderChanged"
		return verify.DefaultHeaders(r)
	}
}

func TestMillionRowTransactionInBoundedMemory(t *testing.T) {
	parallel(t)
	s := newStand(t, options{binary: measured(t), oracle: computed})
	s.load(1, 1_000_000)
	began := time.Now()
	p := s.run()
	s.delivered()
	took := time.Since(began)
	s.stop(p)
	t.Logf("VmHWM %.1f MiB, %.0f rows/s", float64(p.VmHWM())/MiB, 1_000_000/took.Seconds())
	if p.VmHWM() == 0 || p.VmHWM() > 64*MiB {
		t.Errorf("VmHWM %d bytes for one transaction of a million rows", p.VmHWM())
	}
	// The test's own memory: a million rows live, little garbage beside them.
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	s.rows = make([]verify.Row, 0, 1_000_000)
	if report := s.check(expectComputed); report.Events != 1_000_000 {
		t.Errorf("%d events", report.Events)
	}
}

// Ten minutes without Kafka at 1000 events a second are 600,000 rows, some 180
// windows of 4 MiB. Here it is some ninety of a quarter.
const (
	outageWindow = "window:\n  bytes: 1MiB\n"
	outageRows   = 80_000
)

// An outage under load: memory stays flat once the window is full, the log
// stays short, PostgreSQL keeps the connection, and everything arrives
// afterwards.
func TestOutageUnderLoadKeepsMemoryFlat(t *testing.T) {
	parallel(t)
	cluster := harness.Kafka(t, harness.KafkaOptions{})
	s := newStand(t, options{binary: measured(t), kafka: cluster, http: true, sections: map[string]string{"": outageWindow}})
	p := s.run()
	s.load(100, 100)
	s.delivered()
	s.no(cluster.Kill(0))
	s.load(100, 100)
	s.awaitLog(p, "stalled")
	s.until("the window is full", func() bool { return s.status().at("in_flight", "full") == true })
	window := s.status().number("in_flight", "records")
	full, lines := p.VmHWM(), len(p.Log())

	// As long as it takes for every kind of retry, reminder and status to come
	// round several times: the server's and our timeouts are 15 s and less.
	const outage = 60 * time.Second
	pause := time.NewTicker(outage / 40)
	defer pause.Stop()
	for range 40 {
		s.load(2, outageRows/80)
		<-pause.C
	}
	windows := float64(outageRows) / window
	grown, more := p.VmHWM(), len(p.Log())-lines
	t.Logf("%.0f windows of %.0f records: VmHWM %.1f MiB when the window was full, %.1f MiB after %s, %d log lines",
		windows, window, float64(full)/MiB, float64(grown)/MiB, outage, more)
	if windows < 60 {
		t.Errorf("the load was only %.0f windows", windows)
	}
	if full == 0 || float64(grown) > 1.1*float64(full) {
		t.Errorf("VmHWM grew from %d to %d bytes during the outage", full, grown)
	}
	if more > 5 {
		t.Errorf("%d log lines during the outage:\n%s", more, p.Stderr())
	}
	if n := s.status().number("sessions"); n != 1 {
		t.Errorf("%v replication connections, want one", n)
	}
	s.no(cluster.Start(s.ctx, 0))
	s.delivered()
	t.Logf("VmHWM %.1f MiB at the end", float64(p.VmHWM())/MiB)
	s.stop(p)
	s.check(nil)
}
