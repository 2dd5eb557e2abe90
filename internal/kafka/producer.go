package kafka

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/cdcpub/cdcpub/internal/pipeline"
)

// Producer is one session's way to Kafka. It implements pipeline.Producer.
type Producer struct {
	client  *Client
	config  *Config
	session uint64
	slot    pipeline.Slot
	policy  policy
	dialer  *dialer

	// What other goroutines hand in.
	messages *mailbox[[]pipeline.Message]
	// sent has slices whose messages were taken, for the next Send.
	sent    chan []pipeline.Message
	answers *mailbox[produced]
	replies *mailbox[controlled]
	asked   chan chan pipeline.ProducerStatus
	results chan pipeline.Result

	// closing is closed by Close; quiet by run, when nothing is in flight and
	// nothing will be sent; done when results is closed too.
	closing, quiet, done chan struct{}
	closeOnce            sync.Once
	// stopped: requests that wait in a link are not sent any more.
	stopped atomic.Bool
	// ctx is the life of the connections.
	ctx   context.Context
	abort context.CancelFunc

	loop
}

// loop is the state of run's goroutine, which alone touches it.
type loop struct {
	log     *zap.Logger
	report  reporter
	control *control
	// claims is one more, for the fence: a coordinator that hangs must not hold
	// up what other brokers can tell. Nil without a fence.
	claims *control
	links  map[int32]*link
	// brokers has the address of each broker id.
	brokers map[int32]string
	topics  map[string]*topic
	// ready are the partitions in phaseReady, in the order they became so;
	// waiting those in phaseWaiting.
	ready, waiting []*partition
	// pool has the memory of empty queues.
	pool entryPool
	// readySpare is an empty slice for the next round's ready.
	readySpare []*partition
	// wakeAt is when there is something to do without an event.
	wakeAt time.Time
	// filled are the links with an open job.
	filled []*link
	// spare are batches whose arenas can be used again.
	spare []*batch
	// inFlight counts the jobs without answer.
	inFlight int

	// lookingUp: a lookup or probe is on its way.
	lookingUp bool
	// lookupAt is when the next one may start; it backs off while no broker
	// can be reached.
	lookupAt       time.Time
	lookupAttempts int
	probeAt        time.Time
	connected      bool
	// disconnectedSince is zero while connected.
	disconnectedSince time.Time

	// outcomes wait for the reader of Results.
	outcomes []pipeline.Result
	// dead: nothing more is sent, and failure is or was the last outcome.
	dead    bool
	failure error
	// leaseLostSince is zero while the lease holds.
	leaseLostSince time.Time

	fence fence
}

const (
	// leaseInterval is the pause between two looks at a lease that has ended.
	leaseInterval = 100 * time.Millisecond
	// resultsBuffer lets the loop run on while its reader works.
	resultsBuffer = 64
	// spareBatches bounds what is kept for reuse.
	spareBatches = 32
)

func newProducer(c *Client, session uint64, transactionalID string, slot pipeline.Slot, log *zap.Logger) *Producer {
	config := &c.config
	waived := transactionalID != "" && c.unfenced.Load()
	p := &Producer{
		client: c, config: config, session: session, slot: slot,
		policy: policy{
			codec:        codecs[config.Compression],
			batchBytes:   config.BatchBytes,
			backoffMin:   config.BackoffMin,
			backoffMax:   config.BackoffMax,
			operatorMax:  config.OperatorBackoffMax,
			rejectedWait: config.RejectedInterval,
			jitter:       func() float64 { return 0.8 + 0.4*rand.Float64() },
		},
		dialer:   newDialer(config),
		messages: newMailbox[[]pipeline.Message](),
		sent:     make(chan []pipeline.Message, spareMessages),
		answers:  newMailbox[produced](),
		replies:  newMailbox[controlled](),
		asked:    make(chan chan pipeline.ProducerStatus),
		results:  make(chan pipeline.Result, resultsBuffer),
		closing:  make(chan struct{}),
		quiet:    make(chan struct{}),
		done:     make(chan struct{}),
		loop: loop{
			log:     log,
			report:  reporter{log: log, unfenced: waived},
			links:   make(map[int32]*link),
			brokers: make(map[int32]string),
			topics:  make(map[string]*topic),

			disconnectedSince: time.Now(),

			fence: fence{id: transactionalID, waived: waived},
		},
	}
	p.ctx, p.abort = context.WithCancel(context.Background())
	return p
}

// Send implements pipeline.Producer.
func (p *Producer) Send(messages []pipeline.Message) []pipeline.Message {
	select {
	case <-p.closing:
	default:
		p.messages.put(messages)
	}
	select {
	case spare := <-p.sent:
		return spare
	default:
		return nil
	}
}

