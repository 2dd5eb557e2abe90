package latency

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestEachDurationFallsIntoTheBucketThatIncludesIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(-int64(time.Second), int64(2*time.Hour)).Draw(t, "d"))
		var h Histogram
		h.Observe(d)
		for i, n := range h.Counts {
			lower, upper := math.Inf(-1), math.Inf(1)
			if i > 0 {
				lower = Bounds[i-1]
			}
			if i < len(Bounds) {
				upper = Bounds[i]
			}
			seconds := max(0, d.Seconds())
			if in := seconds > lower && seconds <= upper; in != (n == 1) {
				t.Fatalf("%s: bucket (%g, %g] has %d", d, lower, upper, n)
			}
		}
	})
}

func TestSinceIsWhatWasAddedAndAddIsItsInverse(t *testing.T) {
	var h Histogram
	h.Observe(time.Millisecond)
	earlier := h
	h.Observe(time.Second)
	h.Observe(2 * time.Hour)
	added := h.Since(earlier)
	if added.Count() != 2 || h.Count() != 3 || added.Sum != 7201 {
		t.Fatalf("%+v", added)
	}
	earlier.Add(&added)
	if earlier.Counts != h.Counts {
		t.Errorf("%v, want %v", earlier.Counts, h.Counts)
	}
}

func TestQuantile(t *testing.T) {
	var h Histogram
	if _, ok := h.Quantile(0.5); ok {
		t.Error("an empty histogram has a median")
	}
	for range 99 {
		h.Observe(2 * time.Millisecond)
	}
	h.Observe(20 * time.Second)
	for q, bounds := range map[float64][2]float64{0.5: {0.001, 0.0025}, 0.99: {0.001, 0.0025}, 1: {10, 30}} {
		if got, _ := h.Quantile(q); got < bounds[0] || got > bounds[1] {
			t.Errorf("quantile %g is %g, want within %v", q, got, bounds)
		}
	}
	var slow Histogram
	slow.Observe(5 * time.Hour)
	if got, _ := slow.Quantile(0.5); got != 3600 {
		t.Errorf("above the last bound: %g", got)
	}
}
