package page

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cdcpub/cdcpub/internal/latency"
	"github.com/cdcpub/cdcpub/internal/monitor"
	"github.com/cdcpub/cdcpub/internal/publisher"
	"github.com/cdcpub/cdcpub/slotmon"
)

// world is a service that the page can look at. Its counters are those of a
// service that has run for the steps that passed.
type world struct {
	mu      sync.Mutex
	random  *rand.Rand
	current observation
	acked   int
	latency latency.Histogram
}

func newWorld() *world { return &world{random: rand.New(rand.NewPCG(5, 7))} }

func (w *world) source(version string) Source {
	return Source{
		Version:   version,
		Poll:      100 * time.Millisecond,
		Publisher: func() *publisher.Status { return w.look().publisher },
		Latency:   func() latency.Histogram { return *w.look().latency },
		Monitor:   func() monitor.Snapshot { return w.look().monitor },
	}
}

func (w *world) look() observation {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.current
}

func (w *world) set(o observation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.latency == nil {
		o.latency = &latency.Histogram{}
	}
	w.current = o
}

// play lets a page live through the last steps of a story that ends now. The
// story gets the step, up to last, and the time.
func (w *world) play(p *Page, last int, story func(step, last int, at time.Time) observation) {
	end := time.Now()
	for step := 0; step <= last; step++ {
		o := story(step, last, end.Add(-time.Duration(last-step)*Step))
		w.set(o)
		p.history.add(p.meter.measure(o))
	}
}

// work adds the records of one step with their latencies to the counters.
func (w *world) work(records int, median float64) *latency.Histogram {
	w.acked += records
	for range min(records, 2000) {
		w.latency.Observe(time.Duration(median * math.Exp(0.8*w.random.NormFloat64()) * float64(time.Second)))
	}
	h := w.latency
	return &h
}

func (w *world) noise(mean, share float64) float64 {
	return max(0, mean*(1+share*w.random.NormFloat64()))
}

// healthy is a publisher that keeps up.
func (w *world) healthy(step, _ int, at time.Time) observation {
	load := 4200 + 1500*math.Sin(float64(step)/40)
	h := w.work(int(w.noise(10*load, 0.06)), w.noise(0.006, 0.15))
	retained := int64(w.noise(46<<20, 0.1)) + int64(step%30)<<20
	return observation{at: at, latency: h, publisher: w.streaming(at), monitor: monitor.Snapshot{
		Interval: 10 * time.Second,
		Servers: []monitor.Server{{
			Name: "db1.internal:5432/shop", Up: true, Sample: sample(at, 64<<30, 812<<30),
			Slots: []monitor.Slot{held("cdcpub", "shop", retained, int64(w.noise(180<<10, 0.5)), true)},
		}},
		Sinks: []monitor.Sink{{Name: "log", Sent: 3}},
	}}
}

func (w *world) streaming(at time.Time) *publisher.Status {
	return &publisher.Status{
		State: publisher.Streaming, Since: at.Add(-9*time.Hour - 12*time.Minute), Role: "active", Ready: true,
		Slot: "cdcpub", Publication: "cdcpub", ConfirmedLSN: "5E/3A9F1C48", Sessions: 1, Acked: w.acked,
		InFlight: publisher.InFlight{Records: 312, Bytes: 431 << 10},
		Kafka: &publisher.Kafka{Connected: true, Partitions: []publisher.Partition{
			{Topic: "outbox.event.order", Partition: 3, Queued: 41, OldestSince: at.Add(-11 * time.Millisecond)},
			{Topic: "outbox.event.order", Partition: 7, Queued: 38, OldestSince: at.Add(-9 * time.Millisecond)},
			{Topic: "outbox.event.payment", Partition: 0, Queued: 12, OldestSince: at.Add(-4 * time.Millisecond)},
		}},
	}
}

