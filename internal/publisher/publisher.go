package publisher

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"

	"github.com/cdcpub/cdcpub/checkpoint"
	"github.com/cdcpub/cdcpub/internal/pipeline"
	"github.com/cdcpub/cdcpub/router"
	"github.com/cdcpub/cdcpub/wal"
)

// Config is what a Publisher works with. All fields are required.
type Config struct {
	WAL    wal.Config
	Route  func(commit time.Time, row wal.Row) (router.Record, error)
	Window checkpoint.Limits
	// NewProducer makes a session's producer for a slot of the server with that
	// system identifier. Nothing may be sent while the slot is not leased.
	NewProducer func(systemID string, slot pipeline.Slot) pipeline.Producer
	// ForgetTopics makes later producers take the topics as they find them.
	// Called while there is none.
	ForgetTopics func()
	// ShutdownTimeout bounds how long Run goes on delivering after stop. To let
	// go of Kafka and PostgreSQL takes a few seconds more at worst.
	ShutdownTimeout time.Duration
	// ExitOnStop ends Run at the first error that a human must act on, also
	// after streaming has begun.
	ExitOnStop bool
	Log        *zap.Logger
}

// Publisher runs sessions until it is stopped. Status may be called from any
// goroutine; everything else belongs to Run's.
type Publisher struct {
	config   Config
	log      *zap.Logger
	identity *wal.Identity // of the last stream, nil before the first
	past     past
	own      own
	// server is the system identifier of the server that a standby saw first,
	// "" before.
	server string
	// kept is why the slot is kept until a restart, and nothing published; nil
	// while there is no such reason.
	kept error
	// unknown is the last relation that no catalog explained, unpublishable the
	// last row that the configuration cannot publish; nil before the first.
	unknown       *wal.UnknownRelationError
	unpublishable *pipeline.UnpublishableError
	// recheck has one value when Recheck was called.
	recheck chan struct{}

	mu    sync.Mutex // guards state and doubt
	state state
	doubt Doubt
}

// New returns a Publisher that has done nothing yet.
func New(config Config) *Publisher {
	ends := make(map[EndCause]int)
	for _, cause := range EndCauses() {
		ends[cause] = 0
	}
	return &Publisher{config: config, log: config.Log.With(zap.String("slot", config.WAL.Slot)), recheck: make(chan struct{}, 1),
		state: state{name: Connecting, since: time.Now(), ends: ends}}
}

// How often a new session is tried.
const (
	standbyInterval  = 2 * time.Second // while another process holds the slot
	decisionInterval = time.Minute     // while a human must act
	// handover is how long the slot is left alone after pg_terminate_backend: a
	// standby gets it, if there is one. Who holds it is looked at meanwhile: a
	// holder that was not seen is no evidence when the slot has moved.
	handover     = standbyInterval + time.Second
	handoverLook = 500 * time.Millisecond
	// comeback is how long a standby leaves the slot to whoever had it before
	// PostgreSQL was away.
	comeback = 5 * time.Second
	// Between two sessions the pause doubles from minRetry to a limit, half of
	// which is added or taken away at random: maxConnect while there is no
	// connection, which costs nobody anything, else maxRetry, since what a
	// session has sent in vain comes again with the next.
	minRetry   = 100 * time.Millisecond
	maxConnect = 2 * time.Second
	maxRetry   = 5 * time.Second
	// settled is how long a session must have lasted for the next failure to
	// count as the first.
	settled = 10 * time.Second
)

// Run publishes until stop is closed, and then delivers what is open within
// ShutdownTimeout. It returns nil after a shutdown that left nothing behind, a
// *StoppedError when a human must act, and the cause when ctx ends, which ends
// everything at once.
func (p *Publisher) Run(ctx context.Context, stop <-chan struct{}) error {
	watching, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { p.watch(watching) })
	err := p.sessions(ctx, stop)
	cancel()
	watch.Wait()
	p.enter(Stopped, err)
	return err
}