// spareMessages is how many slices are kept for Send.
const spareMessages = 4

// Results implements pipeline.Producer.
func (p *Producer) Results() <-chan pipeline.Result { return p.results }

// Status implements pipeline.Producer.
func (p *Producer) Status() pipeline.ProducerStatus {
	answer := make(chan pipeline.ProducerStatus, 1)
	select {
	case p.asked <- answer:
		return <-answer
	case <-p.done:
		return pipeline.ProducerStatus{}
	}
}

// Close implements pipeline.Producer. It returns when nothing is in flight any
// more, which does not depend on the reader of Results; the outcomes until
// then are still delivered.
func (p *Producer) Close(ctx context.Context) {
	p.stopped.Store(true)
	p.closeOnce.Do(func() { close(p.closing) })
	select {
	case <-p.quiet:
	case <-ctx.Done():
		p.abort()
		<-p.quiet
	}
}

// gate says why nothing may be written now, or nil.
func (p *Producer) gate() error {
	switch {
	case p.client.superseded(p.session):
		return errSuperseded
	case !p.slot.Leased():
		return errLeaseLost
	}
	return nil
}

// sendGate is gate for requests that have not begun.
func (p *Producer) sendGate() error {
	if p.stopped.Load() {
		return errClosed
	}
	return p.gate()
}

// run is the goroutine that owns all state. Every round takes all that has
// come in, sends all that may be sent, and waits for the next event.
func (p *Producer) run() {
	defer close(p.done)
	defer p.client.forget(p)
	p.control = startControl(p.ctx, p.dialer, p.replies.put)
	if p.fence.id != "" {
		p.claims = startControl(p.ctx, p.dialer, p.replies.put)
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	p.serve(timer)
	p.conclude()
	p.abort()
	close(p.quiet)
	p.deliverRest()
	close(p.results)
}

// serve returns when the producer is closed and nothing is in flight.
func (p *Producer) serve(timer *time.Timer) {
	var (
		messages [][]pipeline.Message
		answers  []produced
		replies  []controlled
	)
	closing := p.closing
	for {
		now := time.Now()
		messages = p.messages.take(messages)
		for _, m := range messages {
			p.accept(m, now)
		}
		replies = p.replies.take(replies)
		for _, r := range replies {
			p.replied(r, now)
		}
		answers = p.answers.take(answers)
		p.answered(answers, now)
		p.wakeAt = now.Add(time.Hour)
		if closing == nil && (p.inFlight == 0 || p.ctx.Err() != nil) {
			return
		}
		if closing != nil && !p.dead {
			p.claim(now)
			p.dispatch(now)
			p.lookup(now)
		}
		p.conclude()
		timer.Reset(p.wakeAt.Sub(now))
		var (
			results chan<- pipeline.Result
			next    pipeline.Result
		)
		if p.flush(); len(p.outcomes) > 0 {
			results, next = p.results, p.outcomes[0]
		}
		select {
		case <-p.messages.wake:
		case <-p.answers.wake:
		case <-p.replies.wake:
		case <-timer.C:
		case results <- next:
			p.outcomes = p.outcomes[1:]
		case answer := <-p.asked:
			answer <- p.snapshot(time.Now())
		case <-closing:
			closing = nil
		case <-p.ctx.Done():
			closing = nil
			p.stopped.Store(true)
		}
	}
}

// flush delivers what the buffer of results takes at once.
func (p *Producer) flush() {
	for i := range p.outcomes {
		select {
		case p.results <- p.outcomes[i]:
			p.outcomes[i] = pipeline.Result{}
		default:
			p.outcomes = p.outcomes[i:]
			return
		}
	}
	p.outcomes = p.outcomes[:0]
}

func (p *Producer) deliverRest() {
	for len(p.outcomes) > 0 {
		select {
		case p.results <- p.outcomes[0]:
			p.outcomes = p.outcomes[1:]
		case answer := <-p.asked:
			answer <- pipeline.ProducerStatus{}
		}
	}
}

// wake asks for a round at t at the latest.
func (p *Producer) wake(t time.Time) {
	if t.Before(p.wakeAt) {
		p.wakeAt = t
	}
}

// fail ends the producer. The error comes behind all outcomes of the round.
func (p *Producer) fail(err error) {
	if p.dead {
		return
	}
	p.dead, p.failure = true, err
	p.stopped.Store(true)
	for _, l := range p.links {
		l.cancel()
	}
}

// conclude puts the error of the round, if there is one, behind its outcomes.
func (p *Producer) conclude() {
	if p.failure != nil {
		p.outcomes = append(p.outcomes, pipeline.Result{Err: p.failure})
		p.failure = nil
	}
}
