package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pglogrepl"
	"go.uber.org/zap"

	"github.com/cdcpub/cdcpub/internal/admin"
	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/internal/kafka"
	"github.com/cdcpub/cdcpub/internal/latency"
	"github.com/cdcpub/cdcpub/internal/metrics"
	"github.com/cdcpub/cdcpub/internal/monitor"
	"github.com/cdcpub/cdcpub/internal/notify"
	"github.com/cdcpub/cdcpub/internal/page"
	"github.com/cdcpub/cdcpub/internal/publisher"
	"github.com/cdcpub/cdcpub/slotmon"
)

// observer watches slots, tells of alerts and answers over HTTP, beside a
// publisher or alone.
type observer struct {
	monitor   *monitor.Monitor
	deliverer *notify.Deliverer
	page      *page.Page
	handler   http.Handler
	running   sync.WaitGroup
	listening string // the address of handler, empty if there is none; set by start
}

// observed is what there is to observe beside slots; both are nil in a process
// that does not publish.
type observed struct {
	publisher func() publisher.Status
	kafka     func() kafka.Counters
}

// newObserver begins to deliver alerts, but samples nothing yet.
func newObserver(c *config.Config, targets []monitor.Target, beside observed, log *zap.Logger) (*observer, error) {
	sinks, err := alertSinks(c, log)
	if err != nil {
		return nil, &exitError{code: exitUsage, err: err}
	}
	o := &observer{deliverer: notify.Start(log, sinks...)}
	o.monitor = monitor.New(monitor.Config{
		Targets: targets, Interval: time.Duration(c.SlotMonitor.Interval), Timeout: time.Duration(c.SlotMonitor.Timeout),
		Timing: timingOf(&c.SlotMonitor), Limits: func(slot string) slotmon.Limits { return limitsOf(&c.SlotMonitor, slot) },
		Changed: o.deliverer.Changed, Sinks: o.sinks,
	})
	shown := page.Source{Version: buildVersion(), Monitor: o.monitor.Snapshot}
	if beside.publisher != nil {
		shown.Publisher = func() *publisher.Status {
			status := beside.publisher()
			return &status
		}
		shown.Latency = func() latency.Histogram { return beside.kafka().CommitToAck }
	}
	o.page = page.New(shown)
	o.handler = admin.Handler(admin.Sources{
		Publisher: beside.publisher, Monitor: o.monitor.Snapshot, Page: o.page.Handler(),
		Metrics: metrics.New(metrics.Sources{
			Version: buildVersion(), Publisher: beside.publisher, Kafka: beside.kafka, Monitor: o.monitor.Snapshot,
		}),
	})
	return o, nil
}

// alertSinks are the log and what slot_monitor names.
func alertSinks(c *config.Config, log *zap.Logger) ([]notify.Sink, error) {
	sinks := []notify.Sink{notify.NewLog(log)}
	if url := c.SlotMonitor.Webhook.URL; url != "" {
		if err := c.SlotMonitor.Webhook.CheckSecret(); err != nil {
			return nil, err // at the first alert it would be too late to notice
		}
		webhook, err := notify.NewWebhook(string(url), c.SlotMonitor.Webhook.SecretFile)
		if err != nil {
			return nil, fmt.Errorf("slot_monitor.webhook.url: %w", err)
		}
		sinks = append(sinks, webhook)
	}
	for i, url := range c.SlotMonitor.Alertmanager.URLs {
		member, err := notify.NewAlertmanager(string(url), c.HTTP.Advertise)
		if err != nil {
			return nil, fmt.Errorf("slot_monitor.alertmanager.urls[%d]: %w", i, err)
		}
		sinks = append(sinks, member)
	}
	return sinks, nil
}

func (o *observer) sinks() []monitor.Sink {
	var sinks []monitor.Sink
	for _, s := range o.deliverer.Status() {
		sinks = append(sinks, monitor.Sink{Name: s.Name, Sent: s.Sent, Failed: s.Failed, LastSent: s.LastSent, LastError: s.LastError})
	}
	return sinks
}

// start samples, and serves at the configured address, until ctx ends. What
// ends serving otherwise goes to failed.
func (o *observer) start(ctx context.Context, c *config.Config, failed func(error)) error {
	if c.HTTP.Listen != "" {
		listener, err := admin.Listen(c.HTTP.Listen)
		if err != nil {
			return err
		}
		o.listening = listener.Addr().String()
		o.running.Go(func() {
			if err := admin.Serve(ctx, listener, o.handler); err != nil {
				failed(fmt.Errorf("serve HTTP: %w", err))
			}
		})
	}
	o.running.Go(func() { o.monitor.Run(ctx) })
	o.running.Go(func() { o.page.Run(ctx) })
	return nil
}