// sessions opens one session after the other.
func (p *Publisher) sessions(ctx context.Context, stop <-chan struct{}) error {
	retries := backoff.NewExponentialBackOff()
	retries.InitialInterval, retries.Multiplier = minRetry, 2
	for {
		began := time.Now()
		opened, err := p.session(ctx, stop)
		if time.Since(began) > settled {
			retries.Reset()
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case isClosed(stop) && !opened:
			return p.abandoned()
		case isClosed(stop):
			return final(err)
		}
		if retries.MaxInterval = maxRetry; !opened {
			retries.MaxInterval = maxConnect
		}
		pause, err := p.next(err, retries)
		if err != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-stop:
			return p.abandoned()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// abandoned is how Run ends when it is stopped between two sessions. A standby
// leaves nothing behind. Otherwise nobody can say that everything is delivered.
func (p *Publisher) abandoned() error {
	p.mu.Lock()
	name, cause := p.state.name, p.state.cause
	p.mu.Unlock()
	switch {
	case name == Standby, cause == nil: // or nothing was begun
		return nil
	case name == Blocked:
		return final(cause)
	}
	return fmt.Errorf("stopped while not publishing; rows that wait in the slot are sent after the next start: %w", cause)
}

// next decides what follows the end of a session: a pause, or the end of Run.
func (p *Publisher) next(err error, retries backoff.BackOff) (time.Duration, error) {
	if errors.Is(err, errHandover) {
		p.own.refused()
		return handoverLook, nil // nothing has changed
	}
	if p.kept != nil {
		return p.keepAgain(err), nil
	}
	var unpublishable *pipeline.UnpublishableError
	if errors.As(err, &unpublishable) {
		p.unpublishable = unpublishable // the next session stops before its transaction
	}
	var unknown *wal.UnknownRelationError
	if errors.As(err, &unknown) {
		again := p.unknown != nil && p.unknown.Relation.ID == unknown.Relation.ID && p.unknown.CommitLSN == unknown.CommitLSN
		p.unknown = unknown
		if !again {
			// The catalogs are read once more first: a partition may have been
			// attached since the stream began.
			p.enter(Connecting, err)
			return minRetry, nil
		}
		err = &stillUnknownError{unknown}
	}
	if p.past.lookAgain(err) {
		p.enter(Connecting, &errLookAgain{p.past.undecodable})
		return minRetry, nil
	}
	switch classify(err) {
	case wait:
		p.held(err)
		if moved := p.past.since.unanswered(); moved != nil {
			p.enter(Blocked, moved) // to look into the slot is no answer
			return decisionInterval, nil
		}
		p.enter(Standby, err)
		return standbyInterval, nil
	case refused, decision:
		err = p.locate(err)
		if p.config.ExitOnStop || p.identity == nil && !p.watched(err) {
			return 0, final(err)
		}
		p.past.since.called(err)
		p.enter(Blocked, err)
		return decisionInterval, nil
	}
	if errors.Is(err, errComesBack) {
		p.own.refused()
		p.enter(Standby, err)
		return comeback, nil
	}
	p.enter(Connecting, err)
	if endOf(err) == EndTerminated {
		return p.past.since.handOver(), nil
	}
	p.past.since.away = p.past.since.published
	return retries.NextBackOff(), nil
}

// final is the error that Run returns for the end of its last session.
func final(err error) error {
	switch verdict := classify(err); verdict {
	case refused, decision:
		return &StoppedError{Err: err, Decision: verdict == decision}
	}
	return err
}

func (p *Publisher) walConfig() wal.Config {
	config := p.config.WAL
	config.Previous = p.identity
	if p.identity == nil && p.server != "" {
		config.Previous = &wal.Identity{SystemID: p.server}
	}
	config.BeforeStart = p.past.since.leave
	config.Connect = p.own.watch(config.Connect)
	return config
}

func (p *Publisher) opened(stream *wal.Stream) {
	identity := stream.Identity()
	if p.identity != nil && p.identity.Timeline != identity.Timeline {
		p.unpublishable = nil // its LSN may be another transaction's now
		p.past.confirmed, p.past.whole = 0, Whole{}
	}
	p.identity = &identity
	p.past.began(stream.Start(), time.Now())
}

func isClosed(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}
