package checkpoint

import (
	"fmt"

	"github.com/jackc/pglogrepl"
)

// Limits bound the window. One record that is larger than Bytes passes alone.
type Limits struct {
	Records int
	Bytes   int
}

// Tracker is described in the package documentation. The zero value is not
// usable: see New.
type Tracker struct {
	limits Limits
	// ring[seq&mask] is the record with that number. Invariants:
	// tail <= head, head-tail <= len(ring), ring[tail&mask] is unacknowledged
	// unless tail == head, bytes is the sum over [tail, head).
	ring       []slot
	mask       uint64
	tail, head uint64
	bytes      int
	// marks are positions that become confirmable once all records before
	// them are acknowledged; the first done of them are. Invariant: before and
	// lsn do not decrease.
	marks     []mark
	done      int
	open      bool
	end       pglogrepl.LSN // the newest commit end or keepalive seen
	confirmed pglogrepl.LSN
}

type slot struct {
	bytes int32
	acked bool
}

type mark struct {
	before uint64 // records [0, before) come first
	lsn    pglogrepl.LSN
}

// New returns a Tracker for a stream that starts at the given confirmed LSN.
func New(start pglogrepl.LSN, limits Limits) *Tracker {
	size := 1
	for size < limits.Records {
		size *= 2
	}
	return &Tracker{limits: limits, ring: make([]slot, size), mask: uint64(size - 1), end: start, confirmed: start}
}

// Begin notes that a transaction opened.
func (t *Tracker) Begin() error {
	if t.open {
		return fmt.Errorf("a transaction opened within another (newest position %s)", t.end)
	}
	t.open = true
	return nil
}

// Full reports whether the next record, of the given size in bytes, has to
// wait for acknowledgements.
func (t *Tracker) Full(bytes int) bool {
	outstanding := int(t.head - t.tail)
	return outstanding > 0 && (outstanding >= t.limits.Records || t.bytes+bytes > t.limits.Bytes)
}

// Sent notes the next record of the open transaction and returns its number.
// The caller asks Full first.
func (t *Tracker) Sent(bytes int) (seq uint64, err error) {
	switch {
	case !t.open:
		return 0, fmt.Errorf("a record outside a transaction (newest position %s)", t.end)
	case t.head-t.tail >= uint64(len(t.ring)):
		return 0, fmt.Errorf("the window of %d records is full", len(t.ring))
	}
	seq = t.head
	t.ring[seq&t.mask] = slot{bytes: int32(min(bytes, 1<<31-1))}
	t.bytes += int(t.ring[seq&t.mask].bytes)
	t.head++
	return seq, nil
}

// Commit notes that the open transaction ended at the given end LSN, its last
// record having been sent.
func (t *Tracker) Commit(end pglogrepl.LSN) error {
	switch {
	case !t.open:
		return fmt.Errorf("a commit at %s outside a transaction", end)
	case end <= t.end:
		return fmt.Errorf("a transaction ends at %s, but %s was reached before", end, t.end)
	}
	t.open = false
	t.mark(end)
	return nil
}

// Keepalive notes a position up to which the server has read its WAL. Within a
// transaction, and when it is no news, it is ignored.
func (t *Tracker) Keepalive(end pglogrepl.LSN) {
	if !t.open && end > t.end {
		t.mark(end)
	}
}

func (t *Tracker) mark(lsn pglogrepl.LSN) {
	t.end = lsn
	if n := len(t.marks); n > t.done && t.marks[n-1].before == t.head {
		t.marks[n-1].lsn = lsn // nothing between the two: the newer position says it all
	} else {
		t.marks = append(t.marks, mark{before: t.head, lsn: lsn})
	}
	t.advance()
}

// Acked notes that all in-sync replicas have acknowledged a record.
func (t *Tracker) Acked(seq uint64) error {
	if seq < t.tail || seq >= t.head {
		return fmt.Errorf("acknowledgement of record %d, but only %d to %d are outstanding", seq, t.tail, t.head)
	}
	s := &t.ring[seq&t.mask]
	if s.acked {
		return fmt.Errorf("record %d was acknowledged twice", seq)
	}
	s.acked = true
	if seq == t.tail {
		t.advance()
	}
	return nil
}

// advance moves tail over what is acknowledged, then confirms what lies behind.
func (t *Tracker) advance() {
	for t.tail < t.head && t.ring[t.tail&t.mask].acked {
		t.bytes -= int(t.ring[t.tail&t.mask].bytes)
		t.tail++
	}
	for t.done < len(t.marks) && t.marks[t.done].before <= t.tail {
		t.confirmed = t.marks[t.done].lsn
		t.done++
	}
	// Moving the rest to the front costs no more than what was done.
	if t.done > len(t.marks)/2 {
		t.marks = t.marks[:copy(t.marks, t.marks[t.done:])]
		t.done = 0
	}
}

// Confirmed is the LSN up to which everything is acknowledged. It never
// decreases. Invariant: below the end LSN of the oldest transaction that is
// open or has an unacknowledged record.
func (t *Tracker) Confirmed() pglogrepl.LSN { return t.confirmed }

// Outstanding is the number of records in the window.
func (t *Tracker) Outstanding() int { return int(t.head - t.tail) }

// Bytes is the size of the window.
func (t *Tracker) Bytes() int { return t.bytes }

// Open reports whether a transaction is open.
func (t *Tracker) Open() bool { return t.open }
