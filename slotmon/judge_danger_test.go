package slotmon

import (
	"testing"
	"time"
)

// A reader has nothing to confirm until a transaction has committed and is
// published: for that long the slot grows, and then it shrinks again.
func TestALargeTransactionOfASlotThatIsReadIsNoDanger(t *testing.T) {
	s := newStory(t)
	s.limit = 4 * gib
	s.passes(2*time.Minute, s.moves(5*mib, 5*mib))
	s.passes(time.Minute, s.moves(45*mib, 0)) // 270 MiB in one transaction
	s.passes(time.Minute, s.moves(10*mib, 0)) // it is being published
	s.passes(10*time.Minute, s.moves(5*mib, gib))
	if len(s.told) != 0 {
		t.Errorf("told %q", s.told)
	}
}

func TestAReaderThatConfirmsNothingIsADangerBeforeTheRoomIsUsed(t *testing.T) {
	s := newStory(t)
	s.passes(2*time.Minute, s.moves(500*mib, 500*mib))
	s.passes(10*time.Minute, s.moves(500*mib, 0)) // 50 MiB/s: 40 GiB in 13 min 39 s
	want := []string{
		"3m30s time_to_lost warning",  // a tenth is used after about 1 min, 30 s
		"5m30s time_to_lost critical", // a quarter after about 3 min, 30 s; 10 min are left
	}
	for i, told := range want {
		if len(s.told) <= i || s.told[i] != told {
			t.Fatalf("told %q, want first %q", s.told, want)
		}
	}
}

func TestWhatTheGrowthOfASlotThatIsReadForetells(t *testing.T) {
	grows := func(retained, safe, free int64) func(s *Subject) {
		return func(s *Subject) {
			s.retains(retained)
			s.theSlot().SafeWALSize, s.Sample.Server.Volume.FreeBytes = &safe, &free
			s.Trend.ConfirmedRate = new(0.0) // 10 MiB/s are written
		}
	}
	checkCases(t, []judgeCase{
		{"little is used", grows(gib, 19*gib, 19*gib), TimeToLost, OK, nil, false},
		{"a tenth", grows(2*gib, 18*gib, 900*gib), TimeToLost, Warning, []string{"30 min 43 s (limit 1 h)"}, false},
		{"a quarter", grows(5*gib, 15*gib, 900*gib), TimeToLost, Critical, []string{"25 min 36 s"}, false},
		{"little of the volume", grows(gib, 900*gib, 19*gib), TimeToFull, OK, nil, false},
		{"a quarter of the volume", grows(5*gib, 900*gib, 15*gib), TimeToFull, Critical, []string{"25 min 36 s"}, false},
		{"little, and nobody reads", func(s *Subject) {
			s.dead(time.Minute, 10*mib)
			grows(gib, 19*gib, 19*gib)(s)
		}, TimeToLost, Critical, []string{"32 min 25 s"}, false},
	})
}

func TestAShortIdleTimeoutIsNotReachedByARestart(t *testing.T) {
	away := func(timeout, inactive time.Duration, safe int64) func(s *Subject) {
		return func(s *Subject) {
			s.dead(inactive, mib)
			s.Sample.Server.IdleSlotTimeout, s.theSlot().SafeWALSize = timeout, &safe
		}
	}
	checkCases(t, []judgeCase{
		{"just gone", away(time.Hour, 40*time.Second, 99*gib), TimeToLost, OK, nil, false},
		{"half", away(time.Hour, 31*time.Minute, 99*gib), TimeToLost, Warning, []string{"in about 29 min", "idle_replication_slot_timeout is 1 h"}, false},
		{"three quarters", away(time.Hour, 46*time.Minute, 99*gib), TimeToLost, Critical, []string{"in about 14 min"}, false},
		{"just gone, and the WAL is more urgent", away(time.Hour, 40*time.Second, 3*gib), TimeToLost, Critical, []string{"51 min", "until max_slot_wal_keep_size"}, false},
		{"a day, in hours", away(24*time.Hour, 19*time.Hour, 999*gib), TimeToLost, Warning, []string{"in about 5 h"}, false},
	})
}

