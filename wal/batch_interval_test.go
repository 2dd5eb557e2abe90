package wal

import (
	"testing"
	"time"
)

func TestIntervalBetweenBatches(t *testing.T) {
	for _, test := range []struct {
		name   string
		events int
		limit  time.Duration
		want   time.Duration
	}{
		{"a row now and then", 3, 10 * time.Millisecond, time.Millisecond},
		{"nothing known yet", 500, 0, time.Millisecond},
		{"a backlog", 150, 10 * time.Millisecond, 3 * time.Millisecond},
		{"a backlog from a socket that fills", 900, 2 * time.Millisecond, 2 * time.Millisecond},
	} {
		b := &Batch{Events: make([]Event, test.events)}
		if got := b.interval(test.limit); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// TestPauseFindsTheRateOfTheServer plays a server that writes at a rate, as long
// as the socket has room, and a reader that empties it after each pause.
func TestPauseFindsTheRateOfTheServer(t *testing.T) {
	g := gathering{longest: maxBatchInterval, room: 128 << 10}
	for _, test := range []struct {
		perMillisecond int
		want           time.Duration
	}{
		{1 << 10, maxBatchInterval},
		{16 << 10, 7 * time.Millisecond},
		{56 << 10, 2 * time.Millisecond},
		{500 << 10, batchInterval},
	} {
		for _, pause := range []time.Duration{0, batchInterval, g.longest} {
			for range 60 {
				came := min(g.room, int(pause.Seconds()*1000*float64(test.perMillisecond)))
				pause = g.limit(pause, came)
			}
			if off := pause - test.want; off.Abs() > test.want/6 {
				t.Errorf("at %d bytes a millisecond it waits for %s, want %s", test.perMillisecond, pause, test.want)
			}
		}
	}
}

func TestPauseWithoutBound(t *testing.T) {
	if got := gatherFromAfar.limit(time.Millisecond, 10<<20); got != gatherFromAfar.longest {
		t.Errorf("a server from afar: %s", got)
	}
	if got := gatherLocally.limit(time.Millisecond, 10); got != batchInterval {
		t.Errorf("a Unix socket: %s", got)
	}
}
