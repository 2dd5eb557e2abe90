package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cdcpub/cdcpub/internal/pause"
	"github.com/cdcpub/cdcpub/internal/slotview"
	"github.com/cdcpub/cdcpub/slotmon"
)

type slotStatusCommand struct {
	slotFlags
	Name   string        `arg:"" optional:"" help:"The slot; by default the one that the configuration publishes from."`
	Sample time.Duration `name:"sample" default:"2s" help:"Time between the two samples that rates are made of; 0s takes one sample, without rates. For a reader that is behind and reports nothing in that time it is up to 10s longer."`
	Output string        `short:"o" name:"output" enum:"table,json,nagios" default:"table" help:"table, json, or nagios: the line of a monitoring plugin with performance data."`
}

func (slotStatusCommand) Help() string {
	return `Each reason has its number and limit, what is known of its cause, and what to do
next; its id is that of the alert and of the section in the runbook.

Exit code: 0 ok, 1 warning, 2 critical, 3 unknown, as monitoring plugins have it.
Whatever keeps the command from looking is unknown: a configuration, an argument
or a name that is wrong, a server that cannot be reached.

The publisher at http.advertise is asked when the slot is the configured one.

Examples:

    cdcpub slot status
    cdcpub slot status debezium -o nagios --url postgres://monitor@db.internal/shop`
}

// seriesWindow is how far back rates look when only a few samples are taken.
const seriesWindow = time.Minute

// publisherTimeout is how long the publisher may take to tell its state.
const publisherTimeout = 2 * time.Second

// maxSample keeps a check from being killed by what called it.
const maxSample = time.Minute

func (c *slotStatusCommand) Run(ctx context.Context, p *process) error {
	ctx, done := untilSignal(ctx, p)
	defer done()
	status := c.status(ctx, p)
	var err error
	switch c.Output {
	case "json":
		err = status.JSON(p.stdout)
	case "nagios":
		err = status.Nagios(p.stdout)
	default:
		err = status.Screen(p.stdout, p.style())
	}
	switch {
	case err != nil:
		return &exitError{code: exitUnknown, err: err}
	case status.Verdict != slotmon.OK:
		return &exitError{code: int(status.Verdict), err: errors.New(status.Verdict.String()), silent: true}
	}
	return nil
}

// exitUnknown is the exit code of whatever keeps slot status from looking.
const exitUnknown = int(slotmon.Unknown)

// status looks at the slot. What goes wrong is part of the status.
func (c *slotStatusCommand) status(ctx context.Context, p *process) *slotview.Status {
	if c.Sample < 0 || c.Sample > maxSample {
		return slotview.Failed(c.Name, fmt.Sprintf("--sample must be from 0s to %s", maxSample))
	}
	server, err := c.server(p)
	if err != nil {
		return slotview.Failed(c.Name, err.Error())
	}
	name := c.Name
	if name == "" {
		name = server.config.Postgres.Slot
	}
	if name == "" {
		return slotview.Failed("", "no slot is named: cdcpub slot status NAME, or state postgres.slot; `cdcpub slot list` shows the slots")
	}
	subject, err := server.look(ctx, name, c.Sample)
	if err != nil {
		return slotview.Failed(name, err.Error())
	}
	limits := limitsOf(&server.config.SlotMonitor, name)
	return slotview.NewStatus(server.name, subject, slotmon.Judge(limits, subject), limits)
}

// look finds out what is to be judged. A server that cannot be asked is part
// of that; the error is one of the configuration, or the end of ctx.
func (s *slotServer) look(ctx context.Context, name string, apart time.Duration) (slotmon.Subject, error) {
	subject := slotmon.Subject{Name: name, FirstLook: true}
	publisher := make(chan *slotmon.Publisher, 1)
	ours := name == s.config.Postgres.Slot
	if address := s.config.HTTP.Advertise; ours && address != "" {
		go func() { publisher <- slotview.Ask(ctx, address, name, publisherTimeout) }()
	} else {
		publisher <- nil
	}
	if ours {
		subject.Expected = expectedOf(s.config, s.database)
	}
	err := s.takeSamples(ctx, &subject, s.question(ours), apart)
	subject.Publisher = <-publisher
	var failed *serverError
	switch {
	case ctx.Err() != nil:
		return subject, context.Cause(ctx)
	case errors.As(err, &failed):
		subject.Sample, subject.Trend, subject.Unreachable = nil, slotmon.Trend{}, failed.reason()
		return subject, nil
	}
	return subject, err
}

// takeSamples takes two samples, so long apart, each on a connection of its
// own: nothing is held while it waits. It takes further ones for as long as a
// reader that is behind may yet report.
func (s *slotServer) takeSamples(ctx context.Context, subject *slotmon.Subject, q slotmon.Question, apart time.Duration) error {
	standbyServers, err := standbys(s.config)
	if err != nil {
		return err
	}
	first, err := s.sample(ctx, q)
	if err != nil {
		return err
	}
	slot := first.FindSlot(subject.Name)
	if slot != nil && slot.Failover != nil && *slot.Failover && !first.Server.InRecovery {
		subject.Standbys = askStandbys(ctx, standbyServers, first, subject.Name)
	}
	series := slotmon.NewSeries(seriesWindow)
	add := func(sample *slotmon.Sample) {
		series.Add(sample, map[string][]slotmon.Standby{subject.Name: subject.Standbys}, subject.Name)
		subject.Sample, subject.Trend = sample, series.Trend(subject.Name)
	}
	add(first)
	for slot != nil && apart > 0 {
		if err := pause.For(ctx, time.Until(subject.Sample.Taken.Add(apart))); err != nil {
			return err
		}
		next, err := s.sample(ctx, q)
		if err != nil {
			return err
		}
		add(next)
		if again := next.FindSlot(subject.Name); !mayReport(subject.Trend, slot, again, next.Server.Now) {
			subject.Trend = dependable(subject.Trend, slot, again, next.Server.Now)
			return nil
		}
		apart = max(apart, time.Second)
	}
	return nil
}

// misusedStatus answers a command line of slot status that cannot be parsed: a
// line that monitoring shows, and unknown, since 2 would be critical. It tells
// if it was one.
func (p *process) misusedStatus(wrong *usageError) bool {
	if wrong.command != "slot status" {
		return false
	}
	_ = slotview.Failed("", wrong.text+"; see "+wrong.help()).Nagios(p.stdout)
	return true
}
