package metrics

import (
	"math"
	"slices"

	"github.com/cdcpub/cdcpub/internal/monitor"
	"github.com/cdcpub/cdcpub/slotmon"
)

type slotFamilies struct {
	up, active, info, walStatus            *family
	retained, lag, safe, toLost, toFull    *family
	inactive, catalogXmin, spill, failover *family
	verdict, finding                       *family
}

func newSlotFamilies(c *collector) slotFamilies {
	gauge := func(name, help string, labels ...string) *family {
		return c.gauge(name, help, append([]string{"server", "slot"}, labels...)...)
	}
	return slotFamilies{
		up: gauge("slot_up",
			"1 if the slot exists and can be read; 0 if it is missing, lost or invalidated, or was never seen. Never absent for a slot that should exist."),
		active: gauge("slot_active",
			"1 while a process holds the slot, else 0. Absent before the first sample of the server."),
		info: gauge("slot_info",
			"1. What the slot is, in labels; database and plugin are empty for a physical slot. Absent while the slot does not exist.", "plugin", "database", "type"),
		walStatus: gauge("slot_wal_status",
			"1 for the wal_status of the slot, 0 for every other one: reserved, extended, unreserved, lost; none for a slot that has reserved no WAL yet or does not exist.", "wal_status"),
		retained: gauge("slot_retained_wal_bytes",
			"WAL that the slot retains: end of WAL less restart_lsn. 0 for a slot that is lost, does not exist or has reserved none: see cdcpub_slot_up. Absent before the first sample of the server."),
		lag: gauge("slot_confirmed_lag_bytes",
			"End of WAL less confirmed_flush_lsn: what the reader has not confirmed. Negative when somebody confirmed WAL that does not exist. +Inf for a slot that is lost or missing, where PostgreSQL gives no number: it is never confirmed. Absent for physical slots."),
		safe: gauge("slot_safe_wal_size_bytes",
			"WAL that can still be written before the slot may be lost (safe_wal_size). +Inf for no limit, 0 for a slot that is lost or missing; 0 or less: lost at the next checkpoint. Absent where PostgreSQL gives no number although there is a limit."),
		toLost: gauge("slot_seconds_to_lost",
			"Time until the slot is lost, by max_slot_wal_keep_size or idle_replication_slot_timeout, at the present rate. +Inf: not at the present rate. 0: lost or missing, or at the next checkpoint. Absent when it is not known, as before the second sample."),
		toFull: gauge("slot_seconds_to_full",
			"Time until the WAL retained by the slot fills the volume of pg_wal, at the present rate. +Inf: not at the present rate, or the slot holds no WAL. Absent when it is not known: see cdcpub_volume_free_bytes."),
		inactive: gauge("slot_inactive_seconds",
			"How long nobody has held the slot: by the server's memory (PostgreSQL 17), else since the monitor first saw it so. 0 while it is held. Absent when it is not known and while the slot does not exist."),
		catalogXmin: gauge("slot_catalog_xmin_age_transactions",
			"Age of catalog_xmin, which keeps VACUUM from cleaning the system catalogs. 0 for a slot that has none or does not exist."),
		spill: c.counter("slot_spill_bytes_total",
			"Bytes that decoding wrote to disk, since transactions did not fit in logical_decoding_work_mem (pg_stat_replication_slots). Absent where PostgreSQL does not count it: physical slots, slots that do not exist.", "server", "slot"),
		failover: gauge("slot_failover_ready",
			"1 if a standby has the failover slot ready, so that it survives a promotion, else 0. Absent for slots without failover and without slot_monitor.standbys."),
		verdict: gauge("slot_verdict",
			"The judgement of the slot: 0 ok, 1 warning, 2 critical, 3 unknown (the server or the slot cannot be looked at)."),
		finding: gauge("slot_finding",
			"1 for each present reason of the verdict, by its id in the runbook. Severity is warning, critical, unknown or info. Absent when there is none.", "id", "severity"),
	}
}

