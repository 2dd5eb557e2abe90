package pipeline

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pglogrepl"
	"pgregory.net/rapid"

	"github.com/cdcpub/cdcpub/checkpoint"
	"github.com/cdcpub/cdcpub/wal"
)

// plan is a random life of a pipeline, drawn before it begins.
type plan struct {
	events  []wal.Event
	batches [][]wal.Event
	window  checkpoint.Limits
	steps   []step
	end     ending
}

type step struct {
	kind         stepKind
	partition, n int
}

type stepKind int

const (
	offerBatch stepKind = iota
	acknowledge
	refuse
	stepKinds
)

// ending is what happens after the steps.
type ending int

const (
	endOfStream   ending = iota // all batches are offered, everything is acknowledged
	earlyEnd                    // as a shutdown: the stream ends here
	endOfContext                // as a lost connection
	endOfProducer               // the producer fails
	endings
)

func drawPlan(t *rapid.T) plan {
	var h history
	poisoned := rapid.Bool().Draw(t, "poisoned")
	for range rapid.IntRange(0, 8).Draw(t, "transactions") {
		if rapid.Bool().Draw(t, "keepalive") {
			h.keepalive()
		}
		h.begin()
		for range rapid.IntRange(0, 6).Draw(t, "rows") {
			key := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "key")
			size := rapid.SampledFrom([]int{0, 10, 300, 3000}).Draw(t, "size")
			if poisoned && rapid.IntRange(0, 15).Draw(t, "poison") == 0 {
				h.insert(poison, key, size)
			} else {
				h.row(key, size)
			}
		}
		h.commit()
	}
	p := plan{events: h.events, window: checkpoint.Limits{
		Records: rapid.IntRange(1, 8).Draw(t, "records"), Bytes: rapid.IntRange(500, 20_000).Draw(t, "bytes")}}
	for rest := h.events; len(rest) > 0; {
		n := rapid.IntRange(1, min(len(rest), 12)).Draw(t, "batch")
		p.batches = append(p.batches, rest[:n])
		rest = rest[n:]
	}
	for range rapid.IntRange(0, 40).Draw(t, "steps") {
		p.steps = append(p.steps, step{stepKind(rapid.IntRange(0, int(stepKinds)-1).Draw(t, "step")),
			rapid.IntRange(0, fakePartitions-1).Draw(t, "partition"), rapid.IntRange(1, 4).Draw(t, "n")})
	}
	p.end = ending(rapid.IntRange(0, int(endings)-1).Draw(t, "end"))
	return p
}

// expected is the model: the rows before the first one that cannot be
// published, and which positions are safe once a number of them is
// acknowledged.
type expected struct {
	ids    []string
	marks  []struct{ before, lsn uint64 }
	poison bool
}

func expectedOf(events []wal.Event) expected {
	var e expected
	open := false
	for _, event := range events {
		switch event.Kind {
		case wal.Begin, wal.Commit:
			open = event.Kind == wal.Begin
		case wal.Insert:
			id := string(event.Row.Values[0])
			if id == poison {
				e.poison = true
				return e
			}
			e.ids = append(e.ids, id)
		}
		if !open {
			e.marks = append(e.marks, struct{ before, lsn uint64 }{uint64(len(e.ids)), uint64(event.LSN)})
		}
	}
	return e
}

// safe is the highest position that may be confirmed.
func (e *expected) safe(acked map[uint64]bool) pglogrepl.LSN {
	done := uint64(0)
	for acked[done] {
		done++
	}
	var lsn uint64
	for _, m := range e.marks {
		if m.before <= done {
			lsn = m.lsn
		}
	}
	return pglogrepl.LSN(lsn)
}

// life runs a pipeline through a plan and holds it against the model.
type life struct {
	*rig
	plan
	expected
	offered  int // batches
	problems []error
}

func (l *life) problem(format string, args ...any) {
	l.problems = append(l.problems, fmt.Errorf(format, args...))
}

