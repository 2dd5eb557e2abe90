package slotview

import (
	"strings"
	"time"

	"github.com/cdcpub/cdcpub/slotmon"
)

// cases are statuses as they come from a judgement.
func cases() map[string]*Status {
	return map[string]*Status{
		"healthy": healthy(), "stalled": stalled(), "dying": dying(), "lost": lost(), "missing": missing(),
		"unreachable": unreachable(), "no_rights": noRights(), "keeps_up": keepingUp(), "long_names": longNames(), "failover": failover(),
		"unknown_slot": unknownSlot(), "first_sample": firstSample(), "hostile": hostile(), "failed": Failed("", "cdcpub.yaml:3: postgres.slot: \"UPPER\" is not a slot name\ncdcpub.yaml:9: slot_monitor.limits.inactive.warning: warning (10m) is beyond critical (1m)"),
	}
}

func healthy() *Status {
	taken := sample(held())
	taken.Publication = &intact
	trend := steady(1<<20, 0, 1<<20)
	return NewStatus("db.internal:5432/shop", slotmon.Subject{
		Name: "cdcpub", Sample: taken, Trend: trend, Expected: expected,
		Publisher: &slotmon.Publisher{Address: "http://127.0.0.1:9477", State: "streaming", Role: "active", Slot: "cdcpub"},
	}, slotmon.Report{
		Verdict: slotmon.OK, Trend: trend, SecondsToLost: nil, SecondsToLostWhy: "retained WAL does not grow", SecondsToFullWhy: "retained WAL does not grow",
	}, slotmon.DefaultLimits())
}

func stalled() *Status {
	slot := held()
	slot.WALStatus, slot.SafeWALSize = pointer("extended"), pointer[int64](8<<30)
	slot.RetainedBytes, slot.ConfirmedLagBytes = pointer[int64](12<<30), pointer[int64](11<<30)
	slot.RestartLSN, slot.ConfirmedFlushLSN = pointer(slotmon.LSN(0x2_3500_0000-12<<30+0x3_0000_0000)), pointer(slotmon.LSN(0x2_3500_0000-11<<30+0x3_0000_0000))
	slot.Spill = &slotmon.Spill{Transactions: 12, Bytes: 3 << 30, TotalBytes: 80 << 30}
	taken := sample(slot)
	taken.Server.WAL = 0x2_3500_0000 + 0x3_0000_0000
	taken.Publication = &intact
	taken.Transactions = []slotmon.Transaction{
		{PID: 812, Database: "shop", Began: noon.Add(-3 * time.Hour), State: "idle in transaction", ApplicationName: "report"},
		{PID: 977, Database: "shop", Began: noon.Add(-time.Hour), QueryStarted: before(59 * time.Minute), State: "idle in transaction", ApplicationName: "billing", Writes: true},
	}
	trend := steady(3<<20, 3<<20, 0)
	return NewStatus("db.internal:5432/shop", slotmon.Subject{
		Name: "cdcpub", Sample: taken, Trend: trend, Expected: expected,
		Publisher: &slotmon.Publisher{
			Address: "http://10.0.0.7:9477", State: "streaming", Role: "active", Slot: "cdcpub",
			Stall: "topic outbox.event.order partition 3: no answer from broker kafka-2:9092", StallSince: noon.Add(-61 * time.Minute),
		},
	}, slotmon.Report{
		Verdict: slotmon.Warning, Trend: trend, SecondsToLost: pointer(2796.0), SecondsToFull: pointer(27307.0),
		Findings: []slotmon.Finding{
			{
				ID: slotmon.TimeToLost, Severity: slotmon.Warning, Summary: "the slot is lost in 46m 36s at the present rate, less than 6h",
				Cause: "max_slot_wal_keep_size is 20 GiB and WAL grows by 3.0 MiB/s",
				Cure:  "remove the cause below; until then: ALTER SYSTEM SET max_slot_wal_keep_size = '40GB'; SELECT pg_reload_conf()",
			},
			{ID: slotmon.RetainedWAL, Severity: slotmon.Warning, Summary: "retains 12 GiB of WAL, more than 10 GiB", Cure: "see publisher_stalled"},
			{
				ID: slotmon.PublisherStalled, Severity: slotmon.Warning, Summary: "the publisher has been stalled for 1h 1m, more than 1m",
				Cause: "topic outbox.event.order partition 3: no answer from broker kafka-2:9092", Cure: "look at the brokers; nothing is lost while the slot keeps its WAL",
			},
			{ID: slotmon.LongTransaction, Severity: slotmon.Info, Summary: "PID 977 has been in a transaction for 1h 0m, longer than 5m", Cure: "SELECT pg_terminate_backend(977)"},
		},
		Culprit: "the publisher waits for topic outbox.event.order partition 3 since 2026-03-14 10:59:00 UTC",
	}, slotmon.DefaultLimits())
}

