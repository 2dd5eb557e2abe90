package kafka

import (
	"math/rand/v2"
	"testing"
)

// TestQueuesOfOnePool compares queues that share memory with plain slices.
func TestQueuesOfOnePool(t *testing.T) {
	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed))
	pool := &entryPool{}
	queues := make([]queue, 5)
	wants := make([][]uint64, len(queues))
	for i := range queues {
		queues[i].pool = pool
	}
	next := uint64(0)
	for range 20_000 {
		i := random.IntN(len(queues))
		q, want := &queues[i], &wants[i]
		if random.IntN(2) == 0 {
			for range random.IntN(200) {
				e := entry{size: int(next % 11)}
				e.message.Seq = next
				q.push(e)
				*want = append(*want, next)
				next++
			}
		} else if n := q.len(); n > 0 {
			n = 1 + random.IntN(n)
			q.pop(n)
			*want = (*want)[n:]
		}
		if q.len() != len(*want) {
			t.Fatalf("queue %d holds %d, want %d", i, q.len(), len(*want))
		}
		bytes := 0
		for j, seq := range *want {
			if got := q.at(j).message.Seq; got != seq {
				t.Fatalf("queue %d has %d at %d, want %d", i, got, j, seq)
			}
			bytes += int(seq % 11)
		}
		if q.bytes != bytes {
			t.Fatalf("queue %d counts %d bytes, want %d", i, q.bytes, bytes)
		}
	}
	room := 0
	for _, spare := range pool.spares {
		room += cap(spare)
		for _, e := range spare[:cap(spare)] {
			if e.message.Seq != 0 || e.size != 0 {
				t.Fatal("the pool keeps what was in a queue")
			}
		}
	}
	if room != pool.room || room > pooledEntries {
		t.Errorf("the pool holds %d entries, counts %d, may %d", room, pool.room, pooledEntries)
	}
}
