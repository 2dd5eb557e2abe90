package wal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
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
//
// No connection is held between looks: it would block a smart shutdown. All
// fields belong to the stream's goroutine; look runs on its own.
type prober struct {
	look    func(context.Context) error // nil error: the slot is held by our walsender
	timeout time.Duration               // wal_sender_timeout

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
	if (withheld || s.link.silence() >= p.timeout/2) && !p.running && now.Sub(p.last) >= probeInterval {
		p.running, p.last = true, now
		look := p.look
		p.looks.Go(func() {
			p.results <- probeResult{began: now, err: look(p.ctx)}
			s.poke()
		})
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lookAtSlot opens a plain connection to where the stream is and asks who holds
// the slot. A server that is shutting down answers with SQLSTATE 57P03
// (cannot_connect_now).
func lookAtSlot(connect func(context.Context) (*ConnConfig, error), stream place, slot string, pid int) func(context.Context) error {
	return func(ctx context.Context) error {
		config, err := connect(ctx)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, probeLimit)
		defer cancel()
		conn, err := pgconn.ConnectConfig(ctx, stream.only(config))
		if err != nil {
			var refused *pgconn.PgError
			if errors.As(err, &refused) && refused.Code == "57P03" {
				return ErrServerStopping
			}
			return err
		}
		defer conn.Close(ctx)
		result := conn.ExecParams(ctx, "SELECT active_pid FROM pg_catalog.pg_replication_slots WHERE slot_name = $1",
			[][]byte{[]byte(slot)}, nil, nil, nil).Read()
		if result.Err != nil {
			return result.Err
		}
		if len(result.Rows) == 0 {
			return fmt.Errorf("%w: slot %s is gone", ErrSlotTaken, slot)
		}
		switch holder := string(result.Rows[0][0]); holder {
		case strconv.Itoa(pid):
			return nil
		case "":
			return fmt.Errorf("%w: nobody holds slot %s, our walsender %d is gone", ErrSlotTaken, slot, pid)
		default:
			return fmt.Errorf("%w: slot %s is held by pid %s, ours is %d", ErrSlotTaken, slot, holder, pid)
		}
	}
}
