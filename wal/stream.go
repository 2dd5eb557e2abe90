package wal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pglogrepl"
)

// Stream owns one replication connection from START_REPLICATION to its end.
// Run does everything on one goroutine; Confirm, Stop, Finish, Look, Silence,
// Quiet, Counters and Stall are the calls that others may make.
type Stream struct {
	config   Config
	identity Identity
	link     *link
	start    pglogrepl.LSN

	// Owned by Run's goroutine.
	decoder  *Decoder
	batch    *Batch
	due      time.Time     // when the next batch may be handed over if it is not full
	limit    time.Duration // of the interval to the next batch
	free     chan *Batch
	pacer    pacer
	received pglogrepl.LSN // highest position received: nothing beyond it may be confirmed
	probes   prober
	held     *link // holds the slot in place of link; nil while link does
	// inputs to pacer that other goroutines set
	confirmed atomic.Uint64 // pglogrepl.LSN; never decreases
	announced atomic.Bool   // an advance waits to be sent; set once per status update
	wake      chan struct{}
	stopping  atomic.Bool
	finish    chan struct{}
	finished  atomic.Bool
	ended     chan struct{} // closed by Run
	stall     atomic.Pointer[Stall]
	counters  counters
}

// Stall names why nothing comes although the connection lives.
type Stall struct {
	Cause string
	Since time.Time
}

// Identity is what must not change under a running publisher.
type Identity struct {
	SystemID string
	Timeline int32
	// Publication identifies the catalog rows that decide what is published.
	Publication string
}

// Identity returns what the server said before the stream began.
func (s *Stream) Identity() Identity { return s.identity }

// Start is the slot's confirmed_flush_lsn when the stream began.
func (s *Stream) Start() pglogrepl.LSN { return s.start }

// Confirm announces that everything up to the LSN is acknowledged: the end LSN
// of a transaction or a keepalive position. It is sent at once, at most ten
// times a second. Safe from any goroutine; a lower LSN than before is ignored.
func (s *Stream) Confirm(lsn pglogrepl.LSN) {
	for {
		old := s.confirmed.Load()
		if uint64(lsn) <= old {
			return
		}
		if s.confirmed.CompareAndSwap(old, uint64(lsn)) {
			break
		}
	}
	s.counters.confirmed.Store(time.Now().UnixNano())
	if s.announced.CompareAndSwap(false, true) {
		s.poke()
	}
}

// Confirmed returns the newest confirmed LSN. Safe from any goroutine.
func (s *Stream) Confirmed() pglogrepl.LSN { return pglogrepl.LSN(s.confirmed.Load()) }

// Stop asks Run to read on to the end of the open transaction, then to close
// its channel of batches and to wait for Finish. Safe from any goroutine.
func (s *Stream) Stop() {
	s.stopping.Store(true)
	s.poke()
}

// Finish lets Run send the last status update and end the connection, whatever
// is open: called when nothing more will be confirmed, usually after the
// channel of batches was closed. Safe from any goroutine, more than once.
func (s *Stream) Finish() {
	if s.finished.CompareAndSwap(false, true) {
		close(s.finish)
		s.poke()
	}
}

// Silence is how long ago the server was known to hold the slot for us: the
// publisher's lease runs on it. Safe from any goroutine.
func (s *Stream) Silence() time.Duration { return s.link.silence() }

// Quiet is how long the stream has listened on the replication connection and
// heard nothing. Looks at the server from outside, which renew the lease, do
// not count, and neither does the time in which the stream does not listen,
// since the receiver takes no batch. So a walsender that stands still, or
// decodes a huge transaction of other tables, shows here alone. Safe from any
// goroutine.
func (s *Stream) Quiet() time.Duration { return s.link.quiet() }

// Stall returns the server's reason for sending nothing, or nil. Safe from any
// goroutine.
func (s *Stream) Stall() *Stall { return s.stall.Load() }

func (s *Stream) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
	s.link.interrupt()
}

// How long the stream waits for others at its end. PostgreSQL waits for us
// while it shuts down, and its operator waits for it.
const (
	serverStopLimit = 3 * time.Second
	unreadableLimit = 30 * time.Second // after a text that PostgreSQL cannot convert: nobody waits
	finishLimit     = 2 * time.Second
)

