package slotmon

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// story samples a world every ten seconds through Series, Judge and Alerts.
type story struct {
	*world
	alerts *Alerts
	limit  int64
	told   []string
}

func newStory(t *testing.T) *story {
	w := newWorld(t)
	w.sample.Slots[0].Name = "s"
	return &story{world: w, alerts: NewAlerts(timing), limit: 40 * gib}
}

// passes lets time pass in rounds of ten seconds; each calls change first.
func (s *story) passes(d time.Duration, change func(i int)) {
	s.t.Helper()
	for i := range int(d / ten) {
		change(i)
		slot := &s.sample.Slots[0]
		slot.SafeWALSize = new(s.limit - int64(s.sample.Server.WAL-*slot.RestartLSN))
		s.sample.Server.MaxSlotWALKeepSize, s.sample.Server.Now = s.limit, s.at.Add(ten)
		s.at = s.at.Add(ten)
		trend := s.take(nil)
		sample := s.sample
		sample.Taken = s.at
		slots := slices.Clone(s.sample.Slots)
		slots[0].RetainedBytes = new(int64(sample.Server.WAL - *slot.RestartLSN))
		slots[0].ConfirmedLagBytes = new(int64(sample.Server.WAL - *slot.ConfirmedFlushLSN))
		sample.Slots = slots
		report := Judge(DefaultLimits(), Subject{Name: "s", Sample: &sample, Trend: trend})
		for _, a := range s.alerts.Update(s.at, "db", "s", report.ForAlerts()) {
			what := a.Severity.String()
			if !a.Resolved.IsZero() {
				what = "resolved"
			}
			s.told = append(s.told, fmt.Sprintf("%s %s %s", s.at.Sub(noon), a.ID, what))
		}
	}
}

// written and confirmed move the world; restart_lsn follows every fourth round.
func (s *story) moves(written, confirmed int64) func(i int) {
	return func(i int) {
		slot := &s.sample.Slots[0]
		s.sample.Server.WAL += LSN(written)
		slot.ConfirmedFlushLSN = new(min(*slot.ConfirmedFlushLSN+LSN(confirmed), s.sample.Server.WAL))
		if confirmed > 0 && i%4 == 0 {
			slot.RestartLSN = slot.ConfirmedFlushLSN
		}
	}
}

func TestABusySlotThatIsReadWellNeverAlerts(t *testing.T) {
	s := newStory(t)
	s.passes(time.Hour, s.moves(500*mib, 500*mib)) // 50 MiB/s, and 40 GiB would last 14 minutes
	if len(s.told) != 0 {
		t.Fatal(s.told)
	}
}

func TestASlotThatIsBeingLostIsCriticalInTime(t *testing.T) {
	s := newStory(t)
	s.passes(10*time.Minute, s.moves(500*mib, 500*mib))
	s.sample.Slots[0].Active = false
	s.passes(20*time.Minute, s.moves(500*mib, 0)) // 50 MiB/s: 40 GiB in 13 min 9 s
	if want := "10m40s time_to_lost critical"; len(s.told) == 0 || s.told[0] != want {
		t.Errorf("told %q, want %s first", s.told, want)
	}
	if want := "23m10s slot_unreserved critical"; !slices.Contains(s.told, want) {
		t.Errorf("told %q, want %s", s.told, want)
	}
}

func TestADeadReaderAlertsInTimeAndItsReturnResolves(t *testing.T) {
	s := newStory(t)
	slot := &s.sample.Slots[0]
	s.passes(10*time.Minute, s.moves(50*mib, 50*mib))
	slot.Active = false
	s.passes(15*time.Minute, s.moves(50*mib, 0)) // 5 MiB/s: 40 GiB in 2 h 16 min
	slot.Active = true
	s.passes(10*time.Minute, s.moves(50*mib, gib))
	want := []string{
		"10m40s time_to_lost warning",   // two samples without a reader, 30 s
		"12m50s slot_inactive warning",  // more than 2 min, 30 s
		"16m20s confirmed_lag warning",  // more than 30 s of WAL, more than 5 min, 30 s
		"20m50s slot_inactive critical", // more than 10 min, 30 s
		"26m10s slot_inactive resolved", // at its return and 1 min
		"26m10s confirmed_lag resolved", // the first sample that was lower, 1 min
		"26m10s time_to_lost resolved",  // the first sample that gained, 1 min
	}
	slices.Sort(want)
	slices.Sort(s.told)
	if !slices.Equal(s.told, want) || len(s.alerts.Active()) != 0 {
		t.Errorf("told %q", s.told)
	}
}