func (f *slotFamilies) collect(s *scrape, server *monitor.Server, slot *monitor.Slot) {
	labels := func(more ...string) []string { return append([]string{server.Name, slot.Name}, more...) }
	state, report := slot.Slot, &slot.Report
	s.put(f.up, truth(state != nil && !state.Lost()), labels()...)
	s.put(f.verdict, verdict(report.Verdict), labels()...)
	for _, finding := range report.Findings {
		s.put(f.finding, 1, labels(string(finding.ID), severity(finding.Severity))...)
	}
	f.status(s, server, slot, labels)
	if server.Sample == nil {
		return // nothing is known of it, not even that it is missing
	}
	missing, limited := state == nil, server.Sample.Server.MaxSlotWALKeepSize >= 0
	if missing {
		state = &slotmon.Slot{Type: "logical"}
	} else {
		s.put(f.info, 1, labels(state.Plugin, state.Database, state.Type)...)
		s.put(f.inactive, inactive(state, &report.Trend), labels()...)
	}
	gone := missing || state.Lost()
	s.put(f.active, truth(state.Active), labels()...)
	s.put(f.retained, orElse(state.RetainedBytes, 0), labels()...)
	s.put(f.catalogXmin, orElse(state.CatalogXminAge, 0), labels()...)
	s.put(f.lag, lag(state, gone), labels()...)
	s.put(f.safe, safe(state, gone, limited), labels()...)
	s.put(f.toLost, toLost(state, gone, report), labels()...)
	s.put(f.toFull, toFull(state, gone, report), labels()...)
	if state.Spill != nil {
		s.put(f.spill, float64(state.Spill.Bytes), labels()...)
	}
	if state.Failover != nil && *state.Failover && len(slot.Standbys) > 0 {
		ready := slices.ContainsFunc(slot.Standbys, func(standby slotmon.Standby) bool { return standby.Ready() })
		s.put(f.failover, truth(ready), labels()...)
	}
}

// status sends the state set. Before the first sample all of it is 0.
func (f *slotFamilies) status(s *scrape, server *monitor.Server, slot *monitor.Slot, labels func(...string) []string) {
	present := ""
	switch {
	case server.Sample == nil:
	case slot.Slot == nil || slot.Slot.WALStatus == nil:
		present = "none"
		if slot.Slot != nil && slot.Slot.Lost() {
			present = "lost" // invalidated
		}
	default:
		present = *slot.Slot.WALStatus
	}
	for _, status := range []string{"reserved", "extended", "unreserved", "lost", "none"} {
		s.put(f.walStatus, truth(status == present), labels(status)...)
	}
}

// lag: nobody will ever confirm what a slot that is gone has not.
func lag(state *slotmon.Slot, gone bool) float64 {
	if state.ConfirmedLagBytes == nil && gone && state.Type != "physical" {
		return math.Inf(1)
	}
	return number(state.ConfirmedLagBytes)
}

func safe(state *slotmon.Slot, gone, limited bool) float64 {
	switch {
	case gone:
		return 0
	case state.SafeWALSize == nil && !limited:
		return math.Inf(1)
	}
	return number(state.SafeWALSize)
}

func toLost(state *slotmon.Slot, gone bool, report *slotmon.Report) float64 {
	switch {
	case gone:
		return 0
	case report.SecondsToLost != nil:
		return max(0, *report.SecondsToLost)
	case never(state, report.SecondsToLostWhy):
		return math.Inf(1)
	}
	return math.NaN()
}

func toFull(state *slotmon.Slot, gone bool, report *slotmon.Report) float64 {
	switch {
	case gone:
		return math.Inf(1)
	case report.SecondsToFull != nil:
		return max(0, *report.SecondsToFull)
	case never(state, report.SecondsToFullWhy):
		return math.Inf(1)
	}
	return math.NaN()
}

// never tells a time that is not finite from one that is not known.
func never(state *slotmon.Slot, why string) bool {
	holdsNone := state.RestartLSN == nil && state.RetainedBytes == nil
	return holdsNone || why == slotmon.NotGrowing || why == slotmon.NoLimit
}

func inactive(state *slotmon.Slot, trend *slotmon.Trend) float64 {
	switch {
	case state.Active:
		return 0
	case trend.InactiveFor == nil:
		return math.NaN()
	}
	return max(0, trend.InactiveFor.Seconds())
}

func orElse(n *int64, other float64) float64 {
	if n == nil {
		return other
	}
	return float64(*n)
}

func verdict(s slotmon.Severity) float64 {
	switch s {
	case slotmon.OK, slotmon.Info:
		return 0
	case slotmon.Warning, slotmon.Critical:
		return float64(s)
	}
	return float64(slotmon.Unknown)
}

func severity(s slotmon.Severity) string {
	if s < slotmon.OK || s > slotmon.Info {
		s = slotmon.Unknown
	}
	return s.String()
}
