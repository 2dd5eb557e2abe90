package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/internal/human"
	"github.com/cdcpub/cdcpub/internal/slotctl"
	"github.com/cdcpub/cdcpub/slotmon"
)

type slotDrainCommand struct {
	actionFlags
	Timeout time.Duration `default:"5m" help:"How long to wait."`
	Wait    bool          `help:"Wait also while nobody is connected to the slot."`
}

type drainResult struct {
	result
	Before         time.Time       `json:"committed_before"`
	LSN            slotmon.LSN     `json:"lsn"`
	Confirmed      slotmon.LSN     `json:"confirmed_flush_lsn"`
	RemainingBytes int64           `json:"remaining_bytes"`
	Holder         *slotmon.Holder `json:"holder"`
	// Unconfirmed are the rows that were counted because nobody is connected.
	Unconfirmed *slotctl.Count `json:"unconfirmed,omitempty"`
}

// drainCount bounds that count.
var drainCount = slotctl.CountLimits{Rows: 1_000_000, Time: 30 * time.Second}

// progressInterval is the time between two lines of progress.
const progressInterval = 2 * time.Second

func (c *slotDrainCommand) Run(ctx context.Context, p *process) error {
	return c.run(ctx, p, c.drain)
}

func (c *slotDrainCommand) drain(ctx context.Context, a *action) error {
	if _, _, err := slotctl.Find(ctx, a.conn, c.Slot); err != nil {
		return err
	}
	a.say("Waits until everything that is committed now is confirmed by whoever reads slot %s at %s (%s at most).", c.Slot, a.server.name, config.Duration(c.Timeout))
	a.say("It does not touch the slot; it commits one empty transaction. What is committed later is not waited for: stop the writers first if nothing may be missing.")
	mark, err := slotctl.MarkEnd(ctx, a.conn)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("waited for %s", config.Duration(c.Timeout)))
	defer cancel()
	drain := slotctl.Drain{Slot: c.Slot, Mark: mark, Wait: c.Wait, Report: c.reporter(a)}
	last, err := drain.Run(limited, a.conn)
	done := drainResult{result: a.result("drain", err == nil), Before: mark.Time.UTC(), LSN: slotmon.LSN(mark.LSN),
		Confirmed: slotmon.LSN(last.Confirmed), RemainingBytes: last.Remaining, Holder: last.Holder}
	var nobody *slotctl.NobodyError
	var late *slotctl.NotDrainedError
	before := done.Before.Format("2006-01-02 15:04:05.000000 UTC")
	if errors.As(err, &nobody) {
		if done.Unconfirmed, err = c.count(ctx, a, &drain, nobody); err == nil {
			done.Done = true
			return a.finish(done, "everything committed before %s (LSN %s) is confirmed: nobody is connected, but the %d bytes of WAL after confirmed_flush_lsn %s hold no row that is published",
				before, mark.LSN, last.Remaining, last.Confirmed)
		}
	}
	switch {
	case err == nil:
		return a.finish(done, "everything committed before %s (LSN %s) is confirmed; confirmed_flush_lsn is %s", before, mark.LSN, last.Confirmed)
	case c.Output == "json" && (errors.As(err, &nobody) || errors.As(err, &late)):
		return errors.Join(err, a.finish(done, ""))
	}
	return err
}

// count looks for rows in the WAL that nobody has confirmed. Without any the
// slot is drained; otherwise the error is nobody.
func (c *slotDrainCommand) count(ctx context.Context, a *action, drain *slotctl.Drain, nobody *slotctl.NobodyError) (*slotctl.Count, error) {
	publications := a.published(nil)
	if len(publications) == 0 {
		return nil, nobody
	}
	reader, err := a.reader(ctx)
	if err != nil {
		return nil, err
	}
	count, err := drain.Unconfirmed(ctx, a.conn, reader, publications, drainCount)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w; what they hold was not counted: %w", nobody, err)
	case count.Rows == 0 && count.Exact():
		return &count, nil
	}
	a.say("%s", counted(count, "are not confirmed"))
	return &count, nobody
}

// reporter says who reads, whenever that changes, and now and then what is left.
func (c *slotDrainCommand) reporter(a *action) func(slotctl.Progress) {
	var said time.Time
	holder := -1
	return func(now slotctl.Progress) {
		pid := 0
		if now.Holder != nil {
			pid = now.Holder.PID
		}
		switch {
		case pid == holder:
		case pid == 0:
			a.say("nobody is connected to slot %s", c.Slot)
		default:
			a.say("slot %s is read by %s", c.Slot, slotctl.Holder(now.Holder))
		}
		if holder = pid; time.Since(said) < progressInterval {
			return
		}
		text := human.Bytes(now.Remaining) + " of WAL left"
		if now.Rate > 0 {
			text += fmt.Sprintf(", %s/s", human.Bytes(int64(now.Rate)))
		}
		if left := now.Left(); left > 0 {
			text += ", about " + max(left.Round(time.Second), time.Second).String()
		}
		said = time.Now()
		a.say("%s", text)
	}
}