// address is where it answers over HTTP, or "off".
func (o *observer) address() string { return cmp.Or(o.listening, "off") }

// closeLimit bounds the last try to deliver alerts.
const closeLimit = 3 * time.Second

// close waits for the end of what start began and gives alerts that wait a last
// try.
func (o *observer) close(log *zap.Logger) {
	o.running.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	if err := o.deliverer.Close(ctx); err != nil {
		log.Warn("alerts are left", zap.String("event", "alerts_left"), zap.Error(err))
	}
}

// publishingTarget is the server that is published from; only its own slot is
// judged. A publication that has changed makes the publisher look for itself.
func publishingTarget(c *config.Config, p *publisher.Publisher) (monitor.Target, error) {
	target, err := configuredTarget(c)
	if err != nil {
		return target, err
	}
	target.Alone = true
	target.Publisher = func() *slotmon.Publisher { return ownState(p.Status()) }
	drifted, altered := false, false // belong to the goroutine that judges
	target.Judged = func(report slotmon.Report) {
		before, changed := drifted, altered
		drifted, altered = slices.ContainsFunc(report.Findings, drift), report.Trend.PublicationChanged
		if drifted && !before || altered && !changed {
			p.Recheck(doubt(report.Trend))
		}
	}
	return target, nil
}

// drift tells if rows may be missing in the stream.
func drift(f slotmon.Finding) bool {
	return f.ID == slotmon.PublicationMissing || f.ID == slotmon.PublicationTables || f.ID == slotmon.PublicationChanged
}

// doubt is what the publisher should know of a publication that has drifted.
func doubt(trend slotmon.Trend) publisher.Doubt {
	doubt := publisher.Doubt{Altered: trend.PublicationChanged}
	if trend.PublicationWhole != nil {
		doubt.Whole = publisher.Whole{LSN: pglogrepl.LSN(*trend.PublicationWhole), Seen: trend.WholeSeen}
	}
	return doubt
}

// ownState is what slotmon wants to know of the publisher in this process.
func ownState(s publisher.Status) *slotmon.Publisher {
	own := &slotmon.Publisher{State: string(s.State), Role: s.Role, Slot: s.Slot}
	if s.Stall != nil {
		own.Stall, own.StallSince = s.Stall.Cause, s.Stall.Since
	}
	return own
}

// configuredTarget is the server of postgres.url with its standbys.
func configuredTarget(c *config.Config) (monitor.Target, error) {
	asked, err := publishedServer(c, slotApplication, time.Duration(c.SlotMonitor.Timeout))
	if err != nil {
		return monitor.Target{}, &exitError{code: exitUsage, err: err}
	}
	server := &slotServer{sqlServer: asked, config: c}
	question := server.question(true)
	target := monitor.Target{
		Name: server.name, Slot: c.Postgres.Slot, Expected: expectedOf(c, server.database),
		Sample: func(ctx context.Context) (*slotmon.Sample, error) { return server.sampleWithout(ctx, question) },
	}
	asking, err := standbys(c)
	if err != nil {
		return target, &exitError{code: exitUsage, err: err}
	}
	for _, standby := range asking {
		target.Standbys = append(target.Standbys, monitor.Standby{
			Name: standby.name,
			Sample: func(ctx context.Context) (*slotmon.Sample, error) {
				return standby.sampleWithout(ctx, slotmon.Question{})
			},
		})
	}
	return target, nil
}

// watchedTarget is one of slot_monitor.servers.
func watchedTarget(c *config.Config, i int) (monitor.Target, error) {
	path := fmt.Sprintf("slot_monitor.servers[%d]", i)
	server, err := serverAt(c.SlotMonitor.Servers[i], path, slotApplication, time.Duration(c.SlotMonitor.Timeout))
	if err != nil {
		return monitor.Target{}, &exitError{code: exitUsage, err: err}
	}
	return monitor.Target{
		Name: server.name,
		Sample: func(ctx context.Context) (*slotmon.Sample, error) {
			return server.sampleWithout(ctx, slotmon.Question{})
		},
	}, nil
}
