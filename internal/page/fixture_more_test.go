package page

import (
	"strings"
	"time"

	"github.com/cdcpub/cdcpub/internal/monitor"
	"github.com/cdcpub/cdcpub/internal/publisher"
	"github.com/cdcpub/cdcpub/slotmon"
)

// watched are three servers with twelve slots and no publisher.
func (w *world) watched(step, last int, at time.Time) observation {
	ok := func(server string, names ...string) monitor.Server {
		s := monitor.Server{Name: server, Up: true, Sample: sample(at, -1, 640<<30)}
		for i, name := range names {
			retained := int64(w.noise(float64(int64(40+120*i)<<20), 0.12))
			s.Slots = append(s.Slots, held(name, "shop", retained, retained/9, false))
		}
		return s
	}
	orders := ok("orders-db:5432/orders", "cdcpub", "debezium_orders", "warehouse_sync", "audit_export")
	billing := ok("billing-db:5432/billing", "cdcpub_billing", "fraud_scoring", "ledger_copy", "reporting", "search_indexer")
	legacy := ok("legacy-db.eu-central-1.internal:5432/legacy_production", "cdc_legacy", "migration_2024", "standby_dr")
	dead := &billing.Slots[3]
	retained := int64(2<<30) + int64(step)*52<<20
	dead.Slot.RetainedBytes, dead.Slot.ConfirmedLagBytes, dead.Slot.Active, dead.Slot.Holder = &retained, &retained, false, nil
	dead.Report = slotmon.Report{
		Verdict: slotmon.Warning, Culprit: "nobody has connected for 1 h 3 min", SecondsToFull: new(31500.0),
		SecondsToLostWhy: "max_slot_wal_keep_size has no limit",
		Findings:         []slotmon.Finding{{ID: slotmon.RetainedWAL, Severity: slotmon.Warning, Summary: "retains 20 GiB of WAL, more than 10 GiB"}},
	}
	lost, reason := "lost", "wal_removed"
	gone := &legacy.Slots[1]
	gone.Slot = &slotmon.Slot{Name: "migration_2024", Plugin: "pgoutput", Type: "logical", Database: "legacy", WALStatus: &lost, InvalidationReason: &reason}
	gone.Report = slotmon.Report{
		Verdict: slotmon.Critical, SecondsToLost: new(0.0), SecondsToFullWhy: "a lost slot holds no WAL",
		Findings: []slotmon.Finding{{ID: slotmon.SlotLost, Severity: slotmon.Critical, Summary: "is lost (wal_removed): what it had not read is gone"}},
	}
	billing.Verdict, legacy.Verdict = slotmon.Warning, slotmon.Critical
	if step > last*5/6 {
		orders.Up, orders.Unreachable, orders.Verdict = false, "dial tcp 10.0.3.17:5432: connect: connection refused", slotmon.Unknown
		orders.Sample = sample(at.Add(-time.Duration(step-last*5/6)*Step), -1, 640<<30)
		for i := range orders.Slots {
			orders.Slots[i].Report.Verdict = slotmon.Unknown
			orders.Slots[i].Report.Findings = []slotmon.Finding{{ID: slotmon.ServerUnreachable, Severity: slotmon.Unknown, Summary: "the server cannot be asked"}}
		}
	}
	return observation{at: at, monitor: monitor.Snapshot{
		Interval: 10 * time.Second, Servers: []monitor.Server{orders, billing, legacy},
		Alerts: []slotmon.Alert{
			{
				Server: legacy.Name, Slot: "migration_2024", ID: slotmon.SlotLost, Severity: slotmon.Critical, Since: at.Add(-26 * time.Hour),
				Summary: "is lost (wal_removed): what it had not read is gone", Cause: "it retained more than max_slot_wal_keep_size",
				Cure: "if nobody needs it: cdcpub slot drop migration_2024; else make its consumer read a new snapshot from a new slot",
			},
			{
				Server: billing.Name, Slot: "reporting", ID: slotmon.RetainedWAL, Severity: slotmon.Warning, Since: at.Add(-31 * time.Minute),
				Summary: "retains 20 GiB of WAL, more than 10 GiB", Cause: "nobody has connected for 1 h 3 min", Cure: "start its consumer, or: cdcpub slot drop reporting",
			},
		},
	}}
}

