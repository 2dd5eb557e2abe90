package page

import (
	"slices"
	"strconv"
	"sync"
	"time"
)

// Step is the time between two points of the history.
const Step = 10 * time.Second

const (
	capacity  = 360 // points: one hour
	maxSeries = 50  // slots with a line of their own
)

// history is the ring of the last points. Points have sequence numbers from 0;
// the point n is at index n%capacity, here and in every series.
type history struct {
	// id tells this history from that of an earlier process.
	id string

	mu     sync.Mutex
	next   int // sequence number of the next point
	points [capacity]point
	series []*series
	hidden int // slots of the newest point that have no series
}

// series is the line of one slot.
type series struct {
	key           slotKey
	retained, lag [capacity]number
	seen          int // sequence number of the last point that had the slot
}

func newHistory(began time.Time) *history {
	return &history{id: strconv.FormatInt(began.UnixNano(), 36)}
}

// add appends a point and forgets the one that is an hour old.
func (h *history) add(p point) {
	h.mu.Lock()
	defer h.mu.Unlock()
	index := h.next % capacity
	slots := p.slots
	p.slots = nil
	h.points[index] = p
	h.series = slices.DeleteFunc(h.series, func(s *series) bool { return s.seen <= h.next-capacity })
	for _, s := range h.series {
		s.retained[index], s.lag[index] = gap, gap
	}
	h.hidden = max(0, len(slots)-maxSeries)
	wanted := slots[:len(slots)-h.hidden]
	for _, slot := range wanted {
		s := h.find(slot.key)
		if s == nil {
			s = h.open(slot.key, wanted)
		}
		s.retained[index], s.lag[index], s.seen = slot.retained, slot.lag, h.next
	}
	h.next++
}

func (h *history) find(key slotKey) *series {
	for _, s := range h.series {
		if s.key == key {
			return s
		}
	}
	return nil
}

// open begins the line of a slot. When there are maxSeries, the line of a slot
// that is not wanted any more ends: the one that was seen longest ago.
func (h *history) open(key slotKey, wanted []slotPoint) *series {
	opened := &series{key: key}
	for i := range opened.retained {
		opened.retained[i], opened.lag[i] = gap, gap
	}
	if len(h.series) < maxSeries {
		h.series = append(h.series, opened)
		return opened
	}
	oldest := -1
	for i, s := range h.series {
		isWanted := slices.ContainsFunc(wanted, func(w slotPoint) bool { return w.key == s.key })
		if !isWanted && (oldest < 0 || s.seen < h.series[oldest].seen) {
			oldest = i
		}
	}
	h.series[oldest] = opened // there is one: wanted has at most maxSeries, and key is one of them
	return opened
}
