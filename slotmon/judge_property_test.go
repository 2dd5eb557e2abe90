package slotmon

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// maybe draws nil or a pointer.
func maybe[T any](t *rapid.T, label string, of *rapid.Generator[T]) *T {
	return rapid.Ptr(of, true).Draw(t, label)
}

var (
	anyBytes = rapid.OneOf(rapid.Int64Range(-gib, 200*gib), rapid.Int64())
	anyCount = rapid.OneOf(rapid.Int64Range(0, 300_000_000), rapid.Int64())
	anyRate  = rapid.OneOf(rapid.Float64Range(-100*mib, 100*mib), rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.MaxFloat64, math.SmallestNonzeroFloat64}))
	anyTime  = rapid.Map(rapid.Int64Range(-400*24*3600, 400*24*3600), func(s int64) time.Time { return noon.Add(time.Duration(s) * time.Second) })
	anyLast  = rapid.OneOf(rapid.Map(rapid.Int64Range(0, 100_000), func(s int64) time.Duration { return time.Duration(s) * time.Second }), rapid.Map(rapid.Int64(), func(n int64) time.Duration { return time.Duration(n) }))
	anyLSN   = rapid.Map(rapid.Uint64(), func(n uint64) LSN { return LSN(n) })
	anyText  = rapid.SampledFrom([]string{"", "x", "it's", "\x00\xff"})
)

func drawSlot(t *rapid.T, name string) Slot {
	s := Slot{
		Name: name, Plugin: rapid.SampledFrom([]string{"", "pgoutput", "wal2json"}).Draw(t, "plugin"),
		Type: rapid.SampledFrom([]string{"logical", "physical", ""}).Draw(t, "type"), Database: rapid.SampledFrom([]string{"", "shop", "crm"}).Draw(t, "database"),
		Temporary: rapid.Bool().Draw(t, "temporary"), Active: rapid.Bool().Draw(t, "active"), TwoPhase: rapid.Bool().Draw(t, "two_phase"),
		RestartLSN: maybe(t, "restart_lsn", anyLSN), ConfirmedFlushLSN: maybe(t, "confirmed_flush_lsn", anyLSN),
		WALStatus:   maybe(t, "wal_status", rapid.SampledFrom([]string{"reserved", "extended", "unreserved", "lost", "?"})),
		SafeWALSize: maybe(t, "safe_wal_size", anyBytes), CatalogXminAge: maybe(t, "catalog_xmin", anyCount),
		InactiveSince: maybe(t, "inactive_since", anyTime), Conflicting: maybe(t, "conflicting", rapid.Bool()),
		InvalidationReason: maybe(t, "reason", rapid.SampledFrom([]string{"wal_removed", "idle_timeout", "rows_removed", ""})),
		Failover:           maybe(t, "failover", rapid.Bool()), Synced: maybe(t, "synced", rapid.Bool()),
		RetainedBytes: maybe(t, "retained", anyBytes), ConfirmedLagBytes: maybe(t, "lag", anyBytes),
	}
	if rapid.Bool().Draw(t, "held") {
		s.Holder = &Holder{PID: rapid.Int().Draw(t, "pid"), ApplicationName: anyText.Draw(t, "app"), FlushLSN: maybe(t, "flush", anyLSN), ReplyTime: maybe(t, "reply", anyTime)}
	}
	return s
}

