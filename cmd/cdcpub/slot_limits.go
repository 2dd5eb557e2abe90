package main

import (
	"time"

	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/slotmon"
)

// limitsOf returns the thresholds of a slot.
func limitsOf(m *config.SlotMonitor, slot string) slotmon.Limits {
	l := m.LimitsOf(slot)
	return slotmon.Limits{
		RetainedWAL:     slotmon.Bytes{Warning: int64(l.RetainedWAL.Warning), Critical: int64(l.RetainedWAL.Critical)},
		RetainedShare:   slotmon.Ratio{Warning: float64(l.RetainedWALShare.Warning), Critical: float64(l.RetainedWALShare.Critical)},
		TimeToLost:      durations(l.TimeToLost),
		TimeToFull:      durations(l.TimeToFull),
		Inactive:        durations(l.Inactive),
		ConfirmedLag:    durations(l.ConfirmedLag),
		CatalogXminAge:  slotmon.Count{Warning: int64(l.CatalogXminAge.Warning), Critical: int64(l.CatalogXminAge.Critical)},
		NotReady:        durations(l.FailoverNotReady),
		Stalled:         durations(l.Stalled),
		LongTransaction: time.Duration(l.LongTransaction),
	}
}

func durations(l config.Limit[config.Duration]) slotmon.Duration {
	return slotmon.Duration{Warning: time.Duration(l.Warning), Critical: time.Duration(l.Critical)}
}

// timingOf returns how long findings must last, and be gone, for alerts.
func timingOf(m *config.SlotMonitor) slotmon.Timing {
	return slotmon.Timing{RaiseAfter: time.Duration(m.RaiseAfter), ResolveAfter: time.Duration(m.ResolveAfter)}
}

// volumeOf returns how the volume of pg_wal is measured.
func volumeOf(m *config.SlotMonitor) slotmon.VolumeSource {
	return slotmon.VolumeSource{SizeBytes: int64(m.Volume.Size), FreeCommand: m.Volume.FreeCommand, Timeout: time.Duration(m.Timeout)}
}

// expectedOf returns what the configured slot must be on a server whose
// connections are to database; nil if no slot is configured. Its publication is
// empty if none is.
func expectedOf(c *config.Config, database string) *slotmon.Expected {
	if c.Postgres.Slot == "" {
		return nil
	}
	expected := &slotmon.Expected{Database: database, Publication: c.Postgres.Publication, Columns: requiredColumns(c)}
	for _, table := range c.Outbox.Tables {
		expected.Tables = append(expected.Tables, slotmon.Table{Schema: table.Schema, Name: table.Name})
	}
	return expected
}
