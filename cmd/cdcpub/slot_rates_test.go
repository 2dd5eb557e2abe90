package main

import (
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/slotmon"
)

// A reader that reports every ten seconds looks as if it stood still in most
// pairs of samples that are two seconds apart. One that is behind is given the
// time to report; one that keeps up has no growth that is worth extrapolating.
func TestRatesNeedAReaderThatWasHeard(t *testing.T) {
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *time.Time { moment := now.Add(-d); return &moment }
	lsn := func(n slotmon.LSN) *slotmon.LSN { return &n }
	slot := func(confirmed slotmon.LSN, pid int, reply, since *time.Time) *slotmon.Slot {
		return &slotmon.Slot{Active: true, ConfirmedFlushLSN: lsn(confirmed), Holder: &slotmon.Holder{PID: pid, ReplyTime: reply, Since: since}}
	}
	free := &slotmon.Slot{ConfirmedFlushLSN: lsn(5)}
	for name, c := range map[string]struct {
		first, second *slotmon.Slot
		unheard       bool
	}{
		"no report in between":         {slot(5, 7, at(4*time.Second), at(time.Hour)), slot(5, 7, at(4*time.Second), at(time.Hour)), true},
		"a report without progress":    {slot(5, 7, at(4*time.Second), at(time.Hour)), slot(5, 7, at(time.Second), at(time.Hour)), false},
		"the first report":             {slot(5, 7, nil, at(3*time.Second)), slot(5, 7, at(time.Second), at(3*time.Second)), false},
		"progress":                     {slot(5, 7, nil, nil), slot(6, 7, nil, nil), false},
		"silent for long":              {slot(5, 7, at(31*time.Second), at(time.Hour)), slot(5, 7, at(31*time.Second), at(time.Hour)), false},
		"just connected":               {slot(5, 7, nil, at(3*time.Second)), slot(5, 7, nil, at(3*time.Second)), true},
		"connected long ago, silent":   {slot(5, 7, nil, at(time.Hour)), slot(5, 7, nil, at(time.Hour)), false},
		"the role may not see reports": {slot(5, 7, nil, nil), slot(5, 7, nil, nil), true},
		"another reader":               {slot(5, 7, at(4*time.Second), nil), slot(5, 8, nil, at(time.Second)), false},
		"nobody":                       {free, free, false},
		"dropped":                      {slot(5, 7, nil, nil), nil, false},
	} {
		for _, behind := range []bool{false, true} {
			lag, rate := int64(1<<20), float64(1<<20)
			if behind {
				lag = 1 << 30
			}
			if c.second != nil {
				c.second.ConfirmedLagBytes = &lag
			}
			trend := slotmon.Trend{Over: 2 * time.Second, WALRate: &rate, RetainedRate: &rate}
			if got, want := mayReport(trend, c.first, c.second, now), c.unheard && behind; got != want {
				t.Errorf("%s, behind %t: waits %t", name, behind, got)
			}
			if got, want := dependable(trend, c.first, c.second, now).RetainedRate == nil, c.unheard && !behind; got != want {
				t.Errorf("%s, behind %t: no rates %t", name, behind, got)
			}
			trend.Over = reportInterval
			if mayReport(trend, c.first, c.second, now) {
				t.Errorf("%s: waits for ever", name)
			}
		}
	}
}

func TestRatesWithinTheStepsOfAReaderThatKeepsUpAreNone(t *testing.T) {
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	const mib = 1 << 20
	for name, c := range map[string]struct {
		lag                      int64
		wal, retained, confirmed float64
		over                     time.Duration
		kept                     bool
	}{
		"a step is missing":                   {100 * mib, 50 * mib, 50 * mib, 25 * mib, 2 * time.Second, false},
		"far behind, and confirms too slowly": {10 << 30, 50 * mib, 25 * mib, 25 * mib, 2 * time.Second, true},
		"confirms nothing":                    {100 * mib, 50 * mib, 50 * mib, 0, 2 * time.Second, true},
		"falls behind for a minute":           {1000 * mib, 50 * mib, 25 * mib, 25 * mib, time.Minute, true},
		"restart_lsn stands for a minute":     {10 * mib, 50 * mib, 50 * mib, 50 * mib, time.Minute, true},
		"catches up":                          {100 * mib, 50 * mib, -10 * mib, 60 * mib, 2 * time.Second, true},
		"no WAL":                              {0, 0, 0, 0, 2 * time.Second, true},
	} {
		confirmed := []slotmon.LSN{5, 6}
		first := &slotmon.Slot{Active: true, ConfirmedFlushLSN: &confirmed[0], ConfirmedLagBytes: &c.lag}
		second := &slotmon.Slot{Active: true, ConfirmedFlushLSN: &confirmed[1], ConfirmedLagBytes: &c.lag}
		trend := dependable(slotmon.Trend{Over: c.over, WALRate: &c.wal, RetainedRate: &c.retained, ConfirmedRate: &c.confirmed}, first, second, now)
		if kept := trend.RetainedRate != nil && trend.ConfirmedRate != nil; kept != c.kept || trend.WALRate == nil {
			t.Errorf("%s: %+v", name, trend)
		}
		second.Active = false
		if trend := dependable(slotmon.Trend{Over: c.over, WALRate: &c.wal, RetainedRate: &c.retained, ConfirmedRate: &c.confirmed}, first, second, now); trend.RetainedRate == nil {
			t.Errorf("%s: without a reader", name)
		}
	}
}
