package pipeline

import (
	"sync"
	"time"

	"github.com/jackc/pglogrepl"
)

// Status is a snapshot of a session's work.
type Status struct {
	Transactions int // whose end has been read
	Sent         int // records handed to the producer
	Acked        int // records acknowledged
	Outstanding  int // records in the window
	Bytes        int // size of the window
	Full         bool
	Confirmed    pglogrepl.LSN
	// LastAcked is when the newest acknowledgement came, zero before the first.
	LastAcked time.Time
	// Rejected is the oldest record that Kafka refuses, or nil.
	Rejected *RejectedError
}

type counts struct {
	transactions, sent, acked int
	confirmed                 pglogrepl.LSN
	lastAcked                 time.Time
}

type statusBox struct {
	sync.Mutex
	current Status
}

func (p *Pipeline) publishStatus() {
	status := Status{
		Transactions: p.counts.transactions, Sent: p.counts.sent, Acked: p.counts.acked,
		Outstanding: p.tracker.Outstanding(), Bytes: p.tracker.Bytes(), Full: p.waits,
		Confirmed: p.tracker.Confirmed(), LastAcked: p.counts.lastAcked,
	}
	if len(p.rejected) > 0 {
		status.Rejected = p.rejected[0].RejectedError
	}
	p.status.Lock()
	p.status.current = status
	p.status.Unlock()
}

// Status returns the newest snapshot. Safe from any goroutine.
func (p *Pipeline) Status() Status {
	p.status.Lock()
	defer p.status.Unlock()
	return p.status.current
}
