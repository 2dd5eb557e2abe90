package notify

import (
	"cmp"
	"slices"

	"github.com/cdcpub/cdcpub/slotmon"
)

// maxAlerts is how many alerts a queue holds. It is far beyond what is known to
// happen: slots times the kinds of findings that they have at the same time.
const maxAlerts = 4096

// queue has the newest state of each alert that a sink does not know yet and,
// for a sink that wants repetition, of each that is raised.
type queue struct {
	repeats bool
	entries map[slotmon.AlertKey]*entry
	// turns counts states; the lowest turn is sent first.
	turns uint64
}

type entry struct {
	alert slotmon.Alert
	// turn is this state's, 0 once it was delivered.
	turn uint64
}

func newQueue(repeats bool) *queue {
	return &queue{repeats: repeats, entries: map[slotmon.AlertKey]*entry{}}
}

func (q *queue) next() uint64 {
	q.turns++
	return q.turns
}

// put replaces the state of an alert by a newer one. It returns false if there
// is no room for one more alert.
func (q *queue) put(alert slotmon.Alert) bool {
	key := alert.Key()
	e, known := q.entries[key]
	if !known {
		if len(q.entries) >= maxAlerts {
			return false
		}
		e = &entry{}
		q.entries[key] = e
	}
	e.alert, e.turn = alert, q.next()
	return true
}

// take returns copies of the states that have waited longest. They stay in the
// queue until settled.
func (q *queue) take(most int) []entry {
	var waiting []entry
	for _, e := range q.entries {
		if e.turn > 0 {
			waiting = append(waiting, *e)
		}
	}
	slices.SortFunc(waiting, func(a, b entry) int { return cmp.Compare(a.turn, b.turn) })
	return waiting[:min(len(waiting), most)]
}

// delivered notes that the sink has these states. A state that was replaced
// meanwhile goes on waiting.
func (q *queue) delivered(batch []entry) {
	q.unchanged(batch, func(e *entry) {
		e.turn = 0
		if !q.repeats || !e.alert.Resolved.IsZero() {
			delete(q.entries, e.alert.Key())
		}
	})
}

// postpone lets these states wait behind all others.
func (q *queue) postpone(batch []entry) {
	q.unchanged(batch, func(e *entry) { e.turn = q.next() })
}

// unchanged visits the entries that still have the state of the batch.
func (q *queue) unchanged(batch []entry, visit func(e *entry)) {
	for _, sent := range batch {
		if e := q.entries[sent.alert.Key()]; e != nil && e.turn == sent.turn {
			visit(e)
		}
	}
}

// repeat makes everything that is raised wait once more.
func (q *queue) repeat() {
	for _, e := range q.entries {
		if e.turn == 0 {
			e.turn = q.next()
		}
	}
}

// waiting is how many states the sink does not know yet.
func (q *queue) waiting() int {
	n := 0
	for _, e := range q.entries {
		if e.turn > 0 {
			n++
		}
	}
	return n
}
