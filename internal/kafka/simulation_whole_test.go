package kafka

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pglogrepl"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/cdcpub/cdcpub/internal/pipeline"
	"github.com/cdcpub/cdcpub/wal"
)

var simulateWhole = flag.Int("simulate.whole", 200, "how many schedules TestSimulationOfTheWholeProducer tries")

// TestSimulation turns the producer's loop by hand. Here it runs as it is, with
// its goroutines and sarama, against the same models behind real frames. What
// happens when is a matter of the bubble's clock: a seed gives the delays and
// faults, but which of two goroutines that are due at one instant goes first is
// the scheduler's choice.
func TestSimulationOfTheWholeProducer(t *testing.T) {
	var counts eventCounts
	for seed := range uint64(*simulateWhole) {
		synctest.Test(t, func(t *testing.T) {
			w := newWhole(*simulateFrom + seed)
			w.live()
			if problems := w.w.judge(); len(problems) > 0 {
				t.Fatalf("seed %d: %s\n%s", w.w.seed, strings.Join(problems, "\n  "), w.w.logOf())
			}
			counts.add(&w.w.eventCounts)
		})
	}
	if testing.Verbose() {
		fmt.Printf("%d schedules\n%s", *simulateWhole, counts.table())
	}
	for _, e := range wholeEvents {
		if counts[e] == 0 {
			t.Errorf("it never happened: %s", eventNames[e])
		}
	}
}

// wholeEvents are those that each run must have seen.
var wholeEvents = []event{
	evOpen, evKill, evConnectionLost, evStop, evCleanEnd, evTerminated, evFreeze, evStatus, evCut, evDialFails, evLate, evLateGone,
	evOldEpoch, evRefusedRecord, evTooLarge, evFaultRetry, evFaultBump, evFaultFresh, evFaultFenced, evLeader, evTruncated,
	evLook, evLookTaken, evLookFails,
}

// whole is a world in which everything runs by itself.
type whole struct {
	wired
	rng  *rand.Rand
	left sync.WaitGroup // sessions that have lost the slot and go on
}

// wholeProcess is a process; its newest session is what its connections carry.
type wholeProcess struct {
	client *Client
	newest atomic.Pointer[simulated]
}

// wholeSession is a session with its own reader of the history.
type wholeSession struct {
	*simulated
	n     *whole
	lease atomic.Bool
	stop  chan struct{}
	ctx   context.Context
}

func newWhole(seed uint64) *whole {
	w := newWorld(seed)
	core, logs := observer.New(zapcore.WarnLevel)
	w.log, w.logs = zap.New(core), logs
	return &whole{wired: wired{w: w}, rng: rand.New(rand.NewPCG(seed, 1))}
}

func (n *whole) start() *wholeProcess {
	p := new(wholeProcess)
	config := n.w.config
	config.Dial = n.dial(&p.newest)
	client, err := NewClient(config)
	if err != nil {
		panic(err)
	}
	p.client = client
	return p
}

func (n *whole) open(p *wholeProcess) *wholeSession {
	ctx, cancel := context.WithCancelCause(context.Background())
	n.mu.Lock()
	w := n.w
	w.count(evOpen)
	s := &wholeSession{simulated: &simulated{
		w: w, number: w.sessions, client: p.client, batches: make(chan *wal.Batch), done: make(chan struct{}),
		cancel: cancel, start: w.postgres.confirmed, announced: w.postgres.confirmed, spoilt: make(map[int32]bool),
	}, n: n, stop: make(chan struct{}), ctx: ctx}
	w.sessions++
	w.starts = append(w.starts, s.simulated)
	w.postgres.holder = s.simulated
	s.cursor = w.postgres.from(s.start)
	n.mu.Unlock()
	s.lease.Store(true)
	p.newest.Store(s.simulated)
	id := ""
	if w.fencing {
		id = "cdcpub-slot"
	}
	s.producer = p.client.NewProducer(id, s, w.log)
	pipe := pipeline.New(pipeline.Config{
		Route: simulatedRoute, Producer: s.producer, Start: s.start, Window: w.window, StayOnRejection: true,
		OnRejection: func(*pipeline.RejectedError) {},
		Confirm:     func(lsn pglogrepl.LSN) { n.confirm(s.simulated, lsn) },
	})
	go func() {
		s.err = pipe.Run(ctx, s.batches)
		close(s.done)
	}()
	go s.feed(rand.New(rand.NewPCG(w.seed, uint64(s.number)<<16)))
	return s
}

// Leased implements pipeline.Slot.
func (s *wholeSession) Leased() bool { return s.lease.Load() }

// Look implements pipeline.Slot: the question is some time on its way, and so is
// the answer.
func (s *wholeSession) Look(ctx context.Context) error {
	rng := rand.New(rand.NewPCG(s.w.seed, s.n.conns.Add(1)<<32))
	pause := func() { time.Sleep(time.Duration(rng.IntN(2000)) * time.Microsecond) }
	pause()
	if s.n.troubled(rng, 20) {
		s.n.note(evLookFails)
		return errors.New("no route to PostgreSQL")
	}
	s.n.mu.Lock()
	err := s.simulated.Look(ctx)
	s.n.mu.Unlock()
	s.n.note(map[bool]event{true: evLook, false: evLookTaken}[err == nil])
	pause()
	return err
}