func drawSubject(t *rapid.T) *Subject {
	s := &Subject{
		Name: "s",
		Trend: Trend{
			Over: anyLast.Draw(t, "over"), WALRate: maybe(t, "wal rate", anyRate), RetainedRate: maybe(t, "retained rate", anyRate), ConfirmedRate: maybe(t, "confirmed rate", anyRate),
			InactiveFor: maybe(t, "inactive for", anyLast), LagNotFallingFor: maybe(t, "not falling", anyLast), NotReadyFor: maybe(t, "not ready", anyLast), PublicationChanged: rapid.Bool().Draw(t, "changed"),
		},
		Sample: &Sample{Taken: noon, Server: Server{
			WAL: anyLSN.Draw(t, "wal"), Now: anyTime.Draw(t, "now"), InRecovery: rapid.Bool().Draw(t, "recovery"),
			MaxSlotWALKeepSize: rapid.OneOf(rapid.Just(int64(-1)), anyBytes).Draw(t, "limit"), IdleSlotTimeout: anyLast.Draw(t, "idle timeout"),
			Volume: Volume{FreeBytes: maybe(t, "free", anyBytes), Unknown: anyText.Draw(t, "unknown")},
		}},
	}
	for range rapid.IntRange(0, 2).Draw(t, "slots") {
		s.Sample.Slots = append(s.Sample.Slots, drawSlot(t, rapid.SampledFrom([]string{"s", "other"}).Draw(t, "name")))
	}
	for range rapid.IntRange(0, 3).Draw(t, "transactions") {
		s.Sample.Transactions = append(s.Sample.Transactions, Transaction{
			GID: anyText.Draw(t, "gid"), PID: 1, Began: anyTime.Draw(t, "began"), QueryStarted: maybe(t, "query", anyTime), Writes: rapid.Bool().Draw(t, "writes"),
		})
	}
	s.Sample.Publication = maybe(t, "publication", rapid.Custom(func(t *rapid.T) Publication {
		return Publication{Exists: rapid.Bool().Draw(t, "exists"), Inserts: rapid.Bool().Draw(t, "inserts"), Missing: rapid.SliceOfN(anyText, 0, 2).Draw(t, "missing")}
	}))
	s.Expected = maybe(t, "expected", rapid.Just(Expected{Database: "shop"}))
	s.Publisher = maybe(t, "publisher", rapid.Custom(func(t *rapid.T) Publisher {
		return Publisher{
			Unanswered: anyText.Draw(t, "unanswered"), State: rapid.SampledFrom([]string{"", "streaming", "standby", "blocked"}).Draw(t, "state"),
			Slot: rapid.SampledFrom([]string{"", "s", "other"}).Draw(t, "its slot"), Stall: anyText.Draw(t, "stall"), StallSince: anyTime.Draw(t, "stall since"),
		}
	}))
	for range rapid.IntRange(0, 2).Draw(t, "standbys") {
		s.Standbys = append(s.Standbys, Standby{Unreachable: anyText.Draw(t, "why"), Slot: maybe(t, "copy", rapid.Custom(func(t *rapid.T) Slot { return drawSlot(t, "s") }))})
	}
	return s
}

func drawLimits(t *rapid.T) Limits {
	if rapid.Bool().Draw(t, "default limits") {
		return DefaultLimits()
	}
	bytes, counts, lasts := rapid.Int64Range(0, 200*gib), rapid.Int64Range(0, 300_000_000), rapid.Map(rapid.Int64Range(0, 100_000), func(s int64) time.Duration { return time.Duration(s) * time.Second })
	pair := func(label string) Duration { return Duration{lasts.Draw(t, label), lasts.Draw(t, label)} }
	return Limits{
		RetainedWAL: Bytes{bytes.Draw(t, "w"), bytes.Draw(t, "c")}, RetainedShare: Ratio{rapid.Float64Range(0, 1).Draw(t, "w"), rapid.Float64Range(0, 1).Draw(t, "c")},
		TimeToLost: pair("lost"), TimeToFull: pair("full"), Inactive: pair("inactive"), ConfirmedLag: pair("lag"), NotReady: pair("ready"), Stalled: pair("stalled"),
		CatalogXminAge: Count{counts.Draw(t, "w"), counts.Draw(t, "c")}, LongTransaction: lasts.Draw(t, "long"),
	}
}

// withSlot is a subject whose slot exists and is not lost.
func withSlot(t *rapid.T) *Subject {
	s := drawSubject(t)
	slot := drawSlot(t, "s")
	slot.Conflicting, slot.InvalidationReason = nil, nil
	if slot.WALStatus != nil && *slot.WALStatus == "lost" {
		slot.WALStatus = nil
	}
	s.Sample.Slots = []Slot{slot}
	return s
}

func severityOf(r *Report, id FindingID) (severity, hold Severity) {
	if f := find(r, id); f != nil {
		return f.Severity, f.Hold
	}
	return OK, OK
}

// neverLowers judges before and after worsen has changed the subject.
func neverLowers(t *testing.T, id FindingID, worsen func(t *rapid.T, s *Subject)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		s, limits := withSlot(t), drawLimits(t)
		before := Judge(limits, *s)
		worsen(t, s)
		after := Judge(limits, *s)
		if after.Verdict.Worse(before.Verdict) {
			t.Fatalf("verdict from %s to %s\n%+v\n%+v", before.Verdict, after.Verdict, before.Findings, after.Findings)
		}
		severity, hold := severityOf(&before, id)
		if s, h := severityOf(&after, id); s.Worse(severity) || h.Worse(hold) {
			t.Fatalf("%s from %s (%s) to %s (%s)", id, severity, hold, s, h)
		}
	})
}