// widenAfter is how long a narrow window may go without being read: it is short for
// wal_sender_timeout and long for a receiver that keeps up.
const widenAfter = 200 * time.Millisecond

// Run reads until Stop, an error, or the end of ctx, and hands over batches in
// stream order. When the receiver does not take one, Run stops reading and
// keeps sending status updates, so that a slow broker never costs the
// connection.
//
// It closes out when no more batches come. After Stop, ErrServerStopping and a
// message that cannot be read the connection is kept until Finish, so that what
// drains meanwhile can still be confirmed. After a text that PostgreSQL cannot
// convert another connection does that, if it gets the slot. A cancelled ctx ends
// at once and confirms nothing further. Run closes every connection before it
// returns.
func (s *Stream) Run(ctx context.Context, out chan<- *Batch) error {
	defer close(s.ended)
	defer s.close()
	defer context.AfterFunc(ctx, s.poke)()
	probing, endProbes := context.WithCancel(ctx)
	defer s.probes.looks.Wait()
	defer endProbes()
	s.probes.begin(probing)

	s.link.stream(s.mayWait)
	s.link.narrowWindow()
	reason := s.read(ctx, out)
	inOrder := reason == nil || errors.Is(reason, ErrServerStopping)
	if unreadable(reason) {
		// What was read before it is good, and can still be confirmed.
		err := s.offerRest(ctx, out, reason)
		inOrder, reason = err == nil, errors.Join(reason, err)
	}
	if !inOrder {
		s.link.expire() // before anything that takes time
	}
	close(out)
	if inOrder {
		return s.leave(ctx, reason)
	}
	return reason
}

// unreadable errors are about a message or a row, not about the connection.
func unreadable(err error) bool {
	var malformed *MalformedError
	var unknown *UnknownRelationError
	return errors.As(err, &malformed) || errors.As(err, &unknown) || rowUnreadable(err)
}

