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
// when one is pushed, so nobody keeps pointers into it. Without entries it holds
// no memory.
type queue struct {
	entries []entry
	head    int
	// bytes is the sum of the sizes.
	bytes int
	// pool is where entries come from and go to; nil for the heap.
	pool *entryPool
}

func (q *queue) len() int        { return len(q.entries) - q.head }
func (q *queue) at(i int) *entry { return &q.entries[q.head+i] }

func (q *queue) push(e entry) {
	if len(q.entries) == cap(q.entries) {
		q.makeRoom()
	}
	q.entries = append(q.entries, e)
	q.bytes += e.size
}

// makeRoom moves what waits to the front, or to where twice as much has room.
func (q *queue) makeRoom() {
	if n := q.len(); q.head > n {
		copy(q.entries, q.entries[q.head:])
		clear(q.entries[n:])
		q.entries, q.head = q.entries[:n], 0
		return
	}
	room := append(q.pool.take(2*cap(q.entries)), q.entries[q.head:]...)
	clear(q.entries)
	q.pool.put(q.entries)
	q.entries, q.head = room, 0
}

// pop drops the first n entries, and with them the last reference to their
// bytes.
func (q *queue) pop(n int) {
	for i := range n {
		q.bytes -= q.at(i).size
	}
	clear(q.entries[q.head : q.head+n])
	q.head += n
	if q.len() == 0 {
		q.pool.put(q.entries)
		q.entries, q.head = nil, 0
	}
}

// entryPool keeps the memory of queues that have run empty for those that fill:
// at full rate every partition does both many times a second. It belongs to the
// goroutine of its queues.
type entryPool struct {
	spares [][]entry // cleared
	room   int       // sum of their capacities
}

const (
	minEntries    = 16   // the capacity of a queue that was empty
	pooledEntries = 8192 // the most room that a pool keeps
)

// take returns an empty slice with room for at least n entries, and not for many
// more: a partition that stands still would hold it.
func (p *entryPool) take(n int) []entry {
	n = max(n, minEntries)
	if p != nil {
		for i, spare := range p.spares {
			if cap(spare) < n || cap(spare) > 4*n {
				continue
			}
			last := len(p.spares) - 1
			p.spares[i], p.spares[last] = p.spares[last], nil
			p.spares = p.spares[:last]
			p.room -= cap(spare)
			return spare
		}
	}
	return make([]entry, 0, n)
}

// put keeps a cleared slice, or leaves it to the garbage collector.
func (p *entryPool) put(entries []entry) {
	if p == nil || cap(entries) == 0 || p.room+cap(entries) > pooledEntries {
		return
	}
	p.spares = append(p.spares, entries[:0])
	p.room += cap(entries)
}
