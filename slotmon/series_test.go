package slotmon

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// world is a server with one slot that a test moves and samples.
type world struct {
	t      *testing.T
	series *Series
	sample Sample
	at     time.Time
}

func newWorld(t *testing.T) *world {
	return &world{t: t, series: NewSeries(5 * time.Minute), at: noon, sample: Sample{
		Server: Server{SystemID: "7", WAL: 1 << 40},
		Slots:  []Slot{{Name: "s", Type: "logical", Plugin: "pgoutput", Active: true, RestartLSN: new(LSN(1 << 40)), ConfirmedFlushLSN: new(LSN(1 << 40))}},
	}}
}

// after lets so much time pass in which so much WAL is written and confirmed,
// samples, and returns the trend. restart_lsn follows confirmed_flush_lsn.
func (w *world) after(d time.Duration, written, confirmed int64) Trend {
	w.at = w.at.Add(d)
	w.sample.Server.WAL += LSN(written)
	for i := range w.sample.Slots {
		if slot := &w.sample.Slots[i]; slot.ConfirmedFlushLSN != nil {
			slot.ConfirmedFlushLSN = new(*slot.ConfirmedFlushLSN + LSN(confirmed))
			slot.RestartLSN = slot.ConfirmedFlushLSN
		}
	}
	return w.take(nil)
}

func (w *world) take(standbys []Standby) Trend {
	sample := w.sample
	sample.Taken, sample.Server.Now = w.at, w.at
	sample.Slots = slices.Clone(w.sample.Slots)
	for i := range sample.Slots {
		slot := &sample.Slots[i]
		slot.RetainedBytes, slot.ConfirmedLagBytes = nil, nil
		if slot.RestartLSN != nil && !slot.Lost() {
			slot.RetainedBytes = new(int64(sample.Server.WAL - *slot.RestartLSN))
		}
		if slot.ConfirmedFlushLSN != nil {
			slot.ConfirmedLagBytes = new(int64(sample.Server.WAL - *slot.ConfirmedFlushLSN))
		}
	}
	w.series.Add(&sample, map[string][]Standby{"s": standbys}, "s")
	return w.series.Trend("s")
}

func same[T comparable](t *testing.T, what string, got *T, want *T) {
	t.Helper()
	if (got == nil) != (want == nil) || got != nil && *got != *want {
		t.Fatalf("%s: got %v, want %v", what, deref(got), deref(want))
	}
}

func deref[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

func TestRatesAreFromTheOldestToTheNewestSampleOfTheWindow(t *testing.T) {
	w := newWorld(t)
	trend := w.take(nil)
	same(t, "wal", trend.WALRate, nil)
	same(t, "retained", trend.RetainedRate, nil)
	trend = w.after(10*time.Second, 100*mib, 40*mib)
	same(t, "wal", trend.WALRate, new(10.0*mib))
	same(t, "retained", trend.RetainedRate, new(6.0*mib))
	same(t, "confirmed", trend.ConfirmedRate, new(4.0*mib))
	for range 40 { // what is older than the window no longer counts
		trend = w.after(10*time.Second, 10*mib, 20*mib)
	}
	same(t, "wal", trend.WALRate, new(1.0*mib))
	same(t, "retained", trend.RetainedRate, new(-1.0*mib))
	if trend.Over != 5*time.Minute {
		t.Fatalf("over %s", trend.Over)
	}
}

func TestALongPauseStillGivesARate(t *testing.T) {
	w := newWorld(t)
	w.take(nil)
	trend := w.after(time.Hour, 3600*mib, 0)
	same(t, "wal", trend.WALRate, new(1.0*mib))
}

func TestMemoryIsBoundedAndTheWindowIsCovered(t *testing.T) {
	w := newWorld(t)
	var trend Trend
	for range 1000 {
		trend = w.after(time.Second, mib, 0)
		if n := len(w.series.slots["s"].track); n > maxPoints {
			t.Fatalf("%d points", n)
		}
	}
	if trend.Over < 290*time.Second || trend.Over > 300*time.Second {
		t.Fatalf("over %s", trend.Over)
	}
	same(t, "wal", trend.WALRate, new(1.0*mib))
	w.sample.Slots = nil
	w.take(nil)
	if len(w.series.slots) != 0 || len(w.series.server) > maxPoints {
		t.Fatal("a slot that is gone is remembered")
	}
}

func TestASampleOfTheSameTimeTakesThePlaceOfTheLast(t *testing.T) {
	w := newWorld(t)
	w.take(nil)
	w.after(0, 50*mib, 0)
	trend := w.after(10*time.Second, 100*mib, 0)
	same(t, "wal", trend.WALRate, new(10.0*mib))
}

func TestAnotherPastIsForgotten(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"another server":      func(w *world) { w.sample.Server.SystemID = "8" },
		"WAL goes back":       func(w *world) { w.sample.Server.WAL -= 1 << 30 },
		"clock goes back":     func(w *world) { w.at = w.at.Add(-time.Minute) },
		"slot goes back":      func(w *world) { w.sample.Slots[0].ConfirmedFlushLSN = new(LSN(1 << 39)) },
		"another plugin":      func(w *world) { w.sample.Slots[0].Plugin = "test_decoding" },
		"dropped in between":  func(w *world) { slots := w.sample.Slots; w.sample.Slots = nil; w.take(nil); w.sample.Slots = slots },
		"made anew, no trace": func(w *world) { w.sample.Slots[0].ConfirmedFlushLSN = new(w.sample.Server.WAL + 400*mib) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.take(nil)
			if w.after(10*time.Second, 100*gib, 0).RetainedRate == nil {
				t.Fatal("no rate at first")
			}
			change(w)
			trend := w.after(10*time.Second, 500*mib, mib)
			same(t, "retained", trend.RetainedRate, nil)
			same(t, "confirmed", trend.ConfirmedRate, nil)
			trend = w.after(10*time.Second, 100*mib, 50*mib)
			same(t, "retained", trend.RetainedRate, new(5.0*mib))
		})
	}
}