// invariants hold whenever the pipeline stands still.
func (l *life) invariants() {
	for i, m := range l.producer.sent {
		if i >= len(l.ids) || string(m.Record.EventID) != l.ids[i] {
			l.problem("message %d is event %s", i, m.Record.EventID)
		}
	}
	for i := 1; i < len(l.confirmed); i++ {
		if l.confirmed[i] <= l.confirmed[i-1] {
			l.problem("confirmed %v", l.confirmed)
		}
	}
	if safe := l.safe(l.producer.acked); l.newest() > safe {
		l.problem("confirmed %s, only %s is safe", l.newest(), safe)
	}
}

// mayTake is whether the next batch must be taken: all that was offered is
// sent, and nothing stands still.
func (l *life) mayTake() bool {
	rows := 0
	for _, b := range l.plan.batches[:l.offered] {
		for _, e := range b {
			if e.Kind == wal.Insert {
				if string(e.Row.Values[0]) == poison {
					return false
				}
				rows++
			}
		}
	}
	return l.running() && rows == len(l.producer.sent) && len(l.producer.rejected) == 0
}

func (l *life) offerNext() {
	if l.offered == len(l.plan.batches) {
		return
	}
	may := l.mayTake()
	taken := l.offer(&wal.Batch{Events: append([]wal.Event(nil), l.plan.batches[l.offered]...)})
	if taken != may {
		l.problem("batch %d taken: %v, expected %v", l.offered, taken, may)
	}
	if taken {
		l.offered++
	}
}

func (l *life) live() {
	for _, s := range l.steps {
		switch s.kind {
		case offerBatch:
			l.offerNext()
		case acknowledge:
			l.ack(s.partition, s.n)
		case refuse:
			l.reject(s.partition)
		}
		l.invariants()
	}
	switch l.end {
	case endOfStream:
		for range len(l.events) + 1 {
			l.offerNext()
			l.ackAll()
		}
		l.drain()
	case earlyEnd:
		l.drain()
	case endOfContext:
		l.cancel(errCancelled)
		l.expectEnd(errCancelled)
	case endOfProducer:
		l.producer.fail()
		l.expectEnd(errProducer)
	}
	l.invariants()
	l.problems = append(l.problems, l.producer.broken...)
}

var errCancelled = errors.New("cancelled")

// expectEnd: a pipeline that was already ending on an unpublishable row may say
// that instead.
func (l *life) expectEnd(want error) {
	if err := l.ended(); !errors.Is(err, want) && !errors.Is(err, errUnroutable) {
		l.problem("ended with %v, not with %v", err, want)
	}
}

// drain ends the stream and acknowledges what is left.
func (l *life) drain() {
	close(l.rig.batches)
	synctest.Wait()
	for range len(l.events) + 1 {
		l.ackAll()
	}
	began := time.Now()
	err := l.ended()
	if took := time.Since(began); took > failureDrain {
		l.problem("the end took %s", took)
	}
	reached := expectedOf(l.taken())
	switch {
	case reached.poison != errors.Is(err, errUnroutable) || !reached.poison && err != nil:
		l.problem("ended with %v", err)
	case len(l.producer.sent) != len(reached.ids):
		l.problem("%d of %d rows sent", len(l.producer.sent), len(reached.ids))
	case l.newest() != reached.safe(l.producer.acked):
		l.problem("confirmed %s at the end, not %s", l.newest(), reached.safe(l.producer.acked))
	}
}

func (l *life) taken() []wal.Event {
	n := 0
	for _, b := range l.plan.batches[:l.offered] {
		n += len(b)
	}
	return l.events[:n]
}

// Every row is sent once and in order, nothing is confirmed too early, nothing
// is taken while the window is full or a record stands still, and every end is
// an end, whatever the order of acknowledgements, refusals and failures.
func TestRandomLives(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt)
		var problems []error
		synctest.Test(t, func(t *testing.T) {
			l := &life{rig: start(t, p.window, nil), plan: p, expected: expectedOf(p.events)}
			l.live()
			problems = l.problems
		})
		if len(problems) > 0 {
			rt.Fatalf("window %+v, end %d: %v", p.window, p.end, errors.Join(problems...))
		}
	})
}