// read is the reading part of Run. It returns nil when Stop was asked for and
// the open transaction has ended, or on Finish.
func (s *Stream) read(ctx context.Context, out chan<- *Batch) error {
	for {
		// Taken before looking at what it announces, or it would be lost.
		select {
		case <-s.wake:
		default:
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := s.tend(); err != nil {
			return err
		}
		if s.finished.Load() || s.stopping.Load() && !s.decoder.InTransaction() && len(s.batch.Events) == 0 {
			return nil
		}
		if err := s.fill(); err != nil {
			return err
		}
		s.pace()
		if err := s.offer(ctx, out); err != nil {
			return err
		}
	}
}

// fill reads until there is nothing left to read without waiting, the batch is
// full, or Stop finds the end of a transaction.
func (s *Stream) fill() error {
	for {
		if err := s.receive(); timedOut(err) {
			return nil
		} else if err != nil {
			return err
		}
		if s.batch.full() || s.stopping.Load() && !s.decoder.InTransaction() {
			return nil
		}
	}
}

// pace notes how much the socket had.
func (s *Stream) pace() {
	if s.link.taken == 0 {
		return
	}
	s.limit = s.link.gathering.limit(s.limit, s.link.taken)
	s.link.taken = 0
}

// mayWait answers the link: is there nothing to do before waiting for bytes? A
// row is to be handed over; the beginning or the end of a transaction can wait
// a little for the rows that follow.
func (s *Stream) mayWait() (time.Time, bool) {
	next := s.next()
	if len(s.batch.Events) > 0 && s.due.Before(next) {
		next = s.due
	}
	if s.batch.Bytes > 0 || len(s.wake) > 0 || !time.Now().Before(next) {
		return next, false
	}
	return next, true
}

// next is when the owner must be awake again, whatever happens.
func (s *Stream) next() time.Time {
	return s.pacer.next(s.announced.Load(), s.probes.next(s.link.heardAt()))
}

// offer hands over the batch. While the receiver does not take it, nothing is
// read and the status goes on.
func (s *Stream) offer(ctx context.Context, out chan<- *Batch) error {
	widen := s.link.readAt.Add(widenAfter)
	for len(s.batch.Events) > 0 && !s.finished.Load() {
		taker, next, interval, tally := out, s.next(), s.batch.interval(s.limit), s.batch.tally()
		if s.link.narrowed && widen.Before(next) {
			next = widen
		}
		if !s.batch.full() && time.Now().Before(s.due) {
			taker = nil
			if s.due.Before(next) {
				next = s.due
			}
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case taker <- s.batch:
			s.batch, s.due = s.newBatch(), time.Now().Add(interval)
			s.counters.add(tally)
		case <-timer.C:
		case <-s.wake:
		case <-ctx.Done():
		}
		timer.Stop()
		s.link.listen()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !time.Now().Before(widen) {
			s.link.widenWindow()
		}
		if err := s.tend(); err != nil {
			return err
		}
	}
	return nil
}

// tend does what is due: status updates, and looking at the server from
// outside when it is silent or when we hold the confirmed LSN back.
func (s *Stream) tend() error {
	now := time.Now()
	s.counters.received.Store(uint64(s.received))
	s.probes.progress(now, s.Confirmed(), s.received)
	if err := s.probes.judge(s, now); err != nil {
		return err
	}
	if s.pacer.due(now, s.announced.Load()) {
		return s.sendStatus(now)
	}
	return nil
}

// sendStatus reports how far we are. Flush is set explicitly: it is the only
// field that moves the slot, and a zero would be filled with the write
// position by some encoders. PostgreSQL documentation, "Streaming Replication
// Protocol", Standby status update.
func (s *Stream) sendStatus(now time.Time) error {
	s.announced.Store(false)
	flush := s.Confirmed()
	if flush > s.received {
		return fmt.Errorf("refusing to confirm %s on slot %s: only %s was received on this connection", flush, s.config.Slot, s.received)
	}
	// Looks keep the lease young, and an idle server that is not asked says
	// nothing: without asking it could not be told from one that stands still.
	ask := max(s.link.silence(), s.link.quiet()) >= s.pacer.interval/2
	status := make([]byte, 0, 34)
	status = append(status, 'r')
	status = binary.BigEndian.AppendUint64(status, uint64(s.received))
	status = binary.BigEndian.AppendUint64(status, uint64(flush))
	status = binary.BigEndian.AppendUint64(status, uint64(flush))
	status = binary.BigEndian.AppendUint64(status, uint64(now.UnixMicro()-postgresEpoch))
	if ask {
		status = append(status, 1)
	} else {
		status = append(status, 0)
	}
	s.pacer.sent(now)
	return s.wire().send(status)
}

// leave keeps the connection and the lease alive until Finish, then ends the
// connection. The last status update is processed by the server before leave
// returns nil. When there is a reason for leaving other than Stop, the wait is
// bounded.
func (s *Stream) leave(ctx context.Context, reason error) error {
	s.link.widenWindow()
	var giveUp <-chan time.Time
	for waiting := true; waiting; {
		if reason != nil && giveUp == nil {
			giveUp = time.After(leaveLimit(reason))
		}
		timer := time.NewTimer(time.Until(s.next()))
		select {
		case <-s.finish:
			waiting = false
		case <-giveUp:
			waiting = false
		case <-ctx.Done():
		case <-timer.C:
		case <-s.wake:
		}
		timer.Stop()
		s.link.listen()
		if ctx.Err() != nil {
			return errors.Join(reason, context.Cause(ctx))
		}
		if !waiting {
			break
		}
		switch err := s.tend(); {
		case errors.Is(err, ErrServerStopping):
			if rowUnreadable(reason) {
				giveUp = nil // the shorter limit counts from now
			}
			reason = err
		case err != nil:
			return errors.Join(reason, err)
		}
	}
	if err := s.sendStatus(time.Now()); err != nil {
		return errors.Join(reason, err)
	}
	return errors.Join(reason, s.wire().finish(finishLimit))
}

func leaveLimit(reason error) time.Duration {
	if rowUnreadable(reason) {
		return unreadableLimit
	}
	return serverStopLimit
}

func (s *Stream) newBatch() *Batch {
	select {
	case b := <-s.free:
		return b
	default:
		return &Batch{free: s.free}
	}
}
