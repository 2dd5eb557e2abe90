package wal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/internal/pgfault"
)

// prober looks at the server from a second, short-lived connection when the
// replication connection cannot tell what is going on:
//
//   - We hold the confirmed LSN back. A server that is shutting down then waits
//     for us for ever, and when the window is full we do not even read the
//     message that announces it.
//   - Nothing is heard. Older servers send no keepalive while they decode a
//     huge foreign transaction; to reconnect would mean to decode it again.
//   - We do not read, so that we cannot hear. Whoever publishes must know that
//     it still holds the slot.
//   - Somebody has to know it for certain (Look).
//
// No connection is held between looks: it would block a smart shutdown. All
// fields belong to the stream's goroutine; look runs on its own.
type prober struct {
	look    func(context.Context) error // nil error: the slot is held by our walsender
	timeout time.Duration               // wal_sender_timeout
	// asked has who waits for a look that begins later than the question. It is
	// the one field that others use.
	asked chan chan<- error

	ctx           context.Context
	results       chan probeResult
	looks         sync.WaitGroup
	running       bool
	last          time.Time // when the last look began
	valid         time.Time // looks that began earlier looked for another walsender
	flush         pglogrepl.LSN
	withheldSince time.Time // zero while nothing is held back
}

type probeResult struct {
	began time.Time
	err   error
}

const (
	withheldLimit = 2 * time.Second
	probeInterval = 2 * time.Second
	probeLimit    = 3 * time.Second
)

func (p *prober) begin(ctx context.Context) {
	p.ctx, p.results = ctx, make(chan probeResult, 1)
}

// again looks for another walsender of ours from now on.
func (p *prober) again(look func(context.Context) error, now time.Time) {
	p.look, p.valid = look, now
}

// progress notes how far confirming is behind receiving.
func (p *prober) progress(now time.Time, flush, received pglogrepl.LSN) {
	switch {
	case flush >= received:
		p.withheldSince = time.Time{}
	case flush != p.flush || p.withheldSince.IsZero():
		p.withheldSince = now
	}
	p.flush = flush
}

// next is when judge must be called again; zero when a look is under way,
// whose end wakes the owner.
func (p *prober) next(heard time.Time) time.Time {
	if p.running {
		return time.Time{}
	}
	due := heard.Add(p.timeout / 2)
	if withheld := p.withheldSince.Add(withheldLimit); !p.withheldSince.IsZero() && withheld.Before(due) {
		due = withheld
	}
	return later(due, p.last.Add(probeInterval))
}

// judge draws the conclusion from the last look and begins the next when one
// is needed. A look that finds our walsender at work is as good as a message
// from it, so however long the server is silent, the stream stays. It ends
// when neither has been had for wal_sender_timeout.
func (p *prober) judge(s *Stream, now time.Time) error {
	select {
	case result := <-p.results:
		p.running = false
		switch silence := s.link.silence(); {
		case result.began.Before(p.valid):
		case result.err == nil:
			s.link.renew(result.began)
		case errors.Is(result.err, ErrServerStopping), errors.Is(result.err, ErrSlotTaken):
			return result.err
		case silence > p.timeout:
			return fmt.Errorf("%w (%s), and looking at it failed: %w", ErrSilent, silence.Round(time.Millisecond), result.err)
		}
	default:
	}
	withheld := !p.withheldSince.IsZero() && now.Sub(p.withheldSince) >= withheldLimit
	due := (withheld || s.link.silence() >= p.timeout/2) && now.Sub(p.last) >= probeInterval
	if !p.running && (due || len(p.asked) > 0) {
		p.running, p.last = true, now
		look, waiting := p.look, p.takeAsked()
		p.looks.Go(func() {
			err := look(p.ctx)
			for _, answer := range waiting {
				answer <- err
			}
			p.results <- probeResult{began: now, err: err}
			s.poke()
		})
	}
	return nil
}

