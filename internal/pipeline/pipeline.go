package pipeline

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/cdcpub/cdcpub/checkpoint"
	"github.com/cdcpub/cdcpub/router"
	"github.com/cdcpub/cdcpub/wal"
)

// Config is what a Pipeline works with. All fields are required.
type Config struct {
	Route    func(commit time.Time, row wal.Row) (router.Record, error)
	Producer Producer
	// Start is the slot's confirmed_flush_lsn at the beginning of the session.
	Start  pglogrepl.LSN
	Window checkpoint.Limits
	// Confirm announces an LSN up to which everything is acknowledged. It is
	// called on Run's goroutine with increasing LSNs and must not block.
	Confirm func(pglogrepl.LSN)
	// StayOnRejection keeps the pipeline standing still at a rejected record
	// until it is accepted; otherwise Run ends with the *RejectedError.
	StayOnRejection bool
	// OnRejection is told of a rejected record, again after each attempt that
	// fails, every other minute if there are none, and with nil when the last of them was accepted after all.
	// Called on Run's goroutine.
	OnRejection func(*RejectedError)
	// Known is a row that an earlier session could not publish, or nil. The
	// same configuration cannot publish it now either, so a pipeline that comes
	// to its transaction ends with it, before sending that transaction's rows
	// once more.
	Known *UnpublishableError
}

// Pipeline moves one session's events to Kafka. All fields but status belong
// to Run's goroutine.
type Pipeline struct {
	config  Config
	tracker *checkpoint.Tracker

	batch *wal.Batch // being worked on, nil when the next may be taken
	next  int        // index of its first event that is not done
	// pending is the routed record that waits for room in the window, if waits.
	pending  router.Record
	waits    bool
	position Position // of the next row of the open transaction
	commit   time.Time
	messages []Message // routed, not yet handed to the producer

	rejected []standing // stands still while there are any; oldest first
	failure  error      // delivers what lies before it, then ends with it
	counts   counts
	status   statusBox
}

// New returns a Pipeline for one session.
func New(config Config) *Pipeline {
	return &Pipeline{config: config, tracker: checkpoint.New(config.Start, config.Window), counts: counts{confirmed: config.Start}}
}

// failureDrain bounds how long records that lie before a failure are waited
// for. What is not acknowledged by then is sent again in the next session.
const failureDrain = 5 * time.Second

// remindInterval is how often is looked for rejections to report again. The
// producer tries about as often.
const remindInterval = time.Minute