func TestAVolumeWithNothingFreeIsFullAlthoughNothingGrows(t *testing.T) {
	full := func(free, retained int64) func(s *Subject) {
		return func(s *Subject) {
			s.retains(retained)
			s.Sample.Server.Volume.FreeBytes = &free
			s.Trend.WALRate, s.Trend.RetainedRate, s.Trend.ConfirmedRate = new(0.0), new(0.0), new(0.0)
		}
	}
	checkCases(t, []judgeCase{
		{"full", full(0, 5*gib), TimeToFull, Critical, []string{"nothing is free", "retains 5 GiB"}, false},
		{"more than full", full(-1, 5*gib), TimeToFull, Critical, []string{"nothing is free"}, false},
		{"not by the slot", full(0, 16*mib), TimeToFull, OK, nil, false},
		{"little", full(gib, 5*gib), TimeToFull, OK, nil, false},
	})
}

// postgres.url may lead to the former primary, which is a standby now.
func TestTheCopyOfOurSlotOnAStandbyIsNotFine(t *testing.T) {
	w := newWorld(t)
	slot := &w.sample.Slots[0]
	slot.Active, slot.Synced, slot.InactiveSince = false, new(true), new(noon)
	w.sample.Server.InRecovery = true
	for _, c := range []struct {
		after    time.Duration
		expected *Expected
		want     Severity
	}{
		{0, &Expected{}, OK}, {time.Minute, &Expected{}, OK}, {2 * time.Minute, &Expected{}, Warning},
		{10 * time.Minute, nil, OK}, {0, &Expected{}, Critical},
	} {
		trend := w.after(c.after, mib, mib)
		sample := w.sample
		report := Judge(DefaultLimits(), Subject{Name: "s", Sample: &sample, Trend: trend, Expected: c.expected})
		if severity, _ := severityOf(&report, SlotInactive); severity != c.want {
			t.Errorf("at %s: %+v", w.at, report.Findings)
		}
		same(t, "inactive for", trend.InactiveFor, nil)
	}
}

func TestARestartOfTheServerIsNoReader(t *testing.T) {
	w := newWorld(t)
	server, slot := &w.sample.Server, &w.sample.Slots[0]
	server.Started, slot.Active, slot.InactiveSince = noon.Add(-time.Hour), false, new(noon)
	same(t, "inactive for", w.after(10*time.Minute, 0, 0).InactiveFor, new(10*time.Minute))
	same(t, "inactive for", w.after(10*time.Minute, 0, 0).InactiveFor, new(20*time.Minute))
	server.Started, slot.InactiveSince = w.at, new(w.at.Add(2*time.Second))
	same(t, "after a restart", w.after(10*time.Second, 0, 0).InactiveFor, new(10*time.Minute+10*time.Second))
	slot.InactiveSince = new(w.at.Add(2 * time.Minute))
	same(t, "after a reader that no sample saw", w.after(3*time.Minute, 0, 0).InactiveFor, new(time.Minute))
}

func TestOnlyAStandbyOfThePrimaryHasItsSlotReady(t *testing.T) {
	at := func(system string, recovery bool) *Sample {
		return &Sample{Server: Server{SystemID: system, InRecovery: recovery}, Slots: []Slot{{Name: "s", Synced: new(true)}}}
	}
	primary := at("7", false)
	for name, c := range map[string]struct {
		asked *Sample
		ready bool
	}{
		"a standby":                       {at("7", true), true},
		"one whose identity is not shown": {at("", true), true},
		"the primary, promoted once":      {at("7", false), false},
		"a standby of another server":     {at("8", true), false},
	} {
		standby := StandbyAt("db2", primary, c.asked, "s")
		if standby.Ready() != c.ready || (standby.Not == "") != c.ready || standby.Address != "db2" {
			t.Errorf("%s: %+v", name, standby)
		}
	}
}
