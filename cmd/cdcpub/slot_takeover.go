package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/internal/slotctl"
	"github.com/cdcpub/cdcpub/slotmon"
)

type slotTakeoverCommand struct {
	actionFlags
	From    string        `placeholder:"NAME" help:"End the holder also if this is its application_name, and not a cdcpub's."`
	Timeout time.Duration `default:"30s" help:"How long to wait until the slot is free."`
}

type takeoverResult struct {
	result
	Ended  *slotmon.Holder `json:"ended"`  // nil: nobody held the slot
	Holder *slotmon.Holder `json:"holder"` // of now, nil: the slot is free
}

// successorLimit is how long a standby may take to have the slot. A cdcpub that
// was ended leaves it alone for longer than that.
const successorLimit = 2500 * time.Millisecond

func (c *slotTakeoverCommand) Run(ctx context.Context, p *process) error {
	return c.run(ctx, p, c.takeover)
}

func (c *slotTakeoverCommand) takeover(ctx context.Context, a *action) error {
	slot, err := slotctl.CheckTakeover(ctx, a.conn, c.Slot, c.applications(a))
	switch {
	case err != nil:
		return err
	case !slot.Active:
		return a.finish(takeoverResult{result: a.result("takeover", true)}, "nobody holds slot %s: it is free", c.Slot)
	}
	c.announce(a, slot)
	if err := a.confirm(ctx); err != nil {
		return err
	}
	ended := *slot.Holder
	if err := slotctl.End(ctx, a.conn, c.Slot, &ended); err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("pid %d was told to end, but still held slot %s after %s", ended.PID, c.Slot, config.Duration(c.Timeout)))
	defer cancel()
	now, err := slotctl.AwaitRelease(limited, a.conn, c.Slot, ended.PID)
	if err != nil {
		return err
	}
	if now.Holder == nil {
		if now, err = slotctl.AwaitHolder(ctx, a.conn, c.Slot, successorLimit); err != nil {
			return err
		}
	}
	done := takeoverResult{result: a.result("takeover", true), Ended: &ended, Holder: now.Holder}
	if now.Holder == nil {
		return a.finish(done, "ended pid %d; slot %s is free", ended.PID, c.Slot)
	}
	return a.finish(done, "ended pid %d; slot %s is held by %s now", ended.PID, c.Slot, slotctl.Holder(now.Holder))
}

// applications are the application_names whose holders may be ended: what
// cdcpub run sets, or finds in the connection string, and --from.
func (c *slotTakeoverCommand) applications(a *action) []string {
	names := []string{a.server.publisherName, "cdcpub"}
	if c.From != "" {
		names = append(names, c.From)
	}
	return slices.Compact(names)
}

// announce says what it means for data, which depends on whose slot it is.
func (c *slotTakeoverCommand) announce(a *action, slot *slotmon.Slot) {
	a.say("The holder of slot %s at %s will be ended: %s.", c.Slot, a.server.name, slotctl.Holder(slot.Holder))
	if slot.Type != "logical" {
		a.say("It is a physical slot: a standby or archiver reads from it, and will connect again by itself.")
		return
	}
	a.say("What it has published but not confirmed (after LSN %s) is published again by the next one: repeats, never losses.", slot.ConfirmedFlushLSN)
	if slot.Holder.ApplicationName == c.From && c.From != "cdcpub" {
		a.say("If it is a connector, Kafka Connect starts it again and it takes the slot back: stop the connector first.")
		return
	}
	a.say("If it is blocked because a topic was created again or its partition count changed, a standby accepts the topic as it is; without a standby it takes the slot back and stays blocked: restart it instead.")
	a.say("If it is not stopped, it connects again after 3 s: a standby has the slot by then, and if there is none, it takes the slot back.")
}
