package wal

import (
	"testing"
	"time"
)

func TestIntervalBetweenBatches(t *testing.T) {
	for _, test := range []struct {
		name   string
		events int
		took   time.Duration
		bytes  int
		want   time.Duration
	}{
		{"a row now and then", 3, time.Second, 400, time.Millisecond},
		{"after a pause", 0, time.Hour, 0, time.Millisecond},
		{"a backlog of small rows", 150, time.Millisecond, 30 << 10, 3 * time.Millisecond},
		{"a backlog that the socket has room for", 900, 5 * time.Millisecond, 96 << 10, 5 * time.Millisecond},
		{"a backlog that fills the socket", 500, 4 * time.Millisecond, 192 << 10, 2 * time.Millisecond},
		{"large rows", 10, time.Millisecond, 2 << 20, time.Millisecond},
	} {
		b := &Batch{Events: make([]Event, test.events)}
		if got := b.interval(test.took, test.bytes, roomOfSocket); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}