// Run works until batches is closed and everything is acknowledged (nil), or
// something ends it: the end of ctx, an unpublishable row, the producer's
// error, or batches that make no sense. What is confirmed at any moment is
// right whatever happens next.
func (p *Pipeline) Run(ctx context.Context, batches <-chan *wal.Batch) error {
	results := p.config.Producer.Results()
	reminder := time.NewTicker(remindInterval)
	defer reminder.Stop()
	var giveUp <-chan time.Time
	for {
		if err := p.work(); err != nil {
			p.failure = err
		}
		if p.failure != nil && giveUp == nil {
			giveUp = time.After(failureDrain)
		}
		p.publishStatus()
		intake := batches
		switch idle := p.tracker.Outstanding() == 0; {
		case p.failure != nil && idle:
			return p.failure
		case p.failure == nil && batches == nil && p.batch == nil && idle:
			return nil
		case p.failure != nil || len(p.rejected) > 0 || p.batch != nil:
			intake = nil
		}
		select {
		case batch, ok := <-intake:
			if !ok {
				batches = nil
				break
			}
			p.batch, p.next = batch, 0
		case result, ok := <-results:
			if !ok {
				return fmt.Errorf("the producer ended without an error")
			}
			if err := p.outcome(result); err != nil {
				return err
			}
		case <-reminder.C:
			p.remind()
		case <-giveUp:
			return p.failure
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// work takes the batch as far as the window allows, and hands over and
// confirms what it can, also in front of an error.
func (p *Pipeline) work() error {
	if p.batch == nil || len(p.rejected) > 0 || p.failure != nil {
		return nil
	}
	defer p.confirm()
	defer p.send()
	for p.next < len(p.batch.Events) {
		done, err := p.event(&p.batch.Events[p.next])
		if err != nil {
			return err
		}
		if !done {
			return nil
		}
		p.next++
	}
	p.batch.Release()
	p.batch = nil
	return nil
}

// send hands over what was routed. Not holding it back for a fuller batch is
// the producer's business.
func (p *Pipeline) send() {
	if len(p.messages) > 0 {
		p.messages = p.config.Producer.Send(p.messages)
	}
}

// event does one event; false means that its record waits for room.
func (p *Pipeline) event(e *wal.Event) (bool, error) {
	switch e.Kind {
	case wal.Begin:
		if known := p.config.Known; known != nil && known.Position.CommitLSN == e.LSN {
			return false, known
		}
		p.position, p.commit = Position{CommitLSN: e.LSN}, e.CommitTime
		return true, impossible(p.tracker.Begin())
	case wal.Insert:
		return p.row(e)
	case wal.Commit:
		p.counts.transactions++
		return true, impossible(p.tracker.Commit(e.LSN))
	case wal.Keepalive:
		p.tracker.Keepalive(e.LSN)
		return true, nil
	}
	return false, fmt.Errorf("unknown event kind %d", e.Kind)
}

func (p *Pipeline) row(e *wal.Event) (bool, error) {
	if !p.waits {
		var err error
		if p.pending, err = p.config.Route(p.commit, e.Row); err != nil {
			return false, &UnpublishableError{Position: p.position, RowLSN: e.LSN, Table: e.Row.Relation, Cause: err}
		}
	}
	size := footprint(&p.pending, e.Row)
	if p.waits = p.tracker.Full(size); p.waits {
		return false, nil
	}
	seq, err := p.tracker.Sent(size)
	if err != nil {
		return false, err
	}
	p.messages = append(p.messages, Message{
		Seq: seq, Record: p.pending, Position: p.position, Table: e.Row.Relation, Committed: p.commit.UnixMicro(),
	})
	p.position.Ordinal++
	p.pending = router.Record{}
	p.counts.sent++
	return true, nil
}

// footprint is what a record costs in memory until it is acknowledged: the row,
// all columns of which share one allocation, the record's encoding and the
// request that carries it, and the bookkeeping.
func footprint(r *router.Record, row wal.Row) int {
	size := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		size += len(h.Key) + len(h.Value)
	}
	size *= 2
	for _, value := range row.Values {
		size += len(value)
	}
	return size + 256 + 48*len(r.Headers)
}

func (p *Pipeline) outcome(result Result) error {
	switch {
	case result.Err != nil:
		return result.Err
	case result.Rejected != nil:
		p.reject(result.Rejected)
		return nil
	}
	for _, seq := range result.Acked {
		if err := p.tracker.Acked(seq); err != nil {
			return impossible(err)
		}
		p.accepted(seq)
	}
	p.counts.acked += len(result.Acked)
	p.counts.lastAcked = time.Now()
	p.confirm()
	return nil
}

// reject is where a policy other than standing still would decide. Several
// partitions may have a rejected record at their heads, and one that is tried
// again may be rejected again, by another limit.
func (p *Pipeline) reject(r *Rejection) {
	rejected := &RejectedError{Rejection: *r, Since: time.Now()}
	i := slices.IndexFunc(p.rejected, func(s standing) bool { return s.Rejection.Message.Seq == r.Message.Seq })
	if i < 0 {
		i = len(p.rejected)
		p.rejected = append(p.rejected, standing{})
	} else {
		rejected.Since = p.rejected[i].Since
	}
	p.rejected[i].RejectedError = rejected
	p.report(&p.rejected[i])
	if !p.config.StayOnRejection && p.failure == nil {
		p.failure = rejected
	}
}

// standing is a rejection that stands, and when OnRejection was last told.
// Status shows the error, so that is replaced and never changed.
type standing struct {
	*RejectedError
	reported time.Time
}

// accepted forgets a rejection whose record was acknowledged after all.
func (p *Pipeline) accepted(seq uint64) {
	if len(p.rejected) == 0 {
		return
	}
	p.rejected = slices.DeleteFunc(p.rejected, func(s standing) bool { return s.Rejection.Message.Seq == seq })
	if len(p.rejected) == 0 {
		p.config.OnRejection(nil)
	}
}

// remind reports what still stands and was not reported for so long that it
// is not being tried again.
func (p *Pipeline) remind() {
	for i := range p.rejected {
		if time.Since(p.rejected[i].reported) > remindInterval*3/2 {
			p.report(&p.rejected[i])
		}
	}
}

func (p *Pipeline) report(s *standing) {
	s.reported = time.Now()
	p.config.OnRejection(s.RejectedError)
}

func (p *Pipeline) confirm() {
	if lsn := p.tracker.Confirmed(); lsn > p.counts.confirmed {
		p.counts.confirmed = lsn
		p.config.Confirm(lsn)
	}
}
