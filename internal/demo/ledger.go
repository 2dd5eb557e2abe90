package demo

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cdcpub/cdcpub/internal/verify"
)

// ledger joins what the writers committed with what the consumer read. Safe
// from any goroutine.
type ledger struct {
	news chan struct{} // something arrived; holds one

	mu sync.Mutex // guards what follows
	// away has the events that were committed and did not arrive yet, with the
	// time just before COMMIT was sent.
	away        map[string]time.Time
	latencies   []time.Duration // from there to the consumer, first arrivals only
	firstCommit time.Time
	lastArrival time.Time
}

func newLedger() *ledger {
	return &ledger{news: make(chan struct{}, 1), away: map[string]time.Time{}}
}

// committing is called before COMMIT is sent.
func (l *ledger) committing(event string) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away[event] = now
	if l.firstCommit.IsZero() {
		l.firstCommit = now
	}
}

// arrived notes what the consumer got at that time.
func (l *ledger) arrived(records []verify.Record, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range records {
		event := string(header(r, "id"))
		if committed, ok := l.away[event]; ok {
			l.latencies = append(l.latencies, at.Sub(committed))
			delete(l.away, event)
		}
	}
	l.lastArrival = at
	select {
	case l.news <- struct{}{}:
	default:
	}
}

func (l *ledger) awaited() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.away)
}

// patience is how long nothing may arrive before what is missing counts as
// lost.
const patience = 20 * time.Second

// wait returns when everything that was committed has arrived, or when nothing
// came for so long that nothing more will. The verdict tells the two apart.
func (l *ledger) wait(ctx context.Context) error {
	for l.awaited() > 0 {
		select {
		case <-l.news:
		case <-time.After(patience):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// percentile is the smallest latency that at least p percent of the events did
// not exceed; 0 without events.
func (l *ledger) percentile(p int) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.latencies) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(l.latencies))
	return sorted[(len(sorted)*p+99)/100-1]
}

// throughput is events per second, from the first commit to the last arrival.
func (l *ledger) throughput() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seconds := l.lastArrival.Sub(l.firstCommit).Seconds(); seconds > 0 {
		return float64(len(l.latencies)) / seconds
	}
	return 0
}

// header is the value of the first header of that name.
func header(r verify.Record, name string) []byte {
	for _, h := range r.Headers {
		if h.Key == name {
			return h.Value
		}
	}
	return nil
}
