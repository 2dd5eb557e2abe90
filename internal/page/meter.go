package page

import (
	"math"
	"time"

	"github.com/cdcpub/cdcpub/internal/latency"
	"github.com/cdcpub/cdcpub/slotmon"
)

// gap is the value that is not known.
var gap = number(math.NaN())

// number is a value of the history. NaN is a gap, null in JSON.
type number float64

func (n number) known() bool { return !math.IsNaN(float64(n)) }

// point is what one interval of Step looked like.
type point struct {
	at time.Time
	// rate is records acknowledged per second, p50 and p99 are seconds from
	// commit to acknowledgement.
	rate, p50, p99 number
	verdict        slotmon.Severity
	slots          []slotPoint // by rank, worst first
}

// slotPoint is one slot in a point.
type slotPoint struct {
	key           slotKey
	retained, lag number // bytes
}

type slotKey struct{ server, slot string }

// meter makes points of observations. It remembers the counters of the last
// one: a rate and a quantile are of what was added since.
type meter struct {
	at           time.Time
	acknowledged int // -1: no publisher then
	latency      *latency.Histogram
}

func (m *meter) measure(o observation) point {
	p := point{at: o.at, rate: gap, p50: gap, p99: gap, verdict: verdict(&o)}
	acknowledged := -1
	if o.publisher != nil {
		acknowledged = o.publisher.Acked
	}
	elapsed := o.at.Sub(m.at).Seconds()
	if !m.at.IsZero() && m.acknowledged >= 0 && acknowledged >= m.acknowledged && elapsed > 0 {
		p.rate = number(float64(acknowledged-m.acknowledged) / elapsed)
	}
	p.p50, p.p99 = quantiles(m.latency, o.latency)
	m.at, m.acknowledged, m.latency = o.at, acknowledged, o.latency

	for _, s := range rank(&o) {
		p.slots = append(p.slots, slotPoint{
			key:      slotKey{s.server.Name, s.slot.Name},
			retained: s.bytes(func(slot *slotmon.Slot) *int64 { return slot.RetainedBytes }),
			lag:      s.bytes(func(slot *slotmon.Slot) *int64 { return slot.ConfirmedLagBytes }),
		})
	}
	return p
}

// quantiles are gaps where nothing was observed and where the counters began
// anew.
func quantiles(earlier, later *latency.Histogram) (p50, p99 number) {
	if earlier == nil || later == nil {
		return gap, gap
	}
	for i, n := range later.Counts {
		if n < earlier.Counts[i] {
			return gap, gap
		}
	}
	added := later.Since(*earlier)
	if added.Count() == 0 {
		return gap, gap
	}
	median, _ := added.Quantile(0.5)
	tail, _ := added.Quantile(0.99)
	return number(median), number(tail)
}
