// Package latency counts durations in fixed buckets, cheaply enough for every
// record: no lock, no allocation, a value that its owner copies to publish.
package latency

import (
	"math"
	"time"
)

// Bounds are the upper bounds of the buckets, in seconds. One more bucket has
// everything above.
var Bounds = [...]float64{
	0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
	1, 2.5, 5, 10, 30, 60, 300, 900, 3600,
}

// bounds are Bounds as durations: comparing integers is most of Observe's cost.
var bounds = func() (durations [len(Bounds)]time.Duration) {
	for i, seconds := range Bounds {
		durations[i] = time.Duration(math.Round(seconds * float64(time.Second)))
	}
	return durations
}()

// Histogram is a set of observations. The zero value is empty. It is owned by
// one goroutine; a copy is a snapshot.
type Histogram struct {
	// Counts are per bucket, not cumulative.
	Counts [len(Bounds) + 1]uint64
	// Sum is in seconds.
	Sum float64
}

// Observe adds one duration. A negative one, from clocks that differ, is 0.
func (h *Histogram) Observe(d time.Duration) {
	d = max(0, d)
	i := 0
	for i < len(bounds) && d > bounds[i] {
		i++
	}
	h.Counts[i]++
	h.Sum += float64(d) / float64(time.Second)
}

// Add adds the observations of other.
func (h *Histogram) Add(other *Histogram) {
	for i, n := range other.Counts {
		h.Counts[i] += n
	}
	h.Sum += other.Sum
}

// Since returns the observations that were added after earlier, a snapshot of
// the same histogram.
func (h Histogram) Since(earlier Histogram) Histogram {
	for i := range h.Counts {
		h.Counts[i] -= earlier.Counts[i]
	}
	h.Sum -= earlier.Sum
	return h
}

// Count is the number of observations.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Quantile estimates a quantile, q from 0 to 1, by interpolation within its
// bucket; false when there are no observations. What lies above the last bound
// counts as that bound.
func (h *Histogram) Quantile(q float64) (seconds float64, ok bool) {
	total := h.Count()
	if total == 0 {
		return 0, false
	}
	rank, below := q*float64(total), 0.0
	for i, n := range h.Counts {
		if float64(n) > 0 && below+float64(n) >= rank {
			if i == len(Bounds) {
				return Bounds[i-1], true
			}
			lower := 0.0
			if i > 0 {
				lower = Bounds[i-1]
			}
			return lower + (Bounds[i]-lower)*(rank-below)/float64(n), true
		}
		below += float64(n)
	}
	return Bounds[len(Bounds)-1], true
}
