package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/internal/slotctl"
	"github.com/cdcpub/cdcpub/slotmon"
)

type slotCreateCommand struct {
	actionFlags
	Publication  []string      `placeholder:"NAME" help:"Publication that the slot will be read with, which must exist before the slot; by default postgres.publication."`
	Timeout      time.Duration `default:"60s" help:"How long to wait for the write transactions that are running."`
	Failover     bool          `help:"Have standbys keep a copy of the slot, so that it survives a failover (PostgreSQL 17 and newer)."`
	Standby      []string      `sep:"none" placeholder:"URL" help:"Standby to wait for with --failover; by default slot_monitor.standbys."`
	ReadyTimeout time.Duration `default:"90s" help:"How long to wait until a standby has the failover slot ready."`
}

type createResult struct {
	result
	Database string      `json:"database"`
	Begins   slotmon.LSN `json:"confirmed_flush_lsn"`
	Failover bool        `json:"failover"`
	// FailoverReady is nil if no standby was asked.
	FailoverReady *bool  `json:"failover_ready,omitempty"`
	Standby       string `json:"standby,omitempty"`
}

func (c *slotCreateCommand) Run(ctx context.Context, p *process) error {
	return c.run(ctx, p, c.create)
}

func (c *slotCreateCommand) create(ctx context.Context, a *action) error {
	publications := c.Publication
	if configured := a.server.config.Postgres.Publication; len(publications) == 0 && configured != "" {
		publications = []string{configured}
	}
	standbys, err := c.standbys(a)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	slot := slotctl.New{Name: c.Slot, Failover: c.Failover, Timeout: c.Timeout}
	sample, err := slotctl.CheckCreate(ctx, a.conn, slot, publications)
	if err != nil {
		return err
	}
	c.announce(a, sample, publications, standbys)
	if err := a.confirm(ctx); err != nil {
		return err
	}
	begins, err := slotctl.Create(ctx, a.conn, slot)
	if err != nil {
		return fmt.Errorf("create slot %s: %w", c.Slot, err)
	}
	done := createResult{result: a.result("create", true), Database: sample.Server.Database, Begins: slotmon.LSN(begins), Failover: c.Failover}
	switch {
	case !c.Failover:
		return a.finish(done, "created slot %s in database %s: it begins at LSN %s", c.Slot, done.Database, begins)
	case len(standbys) == 0:
		return a.finish(done, "created failover slot %s in database %s: it begins at LSN %s\nwhether a standby has it ready was not checked, since none is configured (slot_monitor.standbys or --standby); a failover slot that nobody reads may never become ready",
			c.Slot, done.Database, begins)
	}
	return c.awaitStandby(ctx, a, done, publications, standbys)
}

func (c *slotCreateCommand) announce(a *action, sample *slotmon.Sample, publications []string, standbys []slotctl.Standby) {
	a.say("Slot %s will be created at %s.", c.Slot, a.server.name)
	a.say("It begins now: rows committed before will not be published through it.")
	a.say("From then on the server keeps all WAL until somebody reads the slot and confirms: begin to publish soon, or drop it.")
	if len(publications) == 0 {
		a.say("Whether its publication exists is not checked: none is named. A slot that is older than its publication cannot be read.")
	}
	if len(standbys) > 0 {
		a.say("It is read here, and its rows are thrown away, until a standby has it ready (%s at most), for an unread one may never become ready: it begins then, not earlier.", config.Duration(c.ReadyTimeout))
	}
	if c.Failover && sample.Server.SyncedStandbys == "" {
		a.say("synchronized_standby_slots is empty on this server: rows can be published that a standby does not have yet, and that are gone after a failover.")
	}
}

// standbys are those to wait for; none without --failover.
func (c *slotCreateCommand) standbys(a *action) ([]slotctl.Standby, error) {
	if !c.Failover {
		return nil, nil
	}
	urls, stated := a.server.config.SlotMonitor.Standbys, "slot_monitor.standbys"
	if len(c.Standby) > 0 {
		urls, stated = nil, "--standby"
	}
	for _, url := range c.Standby {
		urls = append(urls, config.ConnString(url))
	}
	servers, err := standbysAt(a.server.config, urls, stated)
	if err != nil {
		return nil, err
	}
	standbys := make([]slotctl.Standby, len(servers))
	for i, server := range servers {
		standbys[i] = slotctl.Standby{Name: server.name, Connect: server.connect}
	}
	return standbys, nil
}

func (c *slotCreateCommand) awaitStandby(ctx context.Context, a *action, done createResult, publications []string, standbys []slotctl.Standby) error {
	reader, err := a.reader(ctx)
	if err != nil {
		return err
	}
	a.say("created failover slot %s; waiting for a standby", c.Slot)
	wait := slotctl.Wait{Slot: c.Slot, Server: reader, Publications: publications, Standbys: standbys}
	said := ""
	wait.Report = func(now slotctl.Readiness) {
		if text := strings.Join(now.Reasons, "\n"); text != said {
			said = text
			a.say("%s", text)
		}
	}
	limited, cancel := context.WithTimeoutCause(ctx, c.ReadyTimeout, fmt.Errorf("within %s", config.Duration(c.ReadyTimeout)))
	defer cancel()
	now, err := wait.Ready(limited, a.conn)
	if now.Begins != 0 {
		done.Begins = slotmon.LSN(now.Begins)
	}
	ready := err == nil
	done.FailoverReady, done.Standby = &ready, now.Ready
	var late *slotctl.NotReadyError
	switch {
	case err == nil && now.Reader != "":
		return a.finish(done, "created failover slot %s in database %s, ready on standby %s; it is read by %s", c.Slot, done.Database, now.Ready, now.Reader)
	case err == nil:
		return a.finish(done, "created failover slot %s in database %s, ready on standby %s: it begins at LSN %s", c.Slot, done.Database, now.Ready, done.Begins)
	case errors.As(err, &late):
		return errors.Join(err, a.finish(done, "created failover slot %s in database %s, not ready on a standby: it begins at LSN %s", c.Slot, done.Database, done.Begins))
	}
	return fmt.Errorf("failover slot %s was created, but whether a standby has it ready is not known: %w", c.Slot, err)
}