// keepingUp is a slot whose reader reported nothing between two samples.
func keepingUp() *Status {
	slot := held()
	slot.ConfirmedLagBytes = pointer[int64](20 << 20)
	taken := sample(slot)
	trend := slotmon.Trend{Over: 2 * time.Second, WALRate: pointer(3e6)}
	const why = "the growth of retained WAL needs a second sample"
	return NewStatus("db.internal:5432/shop", slotmon.Subject{Name: "cdcpub", Sample: taken, Trend: trend}, slotmon.Report{
		Verdict: slotmon.OK, Trend: trend, SecondsToLostWhy: why, SecondsToFullWhy: why,
	}, slotmon.DefaultLimits())
}

func dying() *Status {
	slot := held()
	slot.Active, slot.Holder, slot.Failover, slot.Synced = false, nil, nil, nil
	slot.WALStatus, slot.SafeWALSize = pointer("unreserved"), pointer[int64](-7_346_848)
	slot.RetainedBytes, slot.ConfirmedLagBytes = pointer[int64](20<<30), pointer[int64](20<<30)
	taken := sample(slot)
	taken.Server.Version, taken.Server.VersionNum = "15.18", 150018
	taken.Publication = &intact
	trend := steady(3<<20, 3<<20, 0)
	trend.InactiveFor = pointer(2 * time.Second)
	return NewStatus("db.internal:5432/shop", slotmon.Subject{
		Name: "cdcpub", Sample: taken, Trend: trend, Expected: expected,
		Publisher: &slotmon.Publisher{Address: "http://127.0.0.1:9477", Unanswered: "connection refused"},
	}, slotmon.Report{
		Verdict: slotmon.Critical, Trend: trend, SecondsToLost: pointer(0.0), SecondsToFull: pointer(27307.0),
		Findings: []slotmon.Finding{{
			ID: slotmon.SlotUnreserved, Severity: slotmon.Critical, Summary: "is past max_slot_wal_keep_size by 7.0 MiB and lost at the next checkpoint",
			Cause: "nobody holds the slot", Cure: "start the publisher now: `cdcpub run`",
		}, {
			ID: slotmon.RetainedWAL, Severity: slotmon.Warning, Summary: "retains 20 GiB of WAL, more than 10 GiB",
			Cause: "nobody holds the slot", Cure: "start the publisher now: `cdcpub run`",
		}},
		Culprit: "nobody holds the slot",
	}, slotmon.DefaultLimits())
}

func lost() *Status {
	slot := held()
	slot.Active, slot.Holder = false, nil
	slot.WALStatus, slot.SafeWALSize, slot.RestartLSN, slot.RetainedBytes = pointer("lost"), nil, nil, nil
	slot.InvalidationReason, slot.InactiveSince, slot.CatalogXminAge = pointer("wal_removed"), before(13*time.Hour), nil
	taken := sample(slot)
	taken.Publication = &slotmon.Publication{Name: "cdcpub", Exists: true, Tables: 1, Inserts: true, Missing: []string{"public.outbox", "billing.outbox"}, Unlogged: []string{"audit.outbox"}}
	trend := slotmon.Trend{Over: 2 * time.Second, WALRate: pointer(0.0), InactiveFor: pointer(13 * time.Hour)}
	return NewStatus("db.internal:5432/shop", slotmon.Subject{Name: "cdcpub", Sample: taken, Trend: trend, Expected: expected}, slotmon.Report{
		Verdict: slotmon.Critical, Trend: trend, SecondsToLost: pointer(0.0), SecondsToFullWhy: "the slot is lost and retains nothing",
		Findings: []slotmon.Finding{{
			ID: slotmon.SlotLost, Severity: slotmon.Critical, Summary: "is lost (wal_removed): it can never be read again",
			Cause: "more WAL was written than max_slot_wal_keep_size (20 GiB) while nobody read it",
			Cure:  "cdcpub slot drop cdcpub, then cdcpub init; rows that were committed in between are in the outbox table and not in Kafka",
		}},
	}, slotmon.DefaultLimits())
}

func missing() *Status {
	taken := sample()
	taken.Publication = &slotmon.Publication{Name: "cdcpub"}
	return NewStatus("db.internal:5432/shop", slotmon.Subject{Name: "cdcpub", Sample: taken, Expected: expected}, slotmon.Report{
		Verdict:  slotmon.Critical,
		Findings: []slotmon.Finding{{ID: slotmon.SlotMissing, Severity: slotmon.Critical, Summary: "does not exist"}},
	}, slotmon.DefaultLimits())
}