func (p *prober) takeAsked() []chan<- error {
	var waiting []chan<- error
	for {
		select {
		case answer := <-p.asked:
			waiting = append(waiting, answer)
		default:
			return waiting
		}
	}
}

// Look asks the server, on a short connection of its own, who holds the slot.
// Nil proves that this stream did at some time after the call had begun, which
// no bytes of the replication connection can: they may have been on their way
// since before a takeover. What the look finds counts for Run too, which ends
// when somebody else has the slot.
//
// It works while Run does, whether batches are taken or not, and whatever the
// walsender is busy with. It ends with ctx, with Run, or when the server says
// nothing for some seconds. Safe from any goroutine.
func (s *Stream) Look(ctx context.Context) error {
	answer := make(chan error, 1)
	select {
	case s.probes.asked <- answer:
	case <-s.ended:
		return errEnded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.poke()
	select {
	case err := <-answer:
		return s.config.unseen(s.link.place, err)
	case <-s.ended:
		return errEnded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errEnded = errors.New("the stream has ended")

// unseen gives a failed look its meaning.
func (c *Config) unseen(at place, err error) error {
	if err == nil || errors.Is(err, ErrSlotTaken) || errors.Is(err, ErrServerStopping) {
		return err
	}
	target := pgfault.Target{Stated: "postgres.url", User: c.user, Database: c.database, Timeout: probeLimit}
	return &UnreachableError{Address: at.address, Text: (*pgfault.Watch)(nil).Read(err, target, time.Now()).String(), Cause: err}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lookAtSlot opens a plain connection to where the stream is and asks who holds
// the slot. A server that is shutting down answers with SQLSTATE 57P03
// (cannot_connect_now). One that has no connection left (53300) may still have
// one for a walsender, which are counted apart.
//
// The session has the settings of the stream's: a role with a statement_timeout
// that no statement meets could else never publish.
func (c *Config) lookAtSlot(stream place, ours backend) func(context.Context) error {
	settings := c.sessionSettings()
	delete(settings, "replication")
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, probeLimit)
		defer cancel()
		config, err := c.Connect(ctx)
		if err != nil {
			return err
		}
		config = stream.only(config)
		apply(config, settings)
		conn, err := pgconn.ConnectConfig(ctx, config)
		if refusedWith(err, "53300") {
			config.RuntimeParams["replication"] = "database"
			conn, err = pgconn.ConnectConfig(ctx, config)
		}
		switch {
		case refusedWith(err, "57P03"):
			return ErrServerStopping
		case err != nil:
			return err
		}
		defer conn.Close(ctx)
		return holds(&catalog{ctx: ctx, conn: conn}, c.Slot, ours)
	}
}

func refusedWith(err error, code string) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == code
}

// holds returns nil if the slot is held by our walsender.
func holds(cat *catalog, slot string, ours backend) error {
	holders, err := query[backend](cat, "SELECT pg_catalog.row_to_json(h) FROM (SELECT s.active_pid AS pid, extract(epoch FROM a.backend_start)::text AS began FROM pg_catalog.pg_replication_slots s LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = s.active_pid WHERE slot_name = "+quoteLiteral(slot)+") h")
	switch {
	case err != nil:
		return err
	case len(holders) == 0:
		return fmt.Errorf("%w: slot %s is gone", ErrSlotTaken, slot)
	}
	switch holder := holders[0]; {
	case holder == ours:
		return nil
	case holder.PID == 0:
		return fmt.Errorf("%w: nobody holds slot %s, our walsender %d is gone", ErrSlotTaken, slot, ours.PID)
	case holder.PID == ours.PID:
		return fmt.Errorf("%w: slot %s is held by another process with the pid %d of ours, which is gone", ErrSlotTaken, slot, ours.PID)
	default:
		return fmt.Errorf("%w: slot %s is held by pid %d, ours is %d", ErrSlotTaken, slot, holder.PID, ours.PID)
	}
}
