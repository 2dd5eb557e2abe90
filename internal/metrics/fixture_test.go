package metrics

import (
	"time"

	"github.com/cdcpub/cdcpub/internal/kafka"
	"github.com/cdcpub/cdcpub/internal/latency"
	"github.com/cdcpub/cdcpub/internal/monitor"
	"github.com/cdcpub/cdcpub/internal/publisher"
	"github.com/cdcpub/cdcpub/slotmon"
)

func to[T any](value T) *T { return &value }

func ago(d time.Duration) time.Time { return time.Now().Add(-d) }

const server = "db.internal:5432/shop"

// situation is a process to scrape; a nil snapshot is a source that it has not.
type situation struct {
	status   *publisher.Status
	counters *kafka.Counters
	snapshot *monitor.Snapshot
}

func (s situation) sources() Sources {
	sources := Sources{Version: "1.2.3"}
	if s.status != nil {
		sources.Publisher = func() publisher.Status { return *s.status }
	}
	if s.counters != nil {
		sources.Kafka = func() kafka.Counters { return *s.counters }
	}
	if s.snapshot != nil {
		sources.Monitor = func() monitor.Snapshot { return *s.snapshot }
	}
	return sources
}

// healthy publishes, with a little in flight.
func healthy() situation {
	ends := map[publisher.EndCause]int{publisher.EndTerminated: 2}
	status := &publisher.Status{
		State: publisher.Streaming, Since: ago(time.Hour), Role: "active", Ready: true, Slot: "shop", Publication: "shop",
		LastConfirmed: ago(time.Second), LastAcknowledged: ago(2 * time.Second),
		Transactions: 900, RowsRead: 1000, BytesRead: 300_000, Sessions: 3, SessionEnds: ends, Acked: 995,
		InFlight: publisher.InFlight{Records: 5, Bytes: 4096},
		Kafka: &publisher.Kafka{Connected: true, Partitions: []publisher.Partition{
			{Topic: "orders", Partition: 3, Queued: 2, OldestSince: ago(40 * time.Millisecond)},
			{Topic: "carts", Partition: -1, Queued: 3, OldestSince: ago(250 * time.Millisecond)},
		}},
	}
	var latencies latency.Histogram
	for _, d := range []time.Duration{800 * time.Microsecond, 4 * time.Millisecond, 4 * time.Millisecond, 2 * time.Second, 3 * time.Hour} {
		latencies.Observe(d)
	}
	counters := &kafka.Counters{
		Topics: map[string]kafka.Acknowledged{"orders": {Records: 990, Bytes: 290_000}, "carts": {Records: 5, Bytes: 1000}},
		Errors: map[string]uint64{"NOT_LEADER_OR_FOLLOWER": 4, kafka.Transport: 1, kafka.OtherErrors: 0}, CommitToAck: latencies,
	}
	sample := &slotmon.Sample{Taken: ago(3 * time.Second), Server: slotmon.Server{
		WAL: 0x5000_0000, MaxSlotWALKeepSize: 64 << 30, Now: ago(3 * time.Second), Started: ago(24 * time.Hour),
		Volume: slotmon.Volume{FreeBytes: to(int64(100 << 30)), SizeBytes: to(int64(200 << 30))},
	}}
	sample.Slots = []slotmon.Slot{{
		Name: "shop", Plugin: "pgoutput", Type: "logical", Database: "shop", Active: true,
		RestartLSN: to(slotmon.LSN(0x4f00_0000)), ConfirmedFlushLSN: to(slotmon.LSN(0x4fff_0000)), WALStatus: to("reserved"),
		SafeWALSize: to(int64(63 << 30)), CatalogXminAge: to(int64(120)), Failover: to(true),
		RetainedBytes: to(int64(0x100_0000)), ConfirmedLagBytes: to(int64(0x1_0000)), Holder: &slotmon.Holder{PID: 4711},
		Spill: &slotmon.Spill{Transactions: 3, Bytes: 70_000, TotalBytes: 1 << 20},
	}}
	standby := slotmon.Standby{Address: "standby:5432", Slot: &slotmon.Slot{Name: "shop", Synced: to(true)}}
	trend := slotmon.Trend{Over: time.Minute, WALRate: to(1e5), RetainedRate: to(0.0), ConfirmedRate: to(1e5)}
	return situation{status, counters, &monitor.Snapshot{
		Servers: []monitor.Server{{Name: server, Up: true, Sample: sample, Slots: []monitor.Slot{judged(sample, "shop", trend, standby)}}},
		Sinks:   []monitor.Sink{{Name: "log", Sent: 2}, {Name: "webhook", Sent: 1, Failed: 4, LastError: "refused"}},
	}}
}

