package page

import (
	"math"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/internal/latency"
	"github.com/cdcpub/cdcpub/internal/publisher"
	"github.com/cdcpub/cdcpub/slotmon"
)

// seen is an observation of the counters after so many steps.
func seen(step, acknowledged int, h *latency.Histogram) observation {
	return observation{
		at: noon.Add(time.Duration(step) * Step), latency: h,
		publisher: &publisher.Status{State: publisher.Streaming, Ready: true, Acked: acknowledged},
	}
}

func histogram(durations ...time.Duration) *latency.Histogram {
	var h latency.Histogram
	for _, d := range durations {
		h.Observe(d)
	}
	return &h
}

func TestRatesAndQuantilesAreOfTheInterval(t *testing.T) {
	var m meter
	first := m.measure(seen(0, 1000, histogram(time.Hour, time.Hour)))
	if first.rate.known() || first.p50.known() || first.p99.known() {
		t.Errorf("one observation is no interval: %+v", first)
	}
	second := m.measure(seen(1, 1500, histogram(time.Hour, time.Hour, 3*time.Millisecond, 3*time.Millisecond, 3*time.Millisecond)))
	if second.rate != 50 {
		t.Errorf("%v records per second, want 50", second.rate)
	}
	if second.p50 < 0.0025 || second.p50 > 0.005 || second.p99 < second.p50 || second.p99 > 0.005 {
		t.Errorf("p50 %v, p99 %v of records that all took 3 ms", second.p50, second.p99)
	}
	third := m.measure(seen(2, 1500, histogram(time.Hour, time.Hour, 3*time.Millisecond, 3*time.Millisecond, 3*time.Millisecond)))
	if third.rate != 0 || third.p50.known() || third.p99.known() {
		t.Errorf("nothing was acknowledged: %+v", third)
	}
}

func TestALateObservationIsDividedByTheTimeThatPassed(t *testing.T) {
	var m meter
	m.measure(seen(0, 0, nil))
	if p := m.measure(seen(6, 600, nil)); p.rate != 10 {
		t.Errorf("%v records per second, want 10", p.rate)
	}
}

func TestACounterThatRestartedIsAGapAndNotNegative(t *testing.T) {
	var m meter
	m.measure(seen(0, 1000, histogram(time.Second, time.Second)))
	restarted := m.measure(seen(1, 10, histogram(time.Millisecond)))
	if restarted.rate.known() || restarted.p50.known() || restarted.p99.known() {
		t.Errorf("%+v", restarted)
	}
	after := m.measure(seen(2, 30, histogram(time.Millisecond, time.Millisecond)))
	if after.rate != 2 || !after.p50.known() {
		t.Errorf("%+v", after)
	}
}

func TestAPublisherThatComesAndGoesIsAGap(t *testing.T) {
	var m meter
	none := observation{at: noon}
	if p := m.measure(none); p.rate.known() {
		t.Errorf("%+v", p)
	}
	if p := m.measure(seen(1, 500, histogram(time.Second))); p.rate.known() || p.p50.known() {
		t.Errorf("what it counted before was not in this interval: %+v", p)
	}
	none.at = noon.Add(2 * Step)
	if p := m.measure(none); p.rate.known() {
		t.Errorf("%+v", p)
	}
}

func TestOnlyFreshNumbersBecomePoints(t *testing.T) {
	w := newWorld()
	value := func(change func(*observation)) number {
		o := w.healthy(0, 1, noon)
		change(&o)
		var m meter
		p := m.measure(o)
		return p.slots[0].retained
	}
	if v := value(func(*observation) {}); !v.known() {
		t.Error("a fresh number is a gap")
	}
	for name, change := range map[string]func(*observation){
		"unreachable": func(o *observation) { o.monitor.Servers[0].Up = false },
		"old sample":  func(o *observation) { o.monitor.Servers[0].Sample = sample(noon.Add(-31*time.Second), -1, 0) },
		"lost slot":   func(o *observation) { o.monitor.Servers[0].Slots[0].Slot.RetainedBytes = nil },
		"no slot":     func(o *observation) { o.monitor.Servers[0].Slots[0].Slot = nil },
		"no sample":   func(o *observation) { o.monitor.Servers[0].Sample = nil },
	} {
		if v := value(change); !math.IsNaN(float64(v)) {
			t.Errorf("%s: %v, want a gap", name, v)
		}
	}
}

func TestAPointHasTheVerdict(t *testing.T) {
	var m meter
	w := newWorld()
	for range 5 {
		w.healthy(0, 1, noon)
	}
	if p := m.measure(w.dying(359, 359, noon)); p.verdict != slotmon.Critical {
		t.Errorf("%s", p.verdict)
	}
}
