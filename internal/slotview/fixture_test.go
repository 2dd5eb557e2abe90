package slotview

import (
	"time"

	"github.com/cdcpub/cdcpub/slotmon"
)

// noon is the server's clock and ours in every fixture.
var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

func pointer[T any](v T) *T { return &v }

func before(d time.Duration) *time.Time { return pointer(noon.Add(-d)) }

// held is a healthy slot with a cdcpub that streams from it.
func held() slotmon.Slot {
	return slotmon.Slot{
		Name: "cdcpub", Plugin: "pgoutput", Type: "logical", Database: "shop", Active: true,
		RestartLSN: pointer(slotmon.LSN(0x2_3400_0000)), ConfirmedFlushLSN: pointer(slotmon.LSN(0x2_34F0_0000)),
		WALStatus: pointer("reserved"), SafeWALSize: pointer[int64](19 << 30), CatalogXminAge: pointer[int64](1234),
		RetainedBytes: pointer[int64](16 << 20), ConfirmedLagBytes: pointer[int64](1 << 20),
		Failover: pointer(false), Synced: pointer(false),
		Holder: &slotmon.Holder{
			PID: 4711, User: "cdcpub", ApplicationName: "cdcpub", Address: "10.0.0.7", Since: before(26 * time.Hour), State: "streaming",
			SentLSN: pointer(slotmon.LSN(0x2_3500_0000)), FlushLSN: pointer(slotmon.LSN(0x2_34F0_0000)), ReplyTime: before(3 * time.Second),
		},
		Spill: &slotmon.Spill{TotalBytes: 80 << 30},
	}
}

// sample is a server with the slots.
func sample(slots ...slotmon.Slot) *slotmon.Sample {
	return &slotmon.Sample{
		Taken: noon, Slots: slots,
		Server: slotmon.Server{
			SystemID: "7563412109876543210", Version: "17.10", VersionNum: 170010, Database: "shop",
			WAL: 0x2_3500_0000, Now: noon, Started: noon.Add(-30 * 24 * time.Hour), MaxSlotWALKeepSize: 20 << 30,
			MaxSlots: 10, MaxWALSenders: 10, AutovacuumFreeze: 200_000_000, WALDirectoryBytes: pointer[int64](1 << 30),
			Volume: slotmon.Volume{FreeBytes: pointer[int64](80 << 30), SizeBytes: pointer[int64](200 << 30), Source: "statfs /var/lib/postgresql/17/main/pg_wal"},
		},
	}
}

func steady(wal, retained, confirmed float64) slotmon.Trend {
	return slotmon.Trend{Over: 2 * time.Second, WALRate: &wal, RetainedRate: &retained, ConfirmedRate: &confirmed}
}

var intact = slotmon.Publication{Name: "cdcpub", Exists: true, Tables: 1, Inserts: true, Fingerprint: "16400/731"}

var expected = &slotmon.Expected{Database: "shop", Publication: "cdcpub", Tables: []slotmon.Table{{Schema: "public", Name: "outbox"}}}
