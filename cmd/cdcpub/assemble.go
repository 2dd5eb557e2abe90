package main

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/cdcpub/cdcpub/checkpoint"
	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/internal/kafka"
	"github.com/cdcpub/cdcpub/internal/pipeline"
	"github.com/cdcpub/cdcpub/internal/publisher"
	"github.com/cdcpub/cdcpub/router"
	"github.com/cdcpub/cdcpub/wal"
)

// service is a publisher with what must be closed after it.
type service struct {
	publisher *publisher.Publisher
	client    *kafka.Client
}

// assemble makes the service that a configuration describes. It touches
// neither PostgreSQL nor Kafka.
func assemble(c *config.Config, log *zap.Logger) (*service, error) {
	route, err := router.New(routing(c))
	if err != nil {
		return nil, &exitError{code: exitUsage, err: err}
	}
	source, err := source(c)
	if err != nil {
		return nil, &exitError{code: exitUsage, err: err}
	}
	client, err := kafkaClient(c)
	if err != nil {
		return nil, &exitError{code: exitUsage, err: err}
	}
	return &service{client: client, publisher: publisher.New(publisher.Config{
		WAL: source, Route: route.Route,
		Window: checkpoint.Limits{Records: c.Window.Records, Bytes: int(c.Window.Bytes)},
		NewProducer: func(systemID string, slot pipeline.Slot) pipeline.Producer {
			return client.NewProducer(transactionalID(c, systemID), slot, log)
		},
		ForgetTopics:    client.ForgetTopics,
		ShutdownTimeout: time.Duration(c.ShutdownTimeout),
		ExitOnStop:      c.OnStop == config.OnStopExit,
		Log:             log,
	})}, nil
}

func source(c *config.Config) (wal.Config, error) {
	if _, err := c.Postgres.ConnConfigWithoutSecret(); err != nil {
		return wal.Config{}, err
	}
	if err := c.Postgres.CheckSecret(); err != nil {
		return wal.Config{}, err
	}
	connect := func(ctx context.Context) (*wal.ConnConfig, error) {
		settings, err := c.Postgres.ConnConfigContext(ctx)
		if err != nil {
			// What gives passwords is often a service that comes back, as a server is.
			err = fmt.Errorf("%w; trying again, nothing is lost while the slot keeps its WAL", err)
		}
		return settings, err
	}
	tables := make([]wal.Table, 0, len(c.Outbox.Tables))
	for _, table := range c.Outbox.Tables {
		tables = append(tables, wal.Table{Schema: table.Schema, Name: table.Name})
	}
	return wal.Config{
		Connect: connect, Slot: c.Postgres.Slot, Publication: c.Postgres.Publication,
		Tables: tables, Columns: requiredColumns(c),
		WALSenderTimeout: time.Duration(c.Postgres.WALSenderTimeout),
		StatusInterval:   time.Duration(c.Postgres.StatusInterval),
	}, nil
}

// newLogger writes to standard error, which is where a supervisor looks.
func newLogger(c config.Log, to zapcore.WriteSyncer) (*zap.Logger, error) {
	level, err := zapcore.ParseLevel(string(c.Level))
	if err != nil {
		return nil, err
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	encoding.EncodeDuration = zapcore.StringDurationEncoder
	encoder := zapcore.NewJSONEncoder(encoding)
	if c.Format == config.FormatConsole {
		encoding.EncodeLevel = zapcore.CapitalLevelEncoder
		encoder = zapcore.NewConsoleEncoder(encoding)
	}
	return zap.New(zapcore.NewCore(encoder, to, level)), nil
}