func TestAReaderThatCatchesUpQuicklyIsNoNewSlot(t *testing.T) {
	w := newWorld(t)
	w.take(nil)
	w.after(10*time.Second, 900*mib, 0)
	trend := w.after(10*time.Second, 100*mib, 1000*mib)
	same(t, "confirmed", trend.ConfirmedRate, new(50.0*mib))
}

func TestALostSlotHasNoRateOfRetainedWAL(t *testing.T) {
	w := newWorld(t)
	w.take(nil)
	w.after(10*time.Second, 100*mib, 0)
	w.sample.Slots[0].WALStatus, w.sample.Slots[0].RestartLSN = new("lost"), nil
	w.sample.Slots[0].Active = false
	w.take(nil)
	w.at = w.at.Add(10 * time.Second)
	w.sample.Server.WAL += 100 * mib
	trend := w.take(nil)
	same(t, "retained", trend.RetainedRate, nil)
	same(t, "confirmed", trend.ConfirmedRate, new(0.0))
}

func TestARateBeginsWhenItsValueIsKnown(t *testing.T) {
	w := newWorld(t)
	w.sample.Slots[0].RestartLSN, w.sample.Slots[0].ConfirmedFlushLSN = nil, nil // being created
	w.take(nil)
	same(t, "retained", w.after(10*time.Second, mib, 0).RetainedRate, nil)
	w.sample.Slots[0].RestartLSN, w.sample.Slots[0].ConfirmedFlushLSN = new(LSN(1<<40)), new(LSN(1<<40))
	same(t, "retained", w.after(10*time.Second, mib, 0).RetainedRate, nil)
	same(t, "retained", w.after(10*time.Second, 10*mib, 0).RetainedRate, new(1.0*mib))
}

func TestASlotThatDoesNotExistHasTheRateOfTheServer(t *testing.T) {
	w := newWorld(t)
	w.sample.Slots = nil
	w.take(nil)
	trend := w.after(10*time.Second, 100*mib, 0)
	same(t, "wal", trend.WALRate, new(10.0*mib))
	same(t, "retained", trend.RetainedRate, nil)
}

func TestInactiveForIsByTheServersMemoryElseByOurs(t *testing.T) {
	w := newWorld(t)
	same(t, "active", w.take(nil).InactiveFor, nil)
	w.sample.Slots[0].Active = false
	same(t, "just seen", w.after(time.Minute, 0, 0).InactiveFor, new(time.Duration(0)))
	same(t, "own memory", w.after(time.Minute, 0, 0).InactiveFor, new(time.Minute))
	w.sample.Slots[0].InactiveSince = new(noon.Add(-time.Hour))
	same(t, "server's memory", w.after(time.Minute, 0, 0).InactiveFor, new(time.Hour+3*time.Minute))
	w.sample.Slots[0].InactiveSince = new(noon.Add(time.Hour))
	same(t, "not negative", w.after(time.Minute, 0, 0).InactiveFor, new(time.Duration(0)))
	w.sample.Slots[0].InactiveSince, w.sample.Slots[0].Active = nil, true
	same(t, "held again", w.after(time.Minute, 0, 0).InactiveFor, nil)
	w.sample.Slots[0].Active = false
	same(t, "begins anew", w.after(time.Minute, 0, 0).InactiveFor, new(time.Duration(0)))
	w.sample.Slots[0].Synced, w.sample.Server.InRecovery = new(true), true
	same(t, "synced on a standby", w.after(time.Minute, 0, 0).InactiveFor, nil)
}

