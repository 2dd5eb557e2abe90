package main

import (
	"context"

	"github.com/cdcpub/cdcpub/internal/human"
	"github.com/cdcpub/cdcpub/internal/slotctl"
	"github.com/cdcpub/cdcpub/slotmon"
)

type slotDropCommand struct{ actionFlags }

type dropResult struct {
	result
	Type          string       `json:"type"`
	Plugin        string       `json:"plugin,omitempty"`
	Database      string       `json:"database,omitempty"`
	RestartLSN    *slotmon.LSN `json:"restart_lsn"`
	ConfirmedLSN  *slotmon.LSN `json:"confirmed_flush_lsn"`
	RetainedBytes *int64       `json:"retained_bytes"`
}

func (c *slotDropCommand) Run(ctx context.Context, p *process) error {
	return c.run(ctx, p, c.drop)
}

func (c *slotDropCommand) drop(ctx context.Context, a *action) error {
	sample, slot, err := slotctl.CheckDrop(ctx, a.conn, c.Slot)
	if err != nil {
		return err
	}
	c.announce(a, sample, slot)
	if err := a.confirm(ctx); err != nil {
		return err
	}
	if err := slotctl.Drop(ctx, a.conn, slot); err != nil {
		return err
	}
	done := dropResult{result: a.result("drop", true), Type: slot.Type, Plugin: slot.Plugin, Database: slot.Database,
		RestartLSN: slot.RestartLSN, ConfirmedLSN: slot.ConfirmedFlushLSN, RetainedBytes: slot.RetainedBytes}
	return a.finish(done, "dropped slot %s; the WAL that only it held is removed at the next checkpoint", c.Slot)
}

// announce says what is lost.
func (c *slotDropCommand) announce(a *action, sample *slotmon.Sample, slot *slotmon.Slot) {
	a.say("Slot %s (%s) at %s will be dropped. It cannot be made again as it was.", c.Slot, slotctl.Kind(slot), a.server.name)
	switch {
	case slot.Lost():
		a.say("It is lost already and holds no WAL; what it had not delivered can no longer be read from it.")
	case slot.RetainedBytes != nil:
		a.say("It holds %s of WAL, from %s to %s.", human.Bytes(*slot.RetainedBytes), slot.RestartLSN, sample.Server.WAL)
	default:
		a.say("It holds no WAL.")
	}
	switch {
	case slot.Type != "logical":
		a.say("A standby or archiver that reads from it may find the WAL that it needs removed, and must then be made anew.")
	case slot.ConfirmedFlushLSN != nil:
		a.say("confirmed_flush_lsn is %s: rows committed after it that are not published will never arrive. A new slot begins at its own creation.", slot.ConfirmedFlushLSN)
	}
}
