package wal

import (
	"sync/atomic"
	"time"

	"github.com/jackc/pglogrepl"
)

// Counters says how far a Stream has come. All of it begins with the stream.
type Counters struct {
	// Received is the highest position received on the connection, the slot's
	// confirmed_flush_lsn at first.
	Received pglogrepl.LSN
	// Transactions, Rows and Bytes count what Run has handed over: commits,
	// also of transactions without an outbox row; rows of outbox tables; and
	// the bytes of their values as PostgreSQL printed them.
	Transactions, Rows, Bytes int64
	// Confirmed is when Confirm last advanced, zero when it has not.
	Confirmed time.Time
}

// Counters returns a snapshot. Safe from any goroutine.
func (s *Stream) Counters() Counters {
	c := Counters{
		Received:     pglogrepl.LSN(s.counters.received.Load()),
		Transactions: s.counters.transactions.Load(),
		Rows:         s.counters.rows.Load(),
		Bytes:        s.counters.bytes.Load(),
	}
	if at := s.counters.confirmed.Load(); at != 0 {
		c.Confirmed = time.Unix(0, at)
	}
	return c
}

// counters are written once a batch, never once a row: confirmed by Confirm,
// in nanoseconds since 1970, the others by Run's goroutine.
type counters struct {
	received                             atomic.Uint64 // pglogrepl.LSN
	confirmed, transactions, rows, bytes atomic.Int64
}

// tally is what a batch adds to the counters. Taken before the batch is handed
// over: from then on it is the receiver's.
type tally struct{ transactions, rows, bytes int }

func (c *counters) add(t tally) {
	c.transactions.Add(int64(t.transactions))
	c.rows.Add(int64(t.rows))
	c.bytes.Add(int64(t.bytes))
}
