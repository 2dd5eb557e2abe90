package page

import (
	"strings"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/internal/monitor"
	"github.com/cdcpub/cdcpub/internal/publisher"
	"github.com/cdcpub/cdcpub/slotmon"
)

func TestTheVerdictIsTheWorstOfEverything(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*observation)
		verdict  slotmon.Severity
		headline string
	}{
		"all is well":          {func(*observation) {}, slotmon.OK, "streaming from slot cdcpub"},
		"no server":            {func(o *observation) { o.monitor.Servers = nil }, slotmon.Unknown, "no server has been sampled yet"},
		"never sampled":        {func(o *observation) { o.monitor.Servers[0] = monitor.Server{Name: "db1"} }, slotmon.Unknown, "db1: no sample has been taken yet"},
		"unreachable":          {unreachable, slotmon.Unknown, "db1.internal:5432/shop cannot be looked at: connection refused"},
		"the monitor stands":   {func(o *observation) { o.at = o.at.Add(31 * time.Second) }, slotmon.Unknown, "db1.internal:5432/shop: the last sample is old"},
		"slow monitor":         {func(o *observation) { o.at, o.monitor.Interval = o.at.Add(2*time.Minute), time.Minute }, slotmon.OK, "streaming"},
		"finding":              {finding(slotmon.Warning), slotmon.Warning, "slot cdcpub retains much"},
		"alert that is gone":   {alert(slotmon.Critical), slotmon.OK, "streaming from slot cdcpub"},
		"blocked":              {func(o *observation) { blocked(o) }, slotmon.Critical, "slot is gone"},
		"not ready":            {func(o *observation) { o.publisher.Ready = false }, slotmon.Warning, "the publisher is streaming and not ready"},
		"short stall":          {stall, slotmon.OK, "topic x: NOT_LEADER"},
		"standby":              {func(o *observation) { stall(o); o.publisher.State = publisher.Standby }, slotmon.OK, "standing by: another process holds slot cdcpub"},
		"server alert":         {serverAlert, slotmon.Critical, "db1.internal:5432/shop cannot be looked at: connection refused"},
		"unknown and critical": {func(o *observation) { unreachable(o); alert(slotmon.Critical)(o) }, slotmon.Critical, "when last seen, slot cdcpub will be lost"},
		"unknown and warning":  {func(o *observation) { unreachable(o); alert(slotmon.Warning)(o) }, slotmon.Unknown, "db1.internal:5432/shop cannot be looked at: connection refused"},
		"watch":                {func(o *observation) { o.publisher = nil }, slotmon.OK, "1 slot on 1 server"},
	} {
		o := newWorld().healthy(0, 1, noon)
		c.change(&o)
		if got := verdict(&o); got != c.verdict {
			t.Errorf("%s: %s, want %s", name, got, c.verdict)
		}
		if got := headline(&o); !strings.HasPrefix(got, c.headline) {
			t.Errorf("%s: %q, want %q", name, got, c.headline)
		}
	}
}

func unreachable(o *observation) {
	o.monitor.Servers[0].Up, o.monitor.Servers[0].Unreachable = false, "connection refused"
}

func finding(severity slotmon.Severity) func(*observation) {
	return func(o *observation) {
		o.monitor.Servers[0].Verdict = severity
		o.monitor.Servers[0].Slots[0].Report = slotmon.Report{
			Verdict: severity, Findings: []slotmon.Finding{{ID: slotmon.RetainedWAL, Severity: severity, Summary: "retains much"}},
		}
	}
}

func alert(severity slotmon.Severity) func(*observation) {
	return func(o *observation) {
		o.monitor.Alerts = []slotmon.Alert{{Server: "db1.internal:5432/shop", Slot: "cdcpub", ID: slotmon.TimeToLost, Severity: severity, Summary: "will be lost"}}
	}
}

func serverAlert(o *observation) {
	unreachable(o)
	o.monitor.Alerts = []slotmon.Alert{{
		Server: "db1.internal:5432/shop", ID: slotmon.ServerUnreachable, Severity: slotmon.Critical, Summary: "cannot be looked at: connection refused",
	}}
}

func blocked(o *observation) {
	o.publisher.State, o.publisher.Ready = publisher.Blocked, false
	o.publisher.Stall = &publisher.Stall{Cause: "slot is gone"}
}

func stall(o *observation) {
	o.publisher.Stall = &publisher.Stall{Cause: "topic x: NOT_LEADER", Since: o.at}
}

func TestSlotsAreRankedWorstFirst(t *testing.T) {
	o := newWorld().watched(0, 359, noon)
	o.monitor.Servers[0].Slots[2].Ours = true
	var got []string
	for _, r := range rank(&o) {
		got = append(got, r.slot.Name)
	}
	want := "migration_2024 reporting warehouse_sync" // critical, warning, ours; then by size
	if text := strings.Join(got, " "); len(got) != 12 || !strings.HasPrefix(text, want) {
		t.Errorf("%s, want %s ...", text, want)
	}
	for i := 4; i < len(got); i++ {
		if all := rank(&o); all[i].retained() > all[i-1].retained() {
			t.Errorf("%s stands after %s", got[i], got[i-1])
		}
	}
}
