package monitor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cdcpub/cdcpub/slotmon"
)

// Config is what a Monitor works with.
type Config struct {
	Targets []Target
	// Interval is the time between two samples of a server, Timeout how long
	// one may take.
	Interval, Timeout time.Duration
	Timing            slotmon.Timing
	// Limits are the thresholds of a slot.
	Limits func(slot string) slotmon.Limits
	// Changed is told of alerts that were raised, changed their severity or
	// were resolved. It must not block; it may be called from several
	// goroutines.
	Changed func([]slotmon.Alert)
	// Sinks tells how the delivery of alerts fares.
	Sinks func() []Sink
}

// Target is a server to sample.
type Target struct {
	// Name is shown and is a label of alerts and metrics; unique.
	Name string
	// Sample asks the server, on a connection of its own.
	Sample func(context.Context) (*slotmon.Sample, error)
	// Slot is the slot that is published from, empty for none, Expected what it
	// must be, and Publisher what its publisher says, nil when none is known.
	Slot      string
	Expected  *slotmon.Expected
	Publisher func() *slotmon.Publisher
	// Judged is told how Slot is after each sample, if not nil. It must not
	// block.
	Judged func(slotmon.Report)
	// Alone leaves every other slot of the server unjudged.
	Alone bool
	// Standbys should have the failover slots of the server.
	Standbys []Standby
}

// Standby is a standby to ask for failover slots.
type Standby struct {
	Name   string
	Sample func(context.Context) (*slotmon.Sample, error)
}

// Monitor samples and judges. Snapshot may be called from any goroutine.
type Monitor struct {
	config Config

	mu      sync.Mutex // guards servers and alerts
	servers []Server
	alerts  [][]slotmon.Alert // of each server
}

// New returns a Monitor that has seen nothing yet: everything is unknown.
func New(config Config) *Monitor {
	m := &Monitor{config: config, servers: make([]Server, len(config.Targets)), alerts: make([][]slotmon.Alert, len(config.Targets))}
	for i, target := range config.Targets {
		m.servers[i] = Server{Name: target.Name, Unreachable: "not asked yet", Verdict: slotmon.Unknown, Slots: []Slot{}}
		if target.Slot != "" {
			m.servers[i].Slots = []Slot{{Name: target.Slot, Ours: true, Report: slotmon.Judge(config.Limits(target.Slot),
				slotmon.Subject{Name: target.Slot, Unreachable: "not asked yet", Expected: target.Expected})}}
		}
	}
	return m
}

// Run samples until ctx ends.
func (m *Monitor) Run(ctx context.Context) {
	var watchers sync.WaitGroup
	for i := range m.config.Targets {
		watchers.Go(func() { newWatcher(m, i).run(ctx) })
	}
	watchers.Wait()
}

// Snapshot returns what is known at this moment.
func (m *Monitor) Snapshot() Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	snapshot := Snapshot{Interval: m.config.Interval, Servers: slices.Clone(m.servers), Alerts: slices.Concat(m.alerts...), Sinks: []Sink{}}
	if snapshot.Alerts == nil {
		snapshot.Alerts = []slotmon.Alert{}
	}
	slices.SortStableFunc(snapshot.Alerts, func(a, b slotmon.Alert) int {
		switch {
		case b.Severity.Worse(a.Severity):
			return -1
		case a.Severity.Worse(b.Severity):
			return 1
		}
		return a.Raised.Compare(b.Raised)
	})
	if m.config.Sinks != nil {
		snapshot.Sinks = append(snapshot.Sinks, m.config.Sinks()...)
	}
	return snapshot
}

// keep makes the newest result of a server the one that Snapshot returns.
func (m *Monitor) keep(i int, server Server, alerts []slotmon.Alert) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.servers[i], m.alerts[i] = server, alerts
}

// bounded calls sample for at most the timeout.
func bounded(ctx context.Context, timeout time.Duration, sample func(context.Context) (*slotmon.Sample, error)) (*slotmon.Sample, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s", timeout))
	defer cancel()
	taken, err := sample(ctx)
	if err != nil && context.Cause(ctx) != nil {
		err = context.Cause(ctx)
	}
	return taken, err
}
