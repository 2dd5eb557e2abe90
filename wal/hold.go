package wal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pglogrepl"
)

// A text that PostgreSQL cannot convert ends decoding and nothing else. The
// server reads ahead of us as far as the sockets hold: what it sent before is
// good, and mostly not even handed over when its error arrives. By then it has
// released the slot, and status updates move nothing any more. Every later
// stream would meet the same error just as early, so what lies before the text
// must be delivered and confirmed by this one.
//
// Whoever holds the slot publishes, here too. To send on without it could put a
// row behind newer ones of a standby that took it meanwhile. So the lease ends
// with the error, the slot is taken again, and only then the rest is handed
// over. When somebody else has it, or has moved it, nothing more is sent: the
// rows are that process's now. Who had it in between and confirmed nothing has
// begun where this stream began, and stopped at the same text: what it sent and
// what is sent now are in the same order.
//
// The slot is taken only to be held. START_REPLICATION at lastLSN skips every
// transaction, so that nothing of it is decoded, the bad one included. What is
// confirmed on it comes from Confirm as ever, and never from what it sends. It
// is a new connection, since PostgreSQL keeps memory of the failed decoding in
// the old one (its commit b46efe90482b, "Fix access-to-already-freed-memory
// issue in pgoutput", which version 14 does not have).

// lastLSN lies behind every transaction.
const lastLSN pglogrepl.LSN = math.MaxUint64

// holdLimit bounds taking the slot again.
const holdLimit = 10 * time.Second

// offerRest hands over what was read before something unreadable.
func (s *Stream) offerRest(ctx context.Context, out chan<- *Batch, reason error) error {
	if rowUnreadable(reason) {
		if err := s.hold(ctx); err != nil {
			return err
		}
	}
	return s.offer(ctx, out)
}

// hold takes the slot again, to deliver what was read before the text that
// cannot be converted. Status updates go over its connection from then on.
func (s *Stream) hold(ctx context.Context) error {
	s.link.released()
	s.batch.cut()
	ctx, cancel := context.WithTimeout(ctx, holdLimit)
	defer cancel()
	ending, end := context.WithTimeout(ctx, holdLimit/2)
	defer end()
	s.link.terminate(ending)
	held, err := s.config.takeAgain(ctx, s.link.place)
	if err != nil {
		return fmt.Errorf("what was committed before it is not delivered completely, since slot %s could not be taken again: %w", s.config.Slot, err)
	}
	s.held = held.link
	if held.confirmed > s.Confirmed() {
		return fmt.Errorf("%w: it stands at %s, and no more than %s was confirmed here", ErrSlotTaken, held.confirmed, s.Confirmed())
	}
	s.held.sent, s.held.trust = held.at, s.link.trust
	s.held.stream(s.mayWait)
	s.probes.again(s.config.lookAtSlot(s.link.place, held.walsender), held.at)
	s.link.renew(held.at)
	return nil
}

// held is a slot that is held and not read.
type held struct {
	link      *link
	walsender backend
	confirmed pglogrepl.LSN
	at        time.Time // the server held it for us at this time or later
}

// takeAgain connects to where the stream was. The publication does not matter:
// nothing is decoded.
func (c *Config) takeAgain(ctx context.Context, at place) (*held, error) {
	conn, err := c.Connect(ctx)
	if err != nil {
		return nil, err
	}
	conn = at.only(conn)
	link, watch, err := dial(ctx, conn, c.sessionSettings())
	if err != nil {
		return nil, c.unconnected(conn, watch, err)
	}
	held := &held{link: link}
	listening, end := link.unlessSilent(ctx, c.WALSenderTimeout)
	defer end()
	if err := c.holdOn(listening, held); err != nil {
		link.close()
		return nil, silentOr(listening, err)
	}
	return held, nil
}

func (c *Config) holdOn(ctx context.Context, held *held) error {
	catalog := catalog{ctx: ctx, conn: held.link.pg}
	if err := settle(&catalog); err != nil {
		return c.explain(err)
	}
	system, err := pglogrepl.IdentifySystem(ctx, held.link.pg)
	if err != nil {
		return c.explain(fmt.Errorf("identify system: %w", err))
	}
	slot, err := c.checkSlot(&catalog, system)
	if err != nil {
		return err
	}
	held.confirmed = slot.confirmed
	if held.walsender, err = catalog.backend(); err != nil {
		return err
	}
	held.at = time.Now()
	return c.startReplication(ctx, held.link, lastLSN)
}

func (s *Stream) close() {
	s.link.close()
	if s.held != nil {
		s.held.close()
	}
}

// wire is what status updates go over.
func (s *Stream) wire() *link {
	if s.held != nil {
		return s.held
	}
	return s.link
}

// rowUnreadable errors end decoding at a row, and release the slot.
func rowUnreadable(err error) bool {
	stop, ok := errors.AsType[*StopError](err)
	return ok && stop.Reason == RowUnreadable
}