// confirm is a status update that arrives at once, from whoever has the slot.
func (n *whole) confirm(s *simulated, lsn pglogrepl.LSN) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.w.postgres.holder == s {
		n.w.count(evStatus)
		n.w.confirm(lsn)
	}
}

// feed is the stream. A shutdown ends it between two transactions.
func (s *wholeSession) feed(rng *rand.Rand) {
	events := s.w.postgres.events
	for i := s.cursor; ; {
		select {
		case <-s.stop:
			if s.between(i) {
				close(s.batches)
				return
			}
		default:
		}
		if i == len(events) {
			select {
			case <-s.stop:
				continue
			case <-s.ctx.Done():
				return
			}
		}
		end := min(len(events), i+1+rng.IntN(6))
		select {
		case s.batches <- &wal.Batch{Events: append([]wal.Event(nil), events[i:end]...)}:
			i = end
		case <-s.ctx.Done():
			return
		}
		time.Sleep(time.Duration(rng.IntN(3000)) * time.Microsecond)
	}
}

// end is publisher.session's end: the pipeline first, then the producer.
func (s *wholeSession) end() {
	s.cancel(errConnectionLost)
	<-s.done
	s.drain()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	s.producer.Close(ctx)
	<-s.producer.done
}

func (s *wholeSession) drain() {
	go func() {
		for range s.producer.Results() {
		}
	}()
}

// live runs one session after the other until each has ended in some way, and
// then one that may finish.
func (n *whole) live() {
	healed := make(chan struct{})
	go n.disturb(healed)
	p := n.start()
	for range 1 + n.rng.IntN(5) {
		s := n.open(p)
		select {
		case <-s.done:
		case <-time.After(n.span()):
		}
		p = n.over(p, s)
	}
	close(healed)
	n.mu.Lock()
	n.w.healing = true
	n.w.cluster.bad, n.w.cluster.largestBatch = map[int32]bool{}, 100
	n.mu.Unlock()
	n.finish(p)
	n.left.Wait()
	p.client.Close()
	time.Sleep(time.Hour) // what is late arrives
	synctest.Wait()
	n.w.unfenced = n.w.logs.FilterField(zap.String("event", "kafka_unfenced")).Len() > 0
}

// span is how long something lasts: most often not long.
func (n *whole) span() time.Duration {
	return time.Duration(n.rng.IntN([]int{20, 200, 5000, 90_000}[n.rng.IntN(4)])) * time.Millisecond
}

// over ends a session in one of the ways that there are, and returns the
// process that has the next.
func (n *whole) over(p *wholeProcess, s *wholeSession) *wholeProcess {
	way := n.rng.IntN(5)
	n.note([]event{evKill, evConnectionLost, evStop, evTerminated, evFreeze}[way])
	switch way {
	case 0: // killed
		s.drain()
		p.client.Close()
		s.end()
	case 1: // the replication connection is lost
		s.end()
		return p
	case 2: // a shutdown
		close(s.stop)
		select {
		case <-s.done:
		case <-time.After(10 * time.Second):
		}
		s.end()
		if s.err == nil {
			n.note(evCleanEnd)
		}
		p.client.Close()
	case 3: // the slot is taken away, and it does not hear of it
		n.leave(p, s)
	case 4: // the lease ends
		s.lease.Store(false)
		n.leave(p, s)
	}
	return n.start()
}

// leave lets a session go on beside its successor.
func (n *whole) leave(p *wholeProcess, s *wholeSession) {
	span := n.span()
	n.left.Go(func() {
		time.Sleep(span)
		s.end()
		p.client.Close()
	})
}

// disturb is what happens to the cluster meanwhile.
func (n *whole) disturb(healed <-chan struct{}) {
	rng := rand.New(rand.NewPCG(n.w.seed, 2))
	events := []event{evLeader, evTruncated, evTighten, evCure, evCure, evSmaller, evForget}
	for {
		select {
		case <-healed:
			return
		case <-time.After(time.Duration(rng.IntN(3000)) * time.Millisecond):
		}
		if e := events[rng.IntN(len(events))]; e != evForget || n.w.forgets {
			n.mu.Lock()
			n.w.count(e)
			n.w.clusterHappens(e)
			n.mu.Unlock()
		}
	}
}

// finish opens sessions until everything is delivered.
func (n *whole) finish(p *wholeProcess) {
	delivered := func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.w.postgres.confirmed == n.w.postgres.last()
	}
	deadline := time.Now().Add(time.Hour)
	for !delivered() && time.Now().Before(deadline) {
		s := n.open(p)
		for running := true; running && !delivered() && time.Now().Before(deadline); {
			select {
			case <-s.done:
				running = false
			case <-time.After(100 * time.Millisecond):
			}
		}
		s.end()
	}
	if !delivered() {
		n.w.problem("confirmed %s, not %s, after everything has healed", n.w.postgres.confirmed, n.w.postgres.last())
	}
}

// logOf is what the partitions hold.
func (w *world) logOf() string {
	var b strings.Builder
	for i := range w.cluster.partitions {
		fmt.Fprintf(&b, "partition %d:\n", i)
		for _, batch := range w.cluster.partitions[i].batches {
			fmt.Fprintf(&b, "  offset %d, session %d, %s\n", batch.offset, batch.session, batch.sentBatch.String())
		}
	}
	return b.String()
}
