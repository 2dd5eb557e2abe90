package kafka

import (
	"time"

	"github.com/cdcpub/cdcpub/internal/pipeline"
)

// entry is a message that waits for its acknowledgement.
type entry struct {
	message pipeline.Message
	queued  time.Time
	// size is the encoded size of the record when it is alone in a batch,
	// without the batch header.
	size int
}

// queue is a first-in first-out queue of entries. Entries may move in memory
// when one is pushed, so nobody keeps pointers into it.
type queue struct {
	entries []entry
	head    int
	// bytes is the sum of the sizes.
	bytes int
}

func (q *queue) len() int        { return len(q.entries) - q.head }
func (q *queue) at(i int) *entry { return &q.entries[q.head+i] }

func (q *queue) push(e entry) {
	if len(q.entries) == cap(q.entries) && q.head > len(q.entries)/2 {
		n := copy(q.entries, q.entries[q.head:])
		clear(q.entries[n:])
		q.entries, q.head = q.entries[:n], 0
	}
	q.entries = append(q.entries, e)
	q.bytes += e.size
}

// pop drops the first n entries, and with them the last reference to their
// bytes.
func (q *queue) pop(n int) {
	for i := range n {
		q.bytes -= q.at(i).size
	}
	clear(q.entries[q.head : q.head+n])
	q.head += n
	if q.len() > 0 {
		return
	}
	q.entries, q.head = q.entries[:0], 0
	// A burst must not hold its memory for ever.
	if cap(q.entries) > keptEntries {
		q.entries = nil
	}
}

// keptEntries is the capacity that an empty queue may keep.
const keptEntries = 256
