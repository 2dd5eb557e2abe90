package wal

import (
	"time"

	"github.com/jackc/pglogrepl"
)

// Batch is a run of events in stream order: what one read of the socket gave.
// Handing over batches instead of events keeps the hand-over off the path of a
// row; at low rates a batch holds one transaction or less and costs no delay.
//
// The receiver owns a Batch until it calls Release.
type Batch struct {
	Events []Event
	// Bytes is the size of the rows in the batch.
	Bytes int

	rows, transactions int // how many events are Insert and Commit

	values [][]byte
	free   chan<- *Batch
}

// A batch is handed over at the latest when it holds this much, so that the
// memory between the socket and the window stays small.
const (
	maxBatchEvents = 1024
	maxBatchBytes  = 256 << 10
)

// batchInterval is the shortest time between two batches that are not full.
// The server writes each message to the socket by itself; a reader that keeps
// up would hand over each row by itself, at ten times the cost of a row. After
// a pause of this length a row is handed over at once. Above 50,000 events a
// second, when a backlog is read, the interval grows as far as the socket allows.
const (
	batchInterval    = time.Millisecond
	intervalPerEvent = 20 * time.Microsecond
)

// interval is how long the batch after b is held back at most, if not for longer
// than limit.
func (b *Batch) interval(limit time.Duration) time.Duration {
	return max(batchInterval, min(limit, time.Duration(len(b.Events))*intervalPerEvent))
}

func (b *Batch) full() bool { return len(b.Events) >= maxBatchEvents || b.Bytes >= maxBatchBytes }

func (b *Batch) add(e Event) {
	switch e.Kind {
	case Insert:
		b.rows++
	case Commit:
		b.transactions++
	}
	for _, value := range e.Row.Values {
		b.Bytes += len(value)
	}
	b.Events = append(b.Events, e)
}

// cut drops the events of a transaction that has not ended.
func (b *Batch) cut() {
	n := len(b.Events)
	for ; n > 0; n-- {
		e := &b.Events[n-1]
		if e.Kind == Commit || e.Kind == Keepalive {
			break
		}
		if e.Kind == Insert {
			b.rows--
		}
		for _, value := range e.Row.Values {
			b.Bytes -= len(value)
		}
	}
	clear(b.Events[n:])
	b.Events = b.Events[:n]
}

func (b *Batch) tally() tally { return tally{b.transactions, b.rows, b.Bytes} }

// takeValues cuts n values from the batch's slab. Values cut earlier stay
// valid when the slab grows: they keep the array they were cut from.
func (b *Batch) takeValues(n int) [][]byte {
	if cap(b.values)-len(b.values) < n {
		b.values = make([][]byte, 0, max(2*cap(b.values), n, 256))
	}
	start := len(b.values)
	b.values = b.values[:start+n]
	return b.values[start : start+n : start+n]
}

// Release gives the batch back for reuse. The bytes of its rows stay valid,
// Events and every Row.Values do not.
func (b *Batch) Release() {
	clear(b.Events)
	clear(b.values)
	b.Events, b.values = b.Events[:0], b.values[:0]
	b.Bytes, b.rows, b.transactions = 0, 0, 0
	select {
	case b.free <- b:
	default:
	}
}

// arena copies row bytes into chunks, one allocation for many rows. A chunk
// lives as long as any row in it, so chunks are small enough that a few rows
// that wait for a slow partition do not pin much.
type arena struct{ chunk []byte }

const arenaChunk = 32 << 10

func (a *arena) copy(b []byte) []byte {
	if len(b) > arenaChunk/4 {
		return append(make([]byte, 0, len(b)), b...)
	}
	if cap(a.chunk)-len(a.chunk) < len(b) {
		a.chunk = make([]byte, 0, arenaChunk)
	}
	start := len(a.chunk)
	a.chunk = append(a.chunk, b...)
	return a.chunk[start:len(a.chunk):len(a.chunk)]
}

// keepalive adds a position, or moves the one that is already last.
func (b *Batch) keepalive(end pglogrepl.LSN) {
	if n := len(b.Events); n > 0 && b.Events[n-1].Kind == Keepalive {
		b.Events[n-1].LSN = max(b.Events[n-1].LSN, end)
		return
	}
	b.add(Event{Kind: Keepalive, LSN: end})
}