// dying is a publisher that a partition holds up since two thirds of the hour.
func (w *world) dying(step, last int, at time.Time) observation {
	began := last * 2 / 3
	if step < began {
		return w.healthy(step, last, at)
	}
	stuck := step - began
	since := at.Add(-time.Duration(stuck) * Step)
	retained := int64(46<<20) + int64(stuck)*int64(w.noise(452<<20, 0.01))
	slot := held("cdcpub", "shop", retained, retained-20<<20, true)
	toLost, toFull := float64(60<<30-retained)/45e6, 16200.0
	slot.Report.Culprit = "the publisher is stalled on topic outbox.event.payment partition 4"
	slot.Report.SecondsToLost, slot.Report.SecondsToLostWhy = &toLost, ""
	slot.Report.SecondsToFull, slot.Report.SecondsToFullWhy = &toFull, ""
	server := monitor.Server{Name: "db1.internal:5432/shop", Up: true, Sample: sample(at, 60<<30, 196<<30)}
	status := w.streaming(at)
	status.InFlight = publisher.InFlight{Records: 10000, Bytes: 8 << 20, Full: true}
	partition := int32(4)
	status.Stall = &publisher.Stall{
		Cause: "topic outbox.event.payment partition 4: NOT_ENOUGH_REPLICAS", Since: since, Topic: "outbox.event.payment", Partition: &partition,
	}
	status.Ready = stuck == 0
	status.Kafka.Partitions = []publisher.Partition{
		{Topic: "outbox.event.payment", Partition: 4, Queued: 9788, OldestSince: since, Stall: "NOT_ENOUGH_REPLICAS"},
		{Topic: "outbox.event.order", Partition: 7, Queued: 212, OldestSince: since.Add(time.Second)},
	}
	h := w.latency
	o := observation{at: at, latency: &h, publisher: status}
	o.monitor = monitor.Snapshot{Interval: 10 * time.Second}
	find := func(raised time.Time, f slotmon.Finding) {
		server.Verdict, slot.Report.Verdict = f.Severity, f.Severity
		slot.Report.Findings = append([]slotmon.Finding{f}, slot.Report.Findings...)
		o.monitor.Alerts = append([]slotmon.Alert{raise(server.Name, slot.Name, raised, f)}, o.monitor.Alerts...)
	}
	if stuck > 6 {
		find(since, slotmon.Finding{
			ID: slotmon.PublisherStalled, Severity: slotmon.Warning,
			Summary: "has been stalled for 20 min, longer than 1 min",
			Cause:   "topic outbox.event.payment partition 4: NOT_ENOUGH_REPLICAS: fewer in-sync replicas than min.insync.replicas",
			Cure:    "kafka-topics.sh --describe --topic outbox.event.payment --under-min-isr-partitions\nbring the missing brokers back; publishing goes on by itself",
		})
	}
	if stuck > 60 {
		find(at.Add(-8*time.Minute-20*time.Second), slotmon.Finding{
			ID: slotmon.TimeToLost, Severity: slotmon.Critical,
			Summary: "will be lost in 18 min at the present 43 MiB/s, less than 1 h",
			Cause:   "retained WAL is 53 GiB of the 60 GiB that max_slot_wal_keep_size allows; the publisher is stalled on topic outbox.event.payment partition 4",
			Cure:    "cure the stall, or gain time: ALTER SYSTEM SET max_slot_wal_keep_size = '150GB'; SELECT pg_reload_conf();",
		})
		o.monitor.Sinks = []monitor.Sink{{Name: "webhook", Failed: 4, LastError: "POST https://hooks.internal/cdc: 502 Bad Gateway", LastSent: since}}
	}
	server.Slots = []monitor.Slot{slot}
	o.monitor.Servers = []monitor.Server{server}
	return o
}

func held(name, database string, retained, lag int64, ours bool) monitor.Slot {
	reserved := "reserved"
	return monitor.Slot{
		Name: name, Ours: ours,
		Slot: &slotmon.Slot{
			Name: name, Plugin: "pgoutput", Type: "logical", Database: database, Active: true, WALStatus: &reserved,
			RetainedBytes: &retained, ConfirmedLagBytes: &lag,
			Holder: &slotmon.Holder{PID: 4711, ApplicationName: "cdcpub", Address: "10.0.3.7"},
		},
		Report: slotmon.Report{SecondsToLostWhy: "retained WAL does not grow", SecondsToFullWhy: "retained WAL does not grow"},
	}
}

func sample(at time.Time, keep, free int64) *slotmon.Sample {
	return &slotmon.Sample{Taken: at, Server: slotmon.Server{
		Version: "17.9", MaxSlotWALKeepSize: keep, Volume: slotmon.Volume{FreeBytes: &free, Source: "statfs"},
	}}
}

func manySlots(n int, at time.Time) monitor.Snapshot {
	server := monitor.Server{Name: "db", Up: true, Sample: sample(at, -1, 1<<40)}
	for i := range n {
		server.Slots = append(server.Slots, held(fmt.Sprintf("slot_%03d", i), "shop", int64(i), int64(i), false))
	}
	return monitor.Snapshot{Servers: []monitor.Server{server}}
}
