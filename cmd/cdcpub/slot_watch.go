package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/internal/monitor"
	"github.com/cdcpub/cdcpub/internal/slotview"
	"github.com/cdcpub/cdcpub/slotmon"
)

type slotWatchCommand struct{ configFile }

func (slotWatchCommand) Help() string {
	return `Samples the server of postgres.url and those of slot_monitor.servers, needs no
right but pg_monitor, and goes on when a publisher is dead: it is what still
speaks then. Alerts go to the log, slot_monitor.webhook and
slot_monitor.alertmanager; http.listen has /metrics, /status and a page at /.
Beside "cdcpub run" on the same machine it needs another http.listen.

The publisher of postgres.slot is asked for its state if http.advertise is
stated.

Example:

    CDCPUB_POSTGRES_URL=postgres://monitor@db.internal/shop cdcpub slot watch -c watch.yaml`
}

func (c *slotWatchCommand) Run(ctx context.Context, p *process) error {
	loaded, err := c.loadFor(p, config.NeedSlots)
	if err != nil {
		return err
	}
	log, err := newLogger(loaded.Log, zapcore.Lock(zapcore.AddSync(p.stderr)))
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	targets, err := watchedTargets(loaded)
	if err != nil {
		return err
	}
	observer, err := newObserver(loaded, targets, observed{}, log)
	if err != nil {
		return err
	}
	ctx, done := untilSignal(ctx, p)
	defer done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer observer.close(log)
	defer cancel(nil)
	if err := observer.start(ctx, loaded, cancel); err != nil {
		return err
	}
	names := make([]string, len(targets))
	for i := range targets {
		names[i] = targets[i].Name
	}
	if loaded.Postgres.Publication != "" && len(loaded.Outbox.Tables) == 0 {
		log.Warn("the publication's tables are not checked, since outbox.tables is not configured", zap.String("event", "unchecked"))
	}
	log.Info("watching", zap.String("event", "watching"), zap.String("version", buildVersion()), zap.Strings("servers", names))
	<-ctx.Done()
	var signalled *signalError
	if cause := context.Cause(ctx); !errors.As(cause, &signalled) {
		return cause
	}
	log.Info("stopped", zap.String("event", "stopped"))
	return nil
}

// watchedTargets are all servers that the configuration names.
func watchedTargets(c *config.Config) ([]monitor.Target, error) {
	var targets []monitor.Target
	if c.Postgres.URL != "" {
		target, err := configuredTarget(c)
		if err != nil {
			return nil, err
		}
		if c.Postgres.Slot != "" && c.Stated("http.advertise") {
			target.Publisher = func() *slotmon.Publisher {
				return slotview.Ask(context.Background(), c.HTTP.Advertise, c.Postgres.Slot, publisherTimeout)
			}
		}
		targets = append(targets, target)
	}
	for i := range c.SlotMonitor.Servers {
		target, err := watchedTarget(c, i)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(targets, func(t monitor.Target) bool { return t.Name == target.Name }) {
			return nil, &exitError{code: exitUsage, err: fmt.Errorf("slot_monitor.servers[%d]: %s is named twice", i, target.Name)}
		}
		targets = append(targets, target)
	}
	return targets, nil
}
