package main

import (
	"context"
	"errors"

	"github.com/cdcpub/cdcpub/internal/check"
	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/slotmon"
)

type checkCommand struct {
	configFile
	Output string   `short:"o" name:"output" enum:"table,json" default:"table" placeholder:"table|json" help:"table: a line for each check, with its cure. json: one object with all of them."`
	Types  []string `placeholder:"TYPE" help:"Aggregate types whose topics are looked at; by default those of the rows in the outbox tables, where the role may SELECT."`
}

// Help is shown below the flags' overview.
func (checkCommand) Help() string {
	return `Looks at PostgreSQL and Kafka with the very settings that "cdcpub run" will use, and
changes nothing on either side; and whether http.listen is free on this machine. Whatever can be looked at is, even if something
else failed. It may be run at any time, beside a running publisher too.

OK is as it must be. WARN works, and has a price that should be known. FAIL would
stop publishing or lose rows. SKIP could not be looked at; its line says why.

Exit code: 0 no check failed; 1 it was ended before it was done; 2 usage or
configuration; 3 a check failed.

Examples:

    cdcpub check -c cdcpub.yaml
    cdcpub check -c cdcpub.yaml --types order,customer
    cdcpub check -o json | jq -r '.checks[] | select(.status == "fail") | .id'`
}

func (c *checkCommand) Run(ctx context.Context, p *process) error {
	loaded, err := c.load(p)
	if err != nil {
		return err
	}
	ctx, done := untilSignal(ctx, p)
	defer done()
	facts := c.facts(ctx, loaded)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	report := check.NewReport(facts)
	if c.Output == "json" {
		err = report.JSON(p.stdout)
	} else {
		err = report.Text(p.stdout, check.Style{Color: p.style().Color})
	}
	if err == nil && report.Verdict == check.Fail {
		return &exitError{code: exitRefused, err: errors.New("a check failed"), silent: true}
	}
	return err
}

// facts asks PostgreSQL first: its rows tell which topics there must be.
func (c *checkCommand) facts(ctx context.Context, loaded *config.Config) *check.Facts {
	facts := &check.Facts{Setup: c.setup(loaded)}
	askPostgres(ctx, loaded, facts)
	facts.Listen = askListen(ctx, loaded)
	facts.Kafka = askKafka(ctx, loaded, facts.Topics(), facts.Postgres.Replication.SystemID)
	return facts
}

// setup is what the configuration says, in the terms of the checks.
func (c *checkCommand) setup(loaded *config.Config) check.Setup {
	setup := check.Setup{
		File: loaded.File(), Slot: loaded.Postgres.Slot, Publication: loaded.Postgres.Publication,
		Route: routing(loaded), AggregateVersion: loaded.Outbox.Columns.AggregateVersion,
		Brokers: loaded.Kafka.Brokers, KafkaUser: loaded.Kafka.SASL.User,
		Tools:      loaded.Kafka.TLS.Enabled || loaded.Kafka.SASL.Mechanism != "",
		BatchBytes: int64(loaded.Kafka.BatchBytes), Compressed: loaded.Kafka.Compression != config.CompressionNone,
		CreateTopics: loaded.Kafka.CreateTopics.Partitions > 0, Types: c.Types,
	}
	for _, table := range loaded.Outbox.Tables {
		setup.Tables = append(setup.Tables, slotmon.Table{Schema: table.Schema, Name: table.Name})
	}
	return setup
}
