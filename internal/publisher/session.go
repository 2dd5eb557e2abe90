package publisher

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/cdcpub/cdcpub/internal/pipeline"
	"github.com/cdcpub/cdcpub/wal"
)

// openLimit bounds connecting and looking at the catalogs.
const openLimit = 30 * time.Second

// answerLimit bounds the wait for Kafka's answers after a session's stream has
// ended. Later ones are fenced by the next session's producer epoch.
const answerLimit = 3 * time.Second

// errShutdownTimeout cancels a session whose open transaction or queue did not
// end in time. What is unconfirmed is sent again after the next start.
var errShutdownTimeout = errors.New("shutdown_timeout passed before everything was delivered")

// session is one life of the replication connection. run owns it.
type session struct {
	p        *Publisher
	stream   *wal.Stream
	producer pipeline.Producer
	pipe     *pipeline.Pipeline
}

// session opens one and runs it to its end. It returns nil only after a
// shutdown that delivered everything.
func (p *Publisher) session(ctx context.Context, stop <-chan struct{}) error {
	opening, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	stopOpening := context.AfterFunc(stopContext(opening, stop), cancel)
	stream, err := wal.Open(opening, p.walConfig())
	stopOpening()
	if err != nil {
		return err
	}
	p.opened(stream)

	s := &session{p: p, stream: stream}
	lease := p.config.WAL.WALSenderTimeout * 4 / 5
	s.producer = p.config.NewProducer(func() bool { return stream.Silence() < lease })
	s.pipe = pipeline.New(pipeline.Config{
		Route: p.config.Route, Producer: s.producer, Start: stream.Start(), Window: p.config.Window,
		Confirm: stream.Confirm, StayOnRejection: !p.config.ExitOnStop, OnRejection: p.rejection,
	})
	p.began(s)
	defer p.ended(s)
	return s.run(ctx, stop)
}

// run joins the stream and the pipeline until both have ended.
func (s *session) run(ctx context.Context, stop <-chan struct{}) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer s.closeProducer()

	batches := make(chan *wal.Batch)
	streamEnd, pipeEnd := make(chan error, 1), make(chan error, 1)
	go func() { streamEnd <- s.stream.Run(ctx, batches) }()
	go func() { pipeEnd <- s.pipe.Run(ctx, batches) }()

	var deadline <-chan time.Time
	var pipeErr error
	for pipeRunning := true; ; {
		select {
		case <-stop:
			stop = nil
			s.p.draining()
			s.stream.Stop()
			deadline = time.After(s.p.config.ShutdownTimeout)
		case <-deadline:
			cancel(errShutdownTimeout)
			deadline = nil
		case pipeErr = <-pipeEnd:
			// Nothing more will be acknowledged: the last status update says
			// how far we came.
			pipeRunning = false
			s.stream.Finish()
		case err := <-streamEnd:
			// Without the slot nothing may be sent: whoever reads it next
			// begins at what was confirmed.
			cancel(err)
			if pipeRunning {
				pipeErr = <-pipeEnd
				if errors.Is(pipeErr, context.Cause(ctx)) {
					pipeErr = nil
				}
			}
			return worse(pipeErr, err)
		}
	}
}

// worse picks the error that explains the end: one that a human must act on
// before one that a new session cures, the pipeline's before the stream's.
func worse(pipeErr, streamErr error) error {
	switch {
	case pipeErr == nil:
		return streamErr
	case streamErr != nil && classify(pipeErr) == retry && classify(streamErr) != retry:
		return streamErr
	}
	return pipeErr
}

func (s *session) closeProducer() {
	go func() {
		for range s.producer.Results() {
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	s.producer.Close(ctx)
}

// stopContext is done when stop is closed or parent is.
func stopContext(parent context.Context, stop <-chan struct{}) context.Context {
	ctx, cancel := context.WithCancel(parent)
	go func() {
		select {
		case <-stop:
		case <-parent.Done():
		}
		cancel()
	}()
	return ctx
}

func (p *Publisher) rejection(r *pipeline.RejectedError) {
	if r == nil {
		p.log.Info("the rejected record was accepted", zap.String("event", "rejection_cured"))
		return
	}
	p.log.Error(r.Error(), zap.String("event", "rejected"),
		zap.Stringer("lsn", r.Rejection.Message.Position.CommitLSN), zap.String("topic", r.Rejection.Message.Record.Topic),
		zap.Int32("partition", r.Rejection.Partition), zap.ByteString("event_id", r.Rejection.Message.Record.EventID))
}
