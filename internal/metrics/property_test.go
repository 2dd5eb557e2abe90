package metrics

import (
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/cdcpub/cdcpub/internal/kafka"
	"github.com/cdcpub/cdcpub/internal/latency"
	"github.com/cdcpub/cdcpub/internal/monitor"
	"github.com/cdcpub/cdcpub/internal/publisher"
	"github.com/cdcpub/cdcpub/slotmon"
)

// drawName draws from few, so that series collide, and some are no UTF-8.
func drawName(t *rapid.T) string {
	return rapid.OneOf(rapid.SampledFrom([]string{"", "a", "b", "a\xff", "a\xfe", "\uFFFD", "x\"\\\n"}), rapid.String()).Draw(t, "name")
}

func drawFloat(t *rapid.T) float64 {
	return rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0})).Draw(t, "float")
}

func maybe[T any](t *rapid.T, draw func(*rapid.T) T) *T {
	if rapid.Bool().Draw(t, "there") {
		value := draw(t)
		return &value
	}
	return nil
}

func some[T any](t *rapid.T, draw func(*rapid.T) T) (all []T) {
	for range rapid.IntRange(0, 4).Draw(t, "n") {
		all = append(all, draw(t))
	}
	return all
}

func drawInt(t *rapid.T) int64              { return rapid.Int64().Draw(t, "int") }
func drawBool(t *rapid.T) bool              { return rapid.Bool().Draw(t, "bool") }
func drawLSN(t *rapid.T) slotmon.LSN        { return slotmon.LSN(rapid.Uint64().Draw(t, "lsn")) }
func drawDuration(t *rapid.T) time.Duration { return time.Duration(drawInt(t)) }

func drawTime(t *rapid.T) time.Time {
	if rapid.Bool().Draw(t, "zero") {
		return time.Time{}
	}
	return time.Unix(drawInt(t), 0)
}

func drawSeverity(t *rapid.T) slotmon.Severity {
	return slotmon.Severity(rapid.IntRange(-2, 7).Draw(t, "severity"))
}

func drawStatus(t *rapid.T) publisher.Status {
	stall := func(t *rapid.T) publisher.Stall {
		return publisher.Stall{Kind: publisher.StallKind(drawName(t)), Since: drawTime(t)}
	}
	partition := func(t *rapid.T) publisher.Partition {
		return publisher.Partition{Topic: drawName(t), Partition: rapid.Int32().Draw(t, "partition"), OldestSince: drawTime(t)}
	}
	connected := func(t *rapid.T) publisher.Kafka {
		return publisher.Kafka{Connected: drawBool(t), Partitions: some(t, partition)}
	}
	return publisher.Status{
		State: publisher.State(drawName(t)), Role: drawName(t), Ready: drawBool(t), Stall: maybe(t, stall),
		LastConfirmed: drawTime(t), LastAcknowledged: drawTime(t), RowsRead: drawInt(t), Kafka: maybe(t, connected),
		SessionEnds: map[publisher.EndCause]int{publisher.EndCause(drawName(t)): 1},
	}
}

func drawCounters(t *rapid.T) kafka.Counters {
	counters := kafka.Counters{Topics: map[string]kafka.Acknowledged{}, Errors: map[string]uint64{}}
	for _, name := range some(t, drawName) {
		counters.Topics[name] = kafka.Acknowledged{Records: rapid.Uint64().Draw(t, "records")}
		counters.Errors[name] = 1
	}
	for i := range latency.Bounds {
		counters.CommitToAck.Counts[i] = rapid.Uint64().Draw(t, "count")
	}
	counters.OccurredToAck.Sum = drawFloat(t)
	return counters
}

func drawSlot(t *rapid.T) slotmon.Slot {
	spill := func(t *rapid.T) slotmon.Spill { return slotmon.Spill{Bytes: drawInt(t)} }
	return slotmon.Slot{
		Name: drawName(t), Plugin: drawName(t), Type: rapid.SampledFrom([]string{"logical", "physical", ""}).Draw(t, "type"), Database: drawName(t),
		Active: drawBool(t), RestartLSN: maybe(t, drawLSN), WALStatus: maybe(t, drawName), SafeWALSize: maybe(t, drawInt),
		CatalogXminAge: maybe(t, drawInt), InvalidationReason: maybe(t, drawName), Failover: maybe(t, drawBool), Synced: maybe(t, drawBool),
		RetainedBytes: maybe(t, drawInt), ConfirmedLagBytes: maybe(t, drawInt), Spill: maybe(t, spill),
	}
}

func drawServer(t *rapid.T) monitor.Server {
	sample := func(t *rapid.T) slotmon.Sample {
		return slotmon.Sample{Taken: drawTime(t), Server: slotmon.Server{
			WAL: drawLSN(t), MaxSlotWALKeepSize: drawInt(t), Volume: slotmon.Volume{FreeBytes: maybe(t, drawInt), SizeBytes: maybe(t, drawInt)},
		}}
	}
	finding := func(t *rapid.T) slotmon.Finding {
		return slotmon.Finding{ID: slotmon.FindingID(drawName(t)), Severity: drawSeverity(t)}
	}
	standby := func(t *rapid.T) slotmon.Standby { return slotmon.Standby{Slot: maybe(t, drawSlot)} }
	slot := func(t *rapid.T) monitor.Slot {
		return monitor.Slot{Name: drawName(t), Slot: maybe(t, drawSlot), Standbys: some(t, standby), Report: slotmon.Report{
			Verdict: drawSeverity(t), Findings: some(t, finding), SecondsToLost: maybe(t, drawFloat), SecondsToFull: maybe(t, drawFloat),
			SecondsToLostWhy: slotmon.NoLimit, SecondsToFullWhy: drawName(t), Trend: slotmon.Trend{InactiveFor: maybe(t, drawDuration)},
		}}
	}
	return monitor.Server{Name: drawName(t), Up: drawBool(t), Sample: maybe(t, sample), Slots: some(t, slot)}
}

func drawSnapshot(t *rapid.T) monitor.Snapshot {
	alert := func(t *rapid.T) slotmon.Alert {
		return slotmon.Alert{Server: drawName(t), Slot: drawName(t), ID: slotmon.FindingID(drawName(t)), Severity: drawSeverity(t), Resolved: drawTime(t)}
	}
	sink := func(t *rapid.T) monitor.Sink {
		return monitor.Sink{Name: drawName(t), Sent: int(drawInt(t)), Failed: 1, LastError: drawName(t)}
	}
	return monitor.Snapshot{Servers: some(t, drawServer), Alerts: some(t, alert), Sinks: some(t, sink)}
}

// A pedantic registry checks every metric against its description too.
func TestNoSnapshotMakesAScrapeFail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := situation{status: maybe(t, drawStatus), counters: maybe(t, drawCounters), snapshot: maybe(t, drawSnapshot)}
		registry := prometheus.NewPedanticRegistry()
		if err := registry.Register(newCollector(s.sources())); err != nil {
			t.Fatal(err)
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				for _, value := range []float64{metric.GetGauge().GetValue(), metric.GetCounter().GetValue()} {
					if math.IsNaN(value) {
						t.Errorf("%s is NaN: %s", family.GetName(), metric)
					}
				}
			}
		}
	})
}
