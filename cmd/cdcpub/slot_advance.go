package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/internal/human"
	"github.com/cdcpub/cdcpub/internal/slotctl"
	"github.com/cdcpub/cdcpub/slotmon"
)

type slotAdvanceCommand struct {
	actionFlags
	To           string        `required:"" placeholder:"LSN|now" help:"Where confirmed_flush_lsn shall be: an LSN such as 16/B374D848, or now, the end of the server's WAL."`
	SkipRows     bool          `help:"Advance although rows are skipped, or may be. They will never be published through this slot."`
	Publication  []string      `placeholder:"NAME" help:"Publication that the slot's reader uses, to count rows; by default postgres.publication for postgres.slot."`
	CountLimit   int64         `default:"1000000" help:"Stop counting at so many rows."`
	CountTimeout time.Duration `default:"30s" help:"Stop counting after this time."`
}

type advanceResult struct {
	result
	From    slotmon.LSN    `json:"from"`
	To      slotmon.LSN    `json:"to"`
	Skipped *slotctl.Count `json:"skipped"` // nil: not counted
}

// lsnText is stricter than pglogrepl.ParseLSN, which ignores what follows.
var lsnText = regexp.MustCompile(`^[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}$`)

// Validate is called by the command line's parser.
func (c *slotAdvanceCommand) Validate() error {
	switch {
	case c.To != "now" && !lsnText.MatchString(c.To):
		return fmt.Errorf("--to %q: want an LSN such as 16/B374D848, or now", c.To)
	case c.CountLimit < 1 || c.CountTimeout <= 0:
		return errors.New("--count-limit and --count-timeout must be positive; to advance without a count give --skip-rows and stop it early")
	}
	return nil
}

func (c *slotAdvanceCommand) target() (*pglogrepl.LSN, error) {
	if c.To == "now" {
		return nil, nil
	}
	lsn, err := pglogrepl.ParseLSN(c.To)
	return &lsn, err
}

func (c *slotAdvanceCommand) Run(ctx context.Context, p *process) error {
	return c.run(ctx, p, c.advance)
}

func (c *slotAdvanceCommand) advance(ctx context.Context, a *action) error {
	to, err := c.target()
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	plan, err := slotctl.CheckAdvance(ctx, a.conn, c.Slot, to)
	if err != nil {
		return err
	}
	done := advanceResult{result: a.result("advance", true), From: slotmon.LSN(plan.From), To: slotmon.LSN(plan.To)}
	if plan.From == plan.To {
		return a.finish(done, "slot %s stands at LSN %s already", c.Slot, plan.To)
	}
	a.say("Slot %s at %s will advance from LSN %s to %s, over %s of WAL. It cannot go back.", c.Slot, a.server.name, plan.From, plan.To, human.Bytes(int64(plan.To-plan.From)))
	if done.Skipped, err = c.count(ctx, a, plan); err != nil {
		return err
	}
	if exact := done.Skipped != nil && done.Skipped.Rows == 0 && done.Skipped.Exact(); !exact && !c.SkipRows {
		done.Done = false
		refused := &slotctl.RefusedError{Slot: c.Slot, Message: "was not advanced: rows would be skipped, or may be",
			Cure: "let the publisher publish them, or give --skip-rows if they shall never be published through this slot"}
		if c.Output == "json" {
			return errors.Join(refused, a.finish(done, ""))
		}
		return refused
	}
	if err := a.confirm(ctx); err != nil {
		return err
	}
	end, err := plan.Run(ctx, a.conn)
	if err != nil {
		return err
	}
	done.To = slotmon.LSN(end)
	return a.finish(done, "advanced slot %s: confirmed_flush_lsn is %s", c.Slot, end)
}

// count counts and says what would be skipped; nil if nothing can be counted.
func (c *slotAdvanceCommand) count(ctx context.Context, a *action, plan *slotctl.Advance) (*slotctl.Count, error) {
	publications := a.published(c.Publication)
	if len(publications) == 0 {
		if !c.SkipRows {
			return nil, &exitError{code: exitUsage, err: fmt.Errorf("which rows slot %s would skip depends on the publication that its reader uses: give --publication to count them, or --skip-rows to skip them uncounted", c.Slot)}
		}
		a.say("How many rows are skipped was not counted: no --publication is given.")
		return nil, nil
	}
	reader, err := a.reader(ctx)
	if err != nil {
		return nil, err
	}
	a.say("Counting the rows of publication %s in it (%s rows, %s at most) ...", strings.Join(publications, ", "), human.Count(c.CountLimit), config.Duration(c.CountTimeout))
	count, err := plan.Count(ctx, a.conn, reader, publications, slotctl.CountLimits{Rows: c.CountLimit, Time: c.CountTimeout})
	if err != nil {
		return nil, err
	}
	a.say("%s", counted(count, "would be skipped"))
	return &count, nil
}
