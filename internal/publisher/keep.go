package publisher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/cdcpub/cdcpub/wal"
)

// What only this process remembers, only this process stops for. A topic that
// was created again looks to a standby like any other, so that one must not
// have the slot before a human has decided. PostgreSQL gives the slot to one
// connection: the process that is blocked keeps it, with nothing handed over, sent
// or confirmed, until it is restarted. Then whoever gets the slot goes on.
//
// Hence of two processes that which has the slot remembers the topics, and that
// which has lost it to the other forgets them: otherwise a decision would have
// to be told to each, and one that was not told would stop at the next
// takeover, perhaps months later.
//
// It is not for reasons that a standby finds as well (a row, the publication,
// the slot itself), for what another configuration or version may cure, which
// may be the standby's, or for another server, which each remembers by itself.

// remembered is implemented by errors that come from a comparison with what
// this process has seen.
type remembered interface{ Remembered() bool }

// keeps says whether the slot is kept until a restart because of err.
func (p *Publisher) keeps(err error) bool {
	var known remembered
	return !p.config.ExitOnStop && errors.As(err, &known) && known.Remembered()
}

// Between tries to have the slot back there are keepInterval, since a standby
// tries every standbyInterval, or where the server refuses this process
// refusedInterval: a standby may be one that it does not refuse.
const (
	keepInterval    = 200 * time.Millisecond
	refusedInterval = 5 * time.Second
)

// keptError is why a human must act before the slot is given up.
type keptError struct {
	slot  string
	cause error
	lost  error // why this process does not hold the slot at present, nil while it does
}

func (e *keptError) Error() string {
	if e.lost != nil {
		return fmt.Sprintf("%v; slot %s is not held at present, and a standby that gets it first goes on by itself: %v", e.cause, e.slot, e.lost)
	}
	return fmt.Sprintf("%v; this process keeps slot %s until then, so that no standby goes on without that decision", e.cause, e.slot)
}

func (e *keptError) Unwrap() error { return e.cause }

// keep holds the slot, with nothing handed over or confirmed, until stop or the end of
// the stream, whose error it returns.
func (p *Publisher) keep(ctx context.Context, stop <-chan struct{}, r *reading) error {
	p.keeping(r.stream)
	defer p.keeping(nil)
	remind := time.NewTicker(decisionInterval)
	defer remind.Stop()
	for {
		p.enter(Blocked, &keptError{slot: p.config.WAL.Slot, cause: p.kept})
		select {
		case <-remind.C:
		case <-stop:
			r.stream.Finish()
			<-r.done
			return p.kept
		case <-ctx.Done():
			<-r.done
			return context.Cause(ctx)
		case <-r.done:
			if isClosed(stop) {
				return p.kept
			}
			return r.err
		}
	}
}

// keeping tells Status of the stream that holds the slot.
func (p *Publisher) keeping(stream *wal.Stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.keeping = stream
}

// keepAgain decides what follows when the slot could not be kept: it is taken
// back, soon, unless another cdcpub has it.
func (p *Publisher) keepAgain(err error) time.Duration {
	pause := keepInterval
	switch classify(err) {
	case wait:
		if p.held(err); p.past.since.published {
			p.log.Warn("another cdcpub has taken the slot and goes on where this one waited for a human", zap.String("event", "overruled"), zap.Error(p.kept))
			p.kept = nil
			p.enter(Standby, err)
			return standbyInterval
		}
		if p.past.since.holder != nil {
			pause = standbyInterval // it may hold the slot for long
		}
	case refused, decision:
		err = p.locate(err)
		p.past.since.called(err)
		p.enter(Blocked, err)
		return refusedInterval
	}
	if endOf(err) == EndTerminated {
		pause = p.past.since.handOver()
	}
	p.enter(Blocked, &keptError{slot: p.config.WAL.Slot, cause: p.kept, lost: err})
	return pause
}

// reading is a stream that runs.
type reading struct {
	stream  *wal.Stream
	batches chan *wal.Batch
	// ctx ends the stream, and what works on its batches; cancel ends ctx.
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{}
	err    error // of the stream's end, to be read when done is closed
}

// read runs a stream until it ends, or ctx.
func read(ctx context.Context, stream *wal.Stream) *reading {
	r := &reading{stream: stream, batches: make(chan *wal.Batch), done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	go func() {
		defer close(r.done)
		r.err = stream.Run(r.ctx, r.batches)
	}()
	return r
}