func TestMoreRetainedWALNeverLowersSeverity(t *testing.T) {
	neverLowers(t, RetainedWAL, func(t *rapid.T, s *Subject) {
		// To learn what was not known may well calm.
		if retained := s.theSlot().RetainedBytes; retained != nil {
			s.theSlot().RetainedBytes = new(rapid.Int64Range(*retained, math.MaxInt64).Draw(t, "more"))
		}
	})
}

func TestLessSafeWALSizeNeverLowersSeverity(t *testing.T) {
	for _, id := range []FindingID{SlotUnreserved, TimeToLost, RetainedShare} {
		neverLowers(t, id, func(t *rapid.T, s *Subject) {
			if safe := s.theSlot().SafeWALSize; safe != nil {
				s.theSlot().SafeWALSize = new(rapid.Int64Range(math.MinInt64, *safe).Draw(t, "less"))
			}
		})
	}
}

func TestLessTimeNeverLowersSeverity(t *testing.T) {
	for _, id := range []FindingID{TimeToLost, TimeToFull} {
		rapid.Check(t, func(t *rapid.T) {
			s, limits := withSlot(t), drawLimits(t)
			s.Trend.WALRate, s.Trend.ConfirmedRate = nil, nil // the growth is that of retained WAL
			slow := rapid.Float64Range(-mib, gib).Draw(t, "slow")
			s.Trend.RetainedRate = &slow
			before := Judge(limits, *s)
			s.Trend.RetainedRate = new(slow + rapid.Float64Range(0, gib).Draw(t, "faster"))
			after := Judge(limits, *s)
			severity, hold := severityOf(&before, id)
			if a, h := severityOf(&after, id); a.Worse(severity) || h.Worse(hold) || after.Verdict.Worse(before.Verdict) {
				t.Fatalf("%s from %s to %s", id, severity, a)
			}
		})
	}
}

func TestLessFreeSpaceNeverLowersSeverity(t *testing.T) {
	neverLowers(t, TimeToFull, func(t *rapid.T, s *Subject) {
		if free := s.Sample.Server.Volume.FreeBytes; free != nil {
			s.Sample.Server.Volume.FreeBytes = new(rapid.Int64Range(math.MinInt64, *free).Draw(t, "less"))
		}
	})
}

func TestMoreInactivityNeverLowersSeverity(t *testing.T) {
	neverLowers(t, SlotInactive, func(t *rapid.T, s *Subject) {
		if inactive := s.Trend.InactiveFor; inactive != nil {
			s.Trend.InactiveFor = new(time.Duration(rapid.Int64Range(int64(*inactive), math.MaxInt64).Draw(t, "longer")))
		}
	})
}

func TestALostSlotIsCriticalWhateverElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := withSlot(t)
		switch slot := s.theSlot(); rapid.IntRange(0, 2).Draw(t, "how") {
		case 0:
			slot.WALStatus = new("lost")
		case 1:
			slot.InvalidationReason = new(anyText.Draw(t, "reason"))
		case 2:
			slot.Conflicting = new(true)
		}
		report := Judge(drawLimits(t), *s)
		f := find(&report, SlotLost)
		if f == nil || f.Severity != Critical || !f.AtOnce || report.Verdict != Critical || report.SecondsToLost == nil || *report.SecondsToLost != 0 {
			t.Fatalf("%+v", report)
		}
	})
}

func TestEveryReportIsSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSubject(t)
		if rapid.IntRange(0, 9).Draw(t, "reachable") == 0 {
			s.Sample = nil
		}
		report := Judge(drawLimits(t), *s)
		if _, err := json.Marshal(report); err != nil {
			t.Fatal(err)
		}
		if (report.SecondsToLost == nil) == (report.SecondsToLostWhy == "") || (report.SecondsToFull == nil) == (report.SecondsToFullWhy == "") {
			t.Fatalf("a time or a reason: %+v", report)
		}
		for _, seconds := range []*float64{report.SecondsToLost, report.SecondsToFull} {
			if seconds != nil && *seconds < 0 {
				t.Fatalf("%v seconds", *seconds)
			}
		}
		worst, ids := OK, []FindingID{}
		for i, f := range report.ForAlerts() {
			if f.Summary == "" || slices.Contains(ids, f.ID) || f.Hold.Worse(f.Severity) {
				t.Fatalf("%+v", f)
			}
			if i < len(report.Findings) && (f.Severity == OK || i > 0 && report.Findings[i-1].Severity.Worse(f.Severity)) {
				t.Fatalf("order: %+v", report.Findings)
			}
			ids = append(ids, f.ID)
			if worst.Worse(f.Severity) {
				worst = f.Severity
			}
		}
		if worst != report.Verdict {
			t.Fatalf("verdict %s of %+v", report.Verdict, report.Findings)
		}
	})
}
