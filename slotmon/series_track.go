package slotmon

import "time"

// maxPoints bounds a track.
const maxPoints = 64

// point is what one sample showed of a slot.
type point struct {
	at        time.Time
	wal       LSN
	retained  *int64
	confirmed *LSN
	active    bool
}

func (p point) walPosition() (float64, bool) { return float64(p.wal), true }

func (p point) retainedBytes() (float64, bool) {
	if p.retained == nil {
		return 0, false
	}
	return float64(*p.retained), true
}

func (p point) confirmedPosition() (float64, bool) {
	if p.confirmed == nil {
		return 0, false
	}
	return float64(*p.confirmed), true
}

// track is the points of a window, oldest first and at different times. In all
// of them the same values are known.
type track []point

// add returns the track with p as its newest point. Where samples come more
// often than maxPoints allow, the newest point moves until it is far enough
// from the one before.
//
// What is older than the window is dropped, and so is what was before the
// reader came or went: it says nothing about the present. Two points remain in
// any case; a rate over an hour without samples is true too.
func (t track) add(p point, window time.Duration) track {
	if n := len(t); n > 0 && ((t[n-1].retained == nil) != (p.retained == nil) || (t[n-1].confirmed == nil) != (p.confirmed == nil)) {
		t = nil
	}
	n := len(t)
	spacing := window / (maxPoints - 2)
	if n > 0 && !p.at.After(t[n-1].at) || n > 1 && t[n-1].at.Sub(t[n-2].at) < spacing {
		t[n-1] = p
	} else {
		t = append(t, p)
	}
	first := len(t) - 1
	for first > 0 && t[first-1].active == p.active && p.at.Sub(t[first-1].at) <= window {
		first--
	}
	first = max(min(first, len(t)-2), 0)
	return append(t[:0], t[first:]...)
}

func (t track) newest() point { return t[len(t)-1] }

func (t track) span() time.Duration {
	if len(t) == 0 {
		return 0
	}
	return t.newest().at.Sub(t[0].at)
}

// rate is the change per second from the oldest point to the newest, nil if it
// is not known.
func (t track) rate(value func(point) (float64, bool)) *float64 {
	if len(t) < 2 {
		return nil
	}
	from, ok := value(t[0])
	to, _ := value(t.newest())
	if !ok || t.span() <= 0 {
		return nil
	}
	rate := (to - from) / t.span().Seconds()
	return &rate
}

// smallLag is a confirmed lag that says nothing: one WAL segment.
const smallLag = 16 << 20

// smallDelay is the age of a lag that says nothing. A reader that keeps up with
// much WAL is always some of it behind.
const smallDelay = 30 * time.Second

// stretch is the time since which the confirmed lag has not fallen. It begins
// anew when the lag is small, falls below its lowest since the stretch began,
// or falls by a fifth from its highest. The second rule lets a lag that grows
// in a saw-tooth count, the third ends the stretch of a burst that is being
// worked off.
type stretch struct {
	since     time.Time // zero: the lag is small
	wal       LSN       // at since
	low, high int64
}

// add returns how long the stretch has lasted, nil when the lag has just
// fallen, is small or unknown, or no WAL was written in the stretch.
func (s *stretch) add(now time.Time, wal LSN, lag *int64, walRate *float64) *time.Duration {
	small := int64(smallLag)
	if walRate != nil {
		small = max(small, int64(*walRate*smallDelay.Seconds()))
	}
	switch {
	case lag == nil || *lag <= small:
		*s = stretch{}
		return nil
	case s.since.IsZero() || *lag < s.low || float64(*lag) <= relaxed*float64(s.high):
		*s = stretch{since: now, wal: wal, low: *lag, high: *lag}
	}
	s.high = max(s.high, *lag)
	lasted := now.Sub(s.since)
	if wal <= s.wal || lasted <= 0 {
		return nil
	}
	return &lasted
}
