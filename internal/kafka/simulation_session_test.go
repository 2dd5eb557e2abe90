package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/cdcpub/cdcpub/internal/pipeline"
	"github.com/cdcpub/cdcpub/wal"
)

// simulated is a session: a real Pipeline and a real Producer, whose loop is
// turned by hand, and the connections between them and the models.
type simulated struct {
	w       *world
	number  int
	process *process
	client  *Client

	producer *Producer
	batches  chan *wal.Batch
	cancel   context.CancelCauseFunc
	done     chan struct{} // the pipeline has ended
	err      error
	// announced is what the pipeline has confirmed last.
	announced pglogrepl.LSN
	// full: the pipeline took no batch, and has heard of no outcome since.
	full bool

	start   pglogrepl.LSN
	cursor  int // the next event of the stream
	offered pglogrepl.LSN
	// reading: the stream has not ended. stopping: a shutdown was asked for.
	reading, stopping bool
	// connected: the replication connection works. When it does not, the
	// session need not know.
	connected bool
	heard     time.Time // from PostgreSQL
	// spoilt has the partitions where a broker did not take our identity or
	// sequence numbers.
	spoilt map[int32]bool
	// expired: the server has not heard of it for wal_sender_timeout.
	expired bool

	turned  bool // the producer's loop had its first round
	closing bool
	// conns has the newest connection to each broker.
	conns []*conn
	// control has what waits at the two control connections.
	control [2][]controlJob
	// claiming is when the session began to ask for the epoch that it has not
	// got, or was last held back from that by its lease. refused: it may not
	// have one.
	claiming time.Time
	refused  bool
}

var errConnectionLost = errors.New("the replication connection is lost")

func (w *world) open(p *process) *simulated {
	s := &simulated{
		w: w, number: w.sessions, process: p, client: p.client, batches: make(chan *wal.Batch), done: make(chan struct{}),
		start: w.postgres.confirmed, announced: w.postgres.confirmed, offered: w.postgres.confirmed,
		reading: true, connected: true, heard: time.Now(), spoilt: make(map[int32]bool),
	}
	w.sessions++
	s.cursor = w.postgres.from(s.start)
	w.postgres.holder, p.session = s, s
	id := ""
	if w.fencing {
		id = "cdcpub-slot"
	}
	s.producer = newProducer(p.client, p.client.session.Add(1), id, s, w.log)
	s.producer.policy.jitter = func() float64 { return 1 }
	s.producer.control = &control{jobs: newMailbox[controlJob]()}
	s.producer.claims = &control{jobs: newMailbox[controlJob]()}
	ctx, cancel := context.WithCancelCause(context.Background())
	s.cancel = cancel
	pipe := pipeline.New(pipeline.Config{
		Route: simulatedRoute, Producer: s.producer, Start: s.start, Window: w.window, StayOnRejection: w.stay,
		Confirm: func(lsn pglogrepl.LSN) { s.announced = lsn },
		OnRejection: func(e *pipeline.RejectedError) {
			if e != nil {
				w.count(evRejection)
			}
		},
	})
	go func() {
		s.err = pipe.Run(ctx, s.batches)
		close(s.done)
	}()
	synctest.Wait()
	return s
}

// Leased implements pipeline.Slot, as package publisher does.
func (s *simulated) Leased() bool { return time.Since(s.heard) < simulatedTimeout*4/5 }

// Look implements pipeline.Slot: what PostgreSQL says at the moment at which it
// is asked. The world chooses that, and when the answer is read.
func (s *simulated) Look(context.Context) error {
	if s.w.postgres.holder != s {
		return errConnectionLost
	}
	return nil
}

func (s *simulated) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// offer hands the pipeline the next n events of the stream, if it takes them.
func (s *simulated) offer(n int) bool {
	m := &s.w.postgres
	end := s.cursor
	for n > 0 && end < len(m.events) && !(s.stopping && s.between(end)) {
		end, n = end+1, n-1
	}
	if end == s.cursor {
		return false
	}
	events := make([]wal.Event, end-s.cursor)
	copy(events, m.events[s.cursor:end])
	select {
	case s.batches <- &wal.Batch{Events: events}:
	default:
		s.full = true
		return false
	}
	s.cursor = end
	if s.between(end) {
		s.offered = m.ends[end-1]
	}
	synctest.Wait()
	return true
}

// between: no transaction is open before the event with the index i.
func (s *simulated) between(i int) bool {
	events := s.w.postgres.events
	return i == 0 || events[i-1].Kind == wal.Commit || events[i-1].Kind == wal.Keepalive
}

// finish ends the stream.
func (s *simulated) finish() {
	s.reading = false
	close(s.batches)
	synctest.Wait()
}

// due: the producer's loop has something to do.
func (s *simulated) due() bool {
	p := s.producer
	return !s.turned || len(p.messages.wake) > 0 || len(p.answers.wake) > 0 || len(p.replies.wake) > 0 ||
		!s.closing && !p.wakeAt.After(time.Now())
}

// turn is one round of Producer.serve. Its select is the order in which the
// world calls turn, results and everything that fills the mailboxes.
func (s *simulated) turn() {
	p, now := s.producer, time.Now()
	s.turned = true
	drain(p.messages.wake)
	for _, m := range p.messages.take(nil) {
		p.accept(m, now)
	}
	drain(p.replies.wake)
	for _, r := range p.replies.take(nil) {
		p.replied(r, now)
	}
	drain(p.answers.wake)
	p.answered(p.answers.take(nil), now)
	p.wakeAt = now.Add(time.Hour)
	if !s.closing && !p.dead {
		s.plug()
		p.claim(now)
		p.dispatch(now)
		p.lookup(now)
	}
	p.conclude()
	if s.claiming.IsZero() && p.fence.asking {
		s.claiming = now
	}
	for i, c := range [...]*control{p.control, p.claims} {
		s.control[i] = append(s.control[i], c.jobs.take(nil)...)
	}
	for _, c := range s.conns {
		c.take()
	}
}

func drain(wake chan struct{}) {
	select {
	case <-wake:
	default:
	}
}

// results lets the reader of the results have what there is.
func (s *simulated) results() {
	s.producer.flush()
	synctest.Wait()
	s.full = false
	if s.ended() {
		for len(s.producer.results) > 0 {
			<-s.producer.results
		}
	}
}

// plug gives the producer a link to each broker where it would start one.
func (s *simulated) plug() {
	for broker := range int32(simulatedBrokers) {
		if s.producer.links[broker] != nil {
			continue
		}
		c := &conn{session: s, broker: broker}
		c.link = &link{address: addressOf(broker), jobs: newMailbox[*job](), cancel: func() { c.cut(errClosed) }}
		s.producer.links[broker] = c.link
		s.conns = append(slices.DeleteFunc(s.conns, func(old *conn) bool { return old.broker == broker }), c)
	}
}

const simulatedBrokers = 2

func addressOf(broker int32) string { return fmt.Sprintf("kafka-%d:9092", broker) }
