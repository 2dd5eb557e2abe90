package publisher

import (
	"context"
	"errors"
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
	// NewProducer makes a session's producer. Nothing may be sent while lease
	// returns false.
	NewProducer func(lease func() bool) pipeline.Producer
	// ShutdownTimeout bounds the time from stop to the end of Run.
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
	// unknown is the last relation that no catalog explained.
	unknown wal.UnknownRelationError

	mu    sync.Mutex // guards state
	state state
}

// New returns a Publisher that has done nothing yet.
func New(config Config) *Publisher {
	return &Publisher{config: config, log: config.Log.With(zap.String("slot", config.WAL.Slot)),
		state: state{name: Connecting, since: time.Now()}}
}

// How often a new session is tried.
const (
	standbyInterval  = 2 * time.Second // while another process holds the slot
	decisionInterval = time.Minute     // while a human must act
	minRetry         = 100 * time.Millisecond
	maxRetry         = 10 * time.Second
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
	defer cancel()
	go p.watch(watching)

	retries := backoff.NewExponentialBackOff()
	retries.InitialInterval, retries.MaxInterval, retries.Multiplier = minRetry, maxRetry, 2
	for {
		began := time.Now()
		err := p.session(ctx, stop)
		if time.Since(began) > settled {
			retries.Reset()
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if isClosed(stop) {
			return p.stopped(err)
		}
		pause, err := p.next(err, retries)
		if err != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-stop:
			return p.stopped(nil)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// next decides what follows the end of a session: a pause, or the end of Run.
func (p *Publisher) next(err error, retries *backoff.ExponentialBackOff) (time.Duration, error) {
	verdict := classify(err)
	var unknown *wal.UnknownRelationError
	if errors.As(err, &unknown) {
		// The catalogs are read again first: a partition may have been attached
		// since the stream began.
		if p.unknown.Relation != nil && p.unknown.Relation.ID == unknown.Relation.ID && p.unknown.CommitLSN == unknown.CommitLSN {
			verdict = decision
		}
		p.unknown = *unknown
	}
	switch verdict {
	case wait:
		p.enter(Standby, err)
		return standbyInterval, nil
	case refused, decision:
		if p.config.ExitOnStop || p.identity == nil {
			return 0, &StoppedError{Err: err, Decision: verdict == decision}
		}
		p.enter(Blocked, err)
		return decisionInterval, nil
	}
	p.enter(Connecting, err)
	return retries.NextBackOff(), nil
}

// stopped ends Run after a shutdown.
func (p *Publisher) stopped(err error) error {
	if classify(err) == retry && p.current() == Connecting {
		err = nil // there was no session to lose anything from
	}
	p.enter(Stopped, err)
	return err
}

func (p *Publisher) walConfig() wal.Config {
	config := p.config.WAL
	config.Previous = p.identity
	return config
}

func (p *Publisher) opened(stream *wal.Stream) {
	identity := stream.Identity()
	p.identity = &identity
}

func isClosed(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}
