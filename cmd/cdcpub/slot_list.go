package main

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/cdcpub/cdcpub/internal/slotview"
	"github.com/cdcpub/cdcpub/slotmon"
)

// slotViews are the slot commands that only look.
type slotViews struct {
	List   slotListCommand   `cmd:"" help:"List all slots of the server, one a line, each with its verdict."`
	Status slotStatusCommand `cmd:"" help:"Show everything about one slot, the verdict first. Exit code: 0 ok, 1 warning, 2 critical, 3 unknown."`
}

type slotListCommand struct {
	slotFlags
	Output string `short:"o" name:"output" enum:"table,json" default:"table" help:"table or json."`
}

func (slotListCommand) Help() string {
	return `LAG is from confirmed_flush_lsn to the end of WAL, RETAINED from restart_lsn.
The verdict is that of one sample; what needs two, such as growth, is part of
"cdcpub slot status". The list is no check: it exits with 0 whatever it shows.

Example:

    cdcpub slot list --url postgres://monitor@db.internal/shop`
}

func (c *slotListCommand) Run(ctx context.Context, p *process) error {
	server, err := c.server(p)
	if err != nil {
		return err
	}
	ctx, done := untilSignal(ctx, p)
	defer done()
	sample, err := server.sample(ctx, server.question(true))
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return withExitCode(err)
	}
	list := server.list(sample)
	if c.Output == "json" {
		return list.JSON(p.stdout)
	}
	return list.Table(p.stdout, p.style())
}

// list judges every slot of a sample.
func (s *slotServer) list(sample *slotmon.Sample) *slotview.List {
	ours := s.config.Postgres.Slot
	series := slotmon.NewSeries(seriesWindow)
	series.Add(sample, nil, ours)
	return slotview.NewList(s.name, sample, ours, func(slot string) slotmon.Report {
		subject := slotmon.Subject{Name: slot, FirstLook: true, Sample: sample, Trend: series.Trend(slot)}
		if slot == ours {
			subject.Expected = expectedOf(s.config, s.database)
		}
		return slotmon.Judge(limitsOf(&s.config.SlotMonitor, slot), subject)
	})
}

// style uses colors on a terminal, unless NO_COLOR is set (https://no-color.org).
func (p *process) style() slotview.Style {
	plain := slices.ContainsFunc(p.env, func(variable string) bool {
		name, value, _ := strings.Cut(variable, "=")
		return name == "NO_COLOR" && value != "" || name == "TERM" && value == "dumb"
	})
	return slotview.Style{Color: !plain && isTerminal(p.stdout)}
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && terminal(file) != nil
}