func unknownSlot() *Status {
	taken := sample()
	for _, name := range []string{"billing", "orders_cdc", "orders_cdc_2", "debezium", "orders"} {
		slot := held()
		slot.Name = name
		taken.Slots = append(taken.Slots, slot)
	}
	return NewStatus("db.internal:5432/shop", slotmon.Subject{Name: "order_cdc", Sample: taken}, slotmon.Report{
		Verdict:  slotmon.Unknown,
		Findings: []slotmon.Finding{{ID: slotmon.SlotMissing, Severity: slotmon.Unknown, Summary: "does not exist on this server", Cure: "`cdcpub slot list` shows the slots that do"}},
	}, slotmon.DefaultLimits())
}

func unreachable() *Status {
	return NewStatus("db.internal:5432/shop", slotmon.Subject{
		Name: "cdcpub", Unreachable: "connection refused", Expected: expected,
		Publisher: &slotmon.Publisher{Address: "http://127.0.0.1:9477", State: "connecting", Role: "standby", Slot: "cdcpub", Stall: "PostgreSQL at db.internal:5432 cannot be reached: connection refused", StallSince: noon.Add(-time.Minute)},
	}, slotmon.Report{
		Verdict:          slotmon.Unknown,
		Findings:         []slotmon.Finding{{ID: slotmon.ServerUnreachable, Severity: slotmon.Unknown, Summary: "the server cannot be asked: connection refused", Cure: "psql 'host=db.internal dbname=shop'"}},
		SecondsToLostWhy: "the server cannot be asked", SecondsToFullWhy: "the server cannot be asked",
	}, slotmon.DefaultLimits())
}

func noRights() *Status {
	s := healthy()
	slot := *s.Slot
	slot.Holder = &slotmon.Holder{PID: 4711, User: "cdcpub", ApplicationName: "cdcpub"}
	server := *s.Server
	server.WALDirectoryBytes, server.Volume = nil, slotmon.Volume{Unknown: "the server is not on this machine, and slot_monitor.volume has neither a size nor a free_command"}
	s.Slot, s.Server, s.Publisher = &slot, &server, nil
	s.Unseen = []string{
		`who holds the slot, and the transactions of others: GRANT pg_monitor TO "watcher"`,
		`the size of pg_wal: GRANT pg_monitor TO "watcher"`,
	}
	return s
}

func longNames() *Status {
	s := stalled()
	slot := *s.Slot
	name := strings.Repeat("a", 63)
	slot.Name, slot.Database, slot.Plugin = name, strings.Repeat("b", 63), strings.Repeat("c", 63)
	slot.Holder = &slotmon.Holder{PID: 4194304, User: strings.Repeat("d", 63), ApplicationName: strings.Repeat("e", 63), Address: "2001:db8:1111:2222:3333:4444:5555:6666", Since: before(time.Hour), State: "catchup"}
	s.Name, s.ServerName, s.Slot = name, strings.Repeat("f", 63)+":5432/"+strings.Repeat("b", 63), &slot
	return s
}

func failover() *Status {
	s := healthy()
	slot := *s.Slot
	slot.Failover = pointer(true)
	synced := slot
	synced.Synced = pointer(true)
	early := synced
	early.Temporary = true
	s.Slot = &slot
	s.Standbys = []slotmon.Standby{
		{Address: "db-2.internal:5432/shop", Slot: &synced},
		{Address: "db-3.internal:5432/shop", Slot: &early},
		{Address: "db-4.internal:5432/shop"},
		{Address: "db-5.internal:5432/shop", Unreachable: "no answer within 5s"},
	}
	return s
}

// firstSample is of PostgreSQL 13, one sample, with a slot that nobody has
// used and no limit.
func firstSample() *Status {
	taken := sample(slotmon.Slot{Name: "standby_1", Type: "physical", RetainedBytes: pointer[int64](0), RestartLSN: pointer(slotmon.LSN(0x2_3500_0000)), WALStatus: pointer("reserved")})
	taken.Server.Version, taken.Server.VersionNum, taken.Server.MaxSlotWALKeepSize, taken.Server.InRecovery = "13.23", 130023, -1, true
	return NewStatus("127.0.0.1:5432/postgres", slotmon.Subject{Name: "standby_1", Sample: taken}, slotmon.Report{
		Verdict: slotmon.OK, SecondsToLostWhy: "max_slot_wal_keep_size is -1", SecondsToFullWhy: "only one sample",
	}, slotmon.DefaultLimits())
}

// hostile has names that somebody chose to disturb a terminal or a plugin.
func hostile() *Status {
	s := healthy()
	slot := *s.Slot
	holder := *slot.Holder
	holder.ApplicationName = "x | retained=0B\x1b[2J\nOK"
	slot.Holder, slot.Database = &holder, "shop\x1b]0;title\a\xff'=|"
	s.Slot = &slot
	return s
}
