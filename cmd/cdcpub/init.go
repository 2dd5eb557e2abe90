package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/internal/provision"
)

type initCommand struct {
	configFile
	Timeout time.Duration `default:"60s" help:"How long to wait for running write transactions when the slot is created."`
}

func (c *initCommand) Run(ctx context.Context, p *process) error {
	loaded, err := c.load(p)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case received := <-p.signals:
			cancel(fmt.Errorf("ended by %s before everything was created; run it again", received))
		case <-ctx.Done():
		}
	}()
	err = create(ctx, p, loaded, c.Timeout)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func create(ctx context.Context, p *process, c *config.Config, timeout time.Duration) error {
	conn, err := connect(ctx, c)
	if err != nil {
		return err
	}
	defer closeConn(conn)
	err = provision.Run(ctx, conn, plan(c, timeout), func(step provision.Step) {
		fmt.Fprintf(p.stdout, "%-40s %s\n", step.Object, step.Done)
	})
	var refused *pgconn.PgError
	var unusable *provision.UnusableSlotError
	switch {
	case errors.As(err, &unusable):
		return &exitError{code: exitRefused, err: err}
	case errors.As(err, &refused) && refused.Code == "42501": // insufficient_privilege
		return &exitError{code: exitRefused, err: fmt.Errorf("%w; init needs the rights of the tables' owner and REPLICATION, the service itself only the latter: CDCPUB_POSTGRES_URL=postgres://owner@... cdcpub init", err)}
	}
	return err
}

// closeConn also waits until a statement that was given up has been cancelled
// on the server.
func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	_ = conn.Close(ctx)
	select {
	case <-conn.PgConn().CleanupDone():
	case <-ctx.Done():
	}
}

// connect opens a plain SQL connection.
func connect(ctx context.Context, c *config.Config) (*pgx.Conn, error) {
	base, err := c.Postgres.ConnConfig()
	if err != nil {
		return nil, &exitError{code: exitUsage, err: err}
	}
	settings, err := pgx.ParseConfig("")
	if err != nil {
		return nil, err
	}
	settings.Config = *base
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	return pgx.ConnectConfig(ctx, settings)
}

func plan(c *config.Config, timeout time.Duration) provision.Plan {
	columns := c.Outbox.Columns
	plan := provision.Plan{
		Publication: c.Postgres.Publication, Slot: c.Postgres.Slot, SlotTimeout: timeout,
		Columns: provision.Columns{
			EventID: columns.EventID, AggregateType: columns.AggregateType, AggregateID: columns.AggregateID,
			AggregateVersion: columns.AggregateVersion, EventType: columns.EventType, Payload: columns.Payload,
			SchemaVersion: columns.SchemaVersion, Headers: columns.Headers,
		},
	}
	for _, table := range c.Outbox.Tables {
		plan.Tables = append(plan.Tables, provision.Table{Schema: table.Schema, Name: table.Name})
	}
	return plan
}
