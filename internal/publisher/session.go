package publisher

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/cdcpub/cdcpub/internal/pipeline"
	"github.com/cdcpub/cdcpub/wal"
)

// openLimit bounds connecting and looking at the catalogs.
const openLimit = 30 * time.Second

// answerLimit bounds the wait for Kafka's answers at the end of a session.
// Later ones are fenced by the next session's producer epoch.
const answerLimit = 3 * time.Second

// errShutdownTimeout cancels a session whose open transaction or queue did not
// end in time. What is unconfirmed is sent again after the next start.
var errShutdownTimeout = errors.New("shutdown_timeout passed before everything was delivered; what is unconfirmed is sent again after the next start")

// errRecheck ends a session whose publication has changed.
var errRecheck = errors.New("the publication is not what it was when the stream began; looking at it again before reading on")

// session is one life of the replication connection. run owns it.
type session struct {
	p         *Publisher
	began     time.Time
	announced sync.Once // the log has told of it
	*reading
	producer pipeline.Producer
	pipe     *pipeline.Pipeline
}

// session opens one and runs it to its end, and keeps the slot behind that if
// it must. The error is nil only after a shutdown that delivered everything.
func (p *Publisher) session(ctx context.Context, stop <-chan struct{}) (opened bool, err error) {
	select {
	case <-p.recheck: // what it asks for begins here
	default:
	}
	stream, err := p.open(ctx, stop)
	if err != nil {
		return false, err
	}
	p.opened(stream)
	r := read(ctx, stream)
	defer r.cancel(nil)
	if p.kept == nil {
		if err := p.publish(ctx, stop, r); !p.keeps(err) {
			return true, err
		} else {
			p.kept = err
		}
	}
	return true, p.keep(ctx, stop, r)
}

// publish lives through one session.
func (p *Publisher) publish(ctx context.Context, stop <-chan struct{}, r *reading) error {
	stream := r.stream
	s := &session{p: p, began: time.Now(), reading: r}
	s.producer = p.config.NewProducer(stream.Identity().SystemID, slot{stream, p.config.WAL.WALSenderTimeout * 4 / 5})
	s.pipe = pipeline.New(pipeline.Config{
		Route: p.config.Route, Producer: s.producer, Start: stream.Start(), Window: p.config.Window,
		Confirm: stream.Confirm, StayOnRejection: !p.config.ExitOnStop, OnRejection: p.rejection,
		Known: p.unpublishable,
	})
	p.began(s)
	err := s.run(ctx, stop)
	if stop, ok := errors.AsType[*wal.StopError](err); ok && stop.Reason == wal.RowUnreadable {
		p.config.WAL.Unreadable = stop // the next session stops before its transaction
	}
	cause := endOf(err)
	if ctx.Err() != nil {
		cause = EndCancelled
	}
	p.ended(s, cause)
	p.past.ended(s)
	return err
}

// slot implements pipeline.Slot.
type slot struct {
	*wal.Stream
	lease time.Duration
}

func (s slot) Leased() bool { return s.Silence() < s.lease }

// open connects to PostgreSQL, unless stop is closed meanwhile, and returns a
// stream that may be read: it goes on where this process, or the slot's last
// reader, has left it.
func (p *Publisher) open(ctx context.Context, stop <-chan struct{}) (*wal.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	stream, err := wal.Open(ctx, p.walConfig())
	if err == nil {
		err = p.moved(stream.Start())
	}
	if err == nil || isA[*wal.SlotInUseError](err) {
		if altered := p.altered(); altered != nil {
			err = altered
		}
	}
	if err != nil {
		discard(stream)
		return nil, p.withoutDecoding(ctx, err)
	}
	return stream, nil
}

// discard ends a stream of which nothing was read. It confirms nothing.
func discard(stream *wal.Stream) {
	if stream == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = stream.Run(ctx, make(chan *wal.Batch)) // ends with ctx, as it must
}

// run joins the stream and the pipeline until both have ended, or the pipeline
// with an error for which the slot is kept. parent outlives the session unless
// the whole process must end at once.
func (s *session) run(parent context.Context, stop <-chan struct{}) error {
	pipeEnd := make(chan error, 1)
	go func() { pipeEnd <- s.pipe.Run(s.ctx, s.batches) }()

	var deadline <-chan time.Time
	var pipeErr error
	for pipeRunning := true; ; {
		select {
		case <-stop:
			stop = nil
			s.p.draining()
			s.stream.Stop()
			deadline = time.After(s.p.config.ShutdownTimeout)
		case <-s.p.recheck:
			s.cancel(errRecheck)
		case <-deadline:
			s.cancel(errShutdownTimeout)
			deadline = nil
		case pipeErr = <-pipeEnd:
			// Nothing more will be acknowledged: the last status update says
			// how far we came. What was not sent must not be sent once the slot
			// is free for others, so the producer ends first.
			pipeRunning = false
			s.closeProducer(parent)
			if stop != nil && s.p.keeps(pipeErr) {
				return pipeErr
			}
			s.stream.Finish()
		case <-s.done:
			// Without the slot nothing may be sent: whoever reads it next
			// begins at what was confirmed.
			s.cancel(s.err)
			if pipeRunning {
				pipeErr = <-pipeEnd
				if errors.Is(pipeErr, context.Cause(s.ctx)) {
					pipeErr = nil
				}
				s.closeProducer(parent)
			}
			return worse(pipeErr, s.err)
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

// advanced says whether anything was confirmed in this session.
func (s *session) advanced() bool { return s.stream.Confirmed() > s.stream.Start() }

// fruitful says whether this session has sent anything, or lasts.
func (s *session) fruitful() bool {
	return s.pipe.Status().Sent > 0 || time.Since(s.began) > settled
}

func (s *session) closeProducer(ctx context.Context) {
	go func() {
		for range s.producer.Results() {
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	s.producer.Close(ctx)
}

func (p *Publisher) rejection(r *pipeline.RejectedError) {
	if r == nil {
		p.log.Info("Kafka has accepted what it rejected", zap.String("event", "rejection_cured"))
		return
	}
	p.log.Error(r.Error(), zap.String("event", "rejected"),
		zap.Stringer("lsn", r.Rejection.Message.Position.CommitLSN), zap.String("topic", r.Rejection.Message.Record.Topic),
		zap.Int32("partition", r.Rejection.Partition), zap.ByteString("event_id", r.Rejection.Message.Record.EventID))
}
