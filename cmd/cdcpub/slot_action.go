package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/internal/slotctl"
)

// slotActions are the commands that change slots, and drain.
type slotActions struct {
	Create   slotCreateCommand   `cmd:"" help:"Create a slot for pgoutput. It begins now."`
	Drop     slotDropCommand     `cmd:"" help:"Drop a slot and the WAL that it holds."`
	Advance  slotAdvanceCommand  `cmd:"" help:"Move a slot forward, over rows that are then never published."`
	Drain    slotDrainCommand    `cmd:"" help:"Wait until everything that is committed now is confirmed."`
	Takeover slotTakeoverCommand `cmd:"" help:"End the process that holds a slot, so that another can have it."`
}

// actionFlags are what these commands have in common.
type actionFlags struct {
	slotFlags
	Slot   string `arg:"" optional:"" name:"name" help:"The slot; by default postgres.slot."`
	Output string `short:"o" enum:"table,json" default:"table" placeholder:"table|json" help:"table: sentences. json: one object that says what was done. What it will mean, questions and progress go to stderr."`
	Yes    bool   `help:"Do not ask. Needed where there is no terminal to ask on."`
}

// action is one command at work.
type action struct {
	*actionFlags
	p      *process
	server *slotServer
	conn   *pgx.Conn
}

// run connects, acts, and gives the error its exit code.
func (f *actionFlags) run(ctx context.Context, p *process, act func(context.Context, *action) error) error {
	server, err := f.server(p)
	if err != nil {
		return err
	}
	if f.Slot == "" {
		f.Slot = server.config.Postgres.Slot
	}
	if f.Slot == "" {
		return &exitError{code: exitUsage, err: errors.New("no slot is named: give its name, or state postgres.slot")}
	}
	ctx, stop := untilSignal(ctx, p)
	defer stop()
	conn, err := server.connect(ctx)
	if err == nil {
		defer closeConn(conn)
		err = act(ctx, &action{actionFlags: f, p: p, server: server, conn: conn})
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return withExitCode(err)
}

// withExitCode tells refusals from failures that another try may cure.
func withExitCode(err error) error {
	var refused *slotctl.RefusedError
	var unknown *slotctl.UnknownSlotError
	var rights *slotctl.RightsError
	var changed *slotctl.HolderChangedError
	var server *serverError
	var limit *pgconn.PgError
	if errors.As(err, &refused) || errors.As(err, &unknown) || errors.As(err, &rights) || errors.As(err, &changed) ||
		errors.As(err, &server) && server.refused ||
		errors.As(err, &limit) && limit.Code == "53400" { // configuration_limit_exceeded: no slot is free
		return &exitError{code: exitRefused, err: err}
	}
	return err
}

// say tells what will be done, what it means, and how it goes.
func (a *action) say(format string, args ...any) { fmt.Fprintf(a.p.stderr, format+"\n", args...) }

// confirm asks whether to go on.
func (a *action) confirm(ctx context.Context) error {
	switch {
	case a.Yes:
		return nil
	case a.p.stdin == nil:
		return &exitError{code: exitUsage, err: errors.New("nothing was done: there is no terminal to ask on; give --yes if this is what you want")}
	}
	fmt.Fprint(a.p.stderr, "Go on? [y/N] ")
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.p.stdin).ReadString('\n') // an end without an answer is a no
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case said := <-answer:
		if said == "y" || said == "yes" {
			return nil
		}
		return &exitError{code: exitRefused, err: errors.New("nothing was done")}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// result is what every JSON object of an action has.
type result struct {
	Action string `json:"action"`
	Server string `json:"server"`
	Slot   string `json:"slot"`
	// Done tells if the action was carried out.
	Done bool `json:"done"`
}

func (a *action) result(name string, done bool) result {
	return result{Action: name, Server: a.server.name, Slot: a.Slot, Done: done}
}

// finish prints the outcome: the sentence, or the object.
func (a *action) finish(object any, format string, args ...any) error {
	if a.Output != "json" {
		fmt.Fprintf(a.p.stdout, format+"\n", args...)
		return nil
	}
	encoder := json.NewEncoder(a.p.stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(object)
}