func judged(sample *slotmon.Sample, name string, trend slotmon.Trend, standbys ...slotmon.Standby) monitor.Slot {
	return monitor.Slot{Name: name, Ours: true, Slot: sample.FindSlot(name), Standbys: standbys, Report: slotmon.Judge(slotmon.DefaultLimits(), slotmon.Subject{
		Name: name, Sample: sample, Trend: trend, Standbys: standbys, Expected: &slotmon.Expected{Database: "shop"},
	})}
}

// watched is a slot of somebody else.
func watched(sample *slotmon.Sample, name string, trend slotmon.Trend) monitor.Slot {
	return monitor.Slot{Name: name, Slot: sample.FindSlot(name), Report: slotmon.Judge(slotmon.DefaultLimits(), slotmon.Subject{Name: name, Sample: sample, Trend: trend})}
}

// withLostSlot is healthy after PostgreSQL has invalidated the slot.
func withLostSlot() situation {
	s := healthy()
	sample := s.snapshot.Servers[0].Sample
	slot := &sample.Slots[0]
	slot.Active, slot.Holder, slot.RestartLSN, slot.RetainedBytes, slot.SafeWALSize = false, nil, nil, nil, nil
	slot.WALStatus, slot.ConfirmedLagBytes, slot.CatalogXminAge = to("lost"), nil, nil
	standbys := s.snapshot.Servers[0].Slots[0].Standbys
	s.snapshot.Servers[0].Slots[0] = judged(sample, "shop", slotmon.Trend{InactiveFor: to(time.Hour)}, standbys...)
	return s
}

// stalled has a partition that stands still, and then lost its slot.
func stalled() situation {
	s := withLostSlot()
	partition := int32(3)
	s.status.Ready = false
	s.status.Stall = &publisher.Stall{Kind: publisher.StallPartition, Cause: "topic orders partition 3: NOT_ENOUGH_REPLICAS", Since: ago(20 * time.Minute), Topic: "orders", Partition: &partition}
	s.status.InFlight = publisher.InFlight{Records: 20_000, Bytes: 8 << 20, Full: true}
	s.status.Kafka.Partitions[0].OldestSince = ago(20 * time.Minute)
	s.counters.Errors["NOT_ENOUGH_REPLICAS"] = 1200
	for _, finding := range s.snapshot.Servers[0].Slots[0].Report.Findings {
		s.snapshot.Alerts = append(s.snapshot.Alerts, slotmon.Alert{Server: server, Slot: "shop", ID: finding.ID, Severity: finding.Severity, Raised: ago(time.Minute)})
	}
	s.snapshot.Alerts = append(s.snapshot.Alerts, slotmon.Alert{Server: server, Slot: "shop", ID: slotmon.TimeToLost, Severity: slotmon.Critical, Raised: ago(time.Hour), Resolved: ago(time.Minute)})
	return s
}

// watch has no publisher. One server has a slot of somebody else's, one misses
// the slot that it should have, and one has never answered.
func watch() situation {
	sample := &slotmon.Sample{Taken: ago(time.Second), Server: slotmon.Server{WAL: 0x5000_0000, MaxSlotWALKeepSize: -1, Volume: slotmon.Volume{Unknown: "not configured"}}}
	sample.Slots = []slotmon.Slot{
		{Name: "debezium", Plugin: "wal2json", Type: "logical", Database: "shop", RestartLSN: to(slotmon.LSN(1)), WALStatus: to("extended"), RetainedBytes: to(int64(0x4fff_ffff)), ConfirmedLagBytes: to(int64(-5))},
		{Name: "standby_1", Type: "physical"},
	}
	trend := slotmon.Trend{Over: time.Minute, RetainedRate: to(1e5), InactiveFor: to(time.Hour)}
	debezium, physical, missing := watched(sample, "debezium", trend), watched(sample, "standby_1", slotmon.Trend{}), judged(sample, "shop", slotmon.Trend{})
	never := monitor.Slot{Name: "shop", Ours: true, Report: slotmon.Judge(slotmon.DefaultLimits(), slotmon.Subject{Name: "shop", Unreachable: "not asked yet"})}
	return situation{snapshot: &monitor.Snapshot{Servers: []monitor.Server{
		{Name: server, Up: true, Sample: sample, Slots: []monitor.Slot{debezium, physical, missing}},
		{Name: "gone.internal:5432/shop", Unreachable: "connection refused", Slots: []monitor.Slot{never}},
	}}}
}