// long has names that are as long as PostgreSQL and DNS allow, without a place to
// break them.
func (w *world) long(step, last int, at time.Time) observation {
	o := w.watched(0, last, at)
	name := func(i, n int) string { return strings.Repeat(string(rune('a'+i)), n) }
	for i := range o.monitor.Servers {
		server := &o.monitor.Servers[i]
		server.Name, server.Verdict = name(i, 120), slotmon.Warning
		for j := range server.Slots {
			slot := &server.Slots[j]
			slot.Name, slot.Slot.Database = name(j, 63), name(j+5, 63)
			slot.Slot.Holder = &slotmon.Holder{PID: 4194304, ApplicationName: name(j+9, 63), Address: "fe80:1111:2222:3333:4444:5555:6666:7777"}
			slot.Report.Verdict, slot.Report.Findings = slotmon.Warning, nil
			slot.Report.Culprit, slot.Report.SecondsToLostWhy = name(j, 200), name(j, 90)
		}
	}
	finding := slotmon.Finding{ID: slotmon.RetainedWAL, Severity: slotmon.Warning, Summary: name(1, 200), Cause: name(2, 200), Cure: name(3, 200)}
	o.monitor.Servers[0].Slots[0].Report.Findings = []slotmon.Finding{finding}
	o.monitor.Alerts = []slotmon.Alert{raise(name(0, 120), name(0, 63), at, finding)}
	return o
}

// starting has asked for nothing yet.
func (w *world) starting(_, _ int, at time.Time) observation {
	return observation{at: at, publisher: &publisher.Status{State: publisher.Connecting, Since: at, Role: "standby", Slot: "cdcpub"}}
}

// raise is the alert of a finding.
func raise(server, slot string, since time.Time, f slotmon.Finding) slotmon.Alert {
	return slotmon.Alert{
		Server: server, Slot: slot, ID: f.ID, Severity: f.Severity, Since: since, Summary: f.Summary, Cause: f.Cause, Cure: f.Cure,
	}
}

// lost is a slot that PostgreSQL took away in this sample: the alert about the
// time that was left is raised still, the one about the loss is not yet.
func (w *world) lost(step, last int, at time.Time) observation {
	if step < last/2 {
		return w.healthy(step, last, at)
	}
	o := w.dying(last, last, at)
	o.monitor.Interval = time.Hour // a slow browser finds the sample fresh
	slot := &o.monitor.Servers[0].Slots[0]
	if step < last {
		return o
	}
	status, lag := "lost", int64(37<<20)
	slot.Slot = &slotmon.Slot{Name: "cdcpub", Plugin: "pgoutput", Type: "logical", Database: "shop", WALStatus: &status, ConfirmedLagBytes: &lag}
	slot.Report = slotmon.Report{
		Verdict: slotmon.Critical, SecondsToLost: new(0.0), SecondsToFullWhy: "the slot is lost and holds no WAL",
		Culprit: "the slot is lost: WAL that it needed was removed, since it retained more than max_slot_wal_keep_size (60 GiB)",
		Findings: []slotmon.Finding{
			{
				ID: slotmon.PublisherBlocked, Severity: slotmon.Critical, Summary: "is not read: this publisher is blocked and waits for a human",
				Cause: "slot cdcpub is lost", Cure: "the cause says what to do; the slot keeps WAL until then",
			},
			{
				ID: slotmon.SlotLost, Severity: slotmon.Critical,
				Summary: "is lost and can never be read again: WAL that it needed was removed, since it retained more than max_slot_wal_keep_size (60 GiB)",
				Cause:   "WAL from 5E/3A9F1C48 to 6D/10000000 is gone for it (58.9 GiB)",
				Cure:    "`cdcpub slot drop cdcpub`, then `cdcpub slot create cdcpub`; rows committed from that position until the new slot exists must be published again from their table",
			},
		},
	}
	o.publisher.State, o.publisher.Role, o.publisher.Kafka = publisher.Blocked, "standby", nil
	o.publisher.Stall = &publisher.Stall{Cause: "slot cdcpub is lost", Since: at.Add(-4 * time.Second)}
	o.publisher.Ready = false
	return o
}

// noRights is watched with a role that may see slots and nothing else, and
// without a limit for slots.
func (w *world) noRights(_, _ int, at time.Time) observation {
	slot := held("cdcpub", "shop", 37<<20, 15<<20, true)
	slot.Report.SecondsToLostWhy = "max_slot_wal_keep_size is not set"
	slot.Report.SecondsToFullWhy = "the role may not see data_directory: grant it pg_monitor, or set slot_monitor.volume.free_command"
	other := held("warehouse_sync", "shop", 21<<20, 2<<20, false)
	other.Report.SecondsToLostWhy, other.Report.SecondsToFullWhy = slot.Report.SecondsToLostWhy, slot.Report.SecondsToFullWhy
	taken := sample(at, -1, 0)
	taken.Server.Volume = slotmon.Volume{Unknown: slot.Report.SecondsToFullWhy}
	taken.Unseen = []string{
		"the sizes of pg_wal and the holders of slots: GRANT pg_monitor TO cdcpub_watch",
		"transactions of other roles: GRANT pg_read_all_stats TO cdcpub_watch",
	}
	return observation{at: at, monitor: monitor.Snapshot{Interval: time.Hour, Servers: []monitor.Server{{
		Name: "orders-db.eu-central-1.internal:5432/orders", Up: true, Asked: at, Sample: taken, Slots: []monitor.Slot{slot, other},
	}}}}
}