func TestTheConfirmedLagThatDoesNotFall(t *testing.T) {
	step := 10 * time.Second
	for _, c := range []struct {
		name string
		run  func(w *world) Trend
		want *time.Duration
	}{
		{"nobody confirms", func(w *world) (trend Trend) {
			for range 31 {
				trend = w.after(step, 20*mib, 0)
			}
			return trend
		}, new(300 * time.Second)}, // since the first sample that was more than 16 MiB behind
		{"confirmed too slowly", func(w *world) (trend Trend) {
			w.after(step, gib, 0)
			for range 30 {
				trend = w.after(step, 20*mib, 19*mib)
			}
			return trend
		}, new(300 * time.Second)},
		{"loses ground in a saw-tooth", func(w *world) (trend Trend) {
			w.after(step, gib, 0)
			for range 20 {
				w.after(step, 20*mib, 0)
				trend = w.after(step, 20*mib, 39*mib)
			}
			return trend
		}, new(400 * time.Second)},
		{"falls", func(w *world) (trend Trend) {
			w.after(step, 10*gib, 0)
			for range 30 {
				trend = w.after(step, 20*mib, 21*mib)
			}
			return trend
		}, nil},
		{"a burst is worked off", func(w *world) (trend Trend) {
			w.after(step, gib, 0)
			w.after(step, 10*gib, 0)
			for range 30 {
				trend = w.after(step, 20*mib, 200*mib)
			}
			return trend
		}, nil},
		{"keeps up with much WAL", func(w *world) (trend Trend) {
			w.after(step, gib, 0)
			for range 60 {
				trend = w.after(step, gib, gib)
			}
			return trend
		}, nil},
		{"small", func(w *world) (trend Trend) {
			w.after(step, 16*mib, 0)
			for range 60 {
				trend = w.after(step, 1, 1)
			}
			return trend
		}, nil},
		{"no WAL is written", func(w *world) (trend Trend) {
			w.after(step, gib, 0)
			for range 60 {
				trend = w.after(step, 0, 0)
			}
			return trend
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.take(nil)
			for range 60 { // so that the rate of WAL is a small one
				w.after(step, 1000, 1000)
			}
			same(t, "not falling", c.run(w).LagNotFallingFor, c.want)
		})
	}
}

func TestNotReadySinceNoStandbyHasTheFailoverSlot(t *testing.T) {
	w := newWorld(t)
	w.sample.Slots[0].Failover = new(true)
	down, ready := []Standby{{Unreachable: "down"}}, []Standby{{Unreachable: "down"}, {Slot: &Slot{Synced: new(true)}}}
	same(t, "none configured", w.take(nil).NotReadyFor, nil)
	w.at = w.at.Add(time.Minute)
	same(t, "first", w.take(down).NotReadyFor, new(time.Duration(0)))
	w.at = w.at.Add(time.Minute)
	same(t, "then", w.take(down).NotReadyFor, new(time.Minute))
	w.at = w.at.Add(time.Minute)
	same(t, "ready", w.take(ready).NotReadyFor, nil)
	w.at = w.at.Add(time.Minute)
	same(t, "again", w.take(down).NotReadyFor, new(time.Duration(0)))
}

func TestThePublicationIsComparedWithTheFirstOneSeen(t *testing.T) {
	w := newWorld(t)
	see := func(p *Publication) bool {
		w.sample.Publication = p
		return w.after(time.Second, 0, 0).PublicationChanged
	}
	if see(nil) || see(&Publication{}) || see(&Publication{Exists: true, Fingerprint: "a"}) || see(nil) || see(&Publication{Exists: true, Fingerprint: "a"}) {
		t.Fatal("nothing has changed")
	}
	if !see(&Publication{Exists: true, Fingerprint: "b"}) || !see(&Publication{Exists: true, Fingerprint: "a"}) {
		t.Fatal("it was changed, and stays so")
	}
	if w.series.Trend("other").PublicationChanged {
		t.Fatal("it is not the publication of another slot")
	}
	w.sample.Server.WAL -= 1 << 30
	w.sample.Slots = nil
	if !see(nil) {
		t.Fatal("a failover does not undo the change")
	}
	w.sample.Server.SystemID = ""
	if !see(nil) {
		t.Fatal("a system identifier that cannot be seen is not another one")
	}
	w.sample.Server.SystemID = "8"
	if see(&Publication{Exists: true, Fingerprint: "c"}) {
		t.Fatal("another server has another publication")
	}
}

func TestWhateverIsSampledTrendsAreSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		series := NewSeries(5 * time.Minute)
		for range rapid.IntRange(1, 20).Draw(t, "samples") {
			sample := drawSubject(t).Sample
			sample.Taken = anyTime.Draw(t, "taken")
			sample.Server.SystemID = rapid.SampledFrom([]string{"7", "7", "7", "8"}).Draw(t, "system")
			series.Add(sample, nil, "s")
			trend := series.Trend("s")
			for _, rate := range []*float64{trend.WALRate, trend.RetainedRate, trend.ConfirmedRate} {
				if rate != nil && (math.IsNaN(*rate) || math.IsInf(*rate, 0)) || rate != nil && trend.Over <= 0 {
					t.Fatalf("%v over %s", *rate, trend.Over)
				}
			}
			for _, d := range []*time.Duration{trend.InactiveFor, trend.LagNotFallingFor, trend.NotReadyFor} {
				if d != nil && *d < 0 {
					t.Fatalf("%s", *d)
				}
			}
			if trend.WALRate != nil && *trend.WALRate < 0 || trend.ConfirmedRate != nil && *trend.ConfirmedRate < 0 {
				t.Fatal("WAL and confirmed_flush_lsn never go back")
			}
		}
	})
}
