package config_test

import (
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/slotmon"
)

func TestDefaultLimitsAreThoseOfSlotmon(t *testing.T) {
	l := config.Default().SlotMonitor.Limits
	bytes := func(l config.Limit[config.Size]) slotmon.Bytes {
		return slotmon.Bytes{Warning: int64(l.Warning), Critical: int64(l.Critical)}
	}
	duration := func(l config.Limit[config.Duration]) slotmon.Duration {
		return slotmon.Duration{Warning: time.Duration(l.Warning), Critical: time.Duration(l.Critical)}
	}
	got := slotmon.Limits{
		RetainedWAL: bytes(l.RetainedWAL),
		RetainedShare: slotmon.Ratio{
			Warning: float64(l.RetainedWALShare.Warning), Critical: float64(l.RetainedWALShare.Critical)},
		TimeToLost:   duration(l.TimeToLost),
		TimeToFull:   duration(l.TimeToFull),
		Inactive:     duration(l.Inactive),
		ConfirmedLag: duration(l.ConfirmedLag),
		CatalogXminAge: slotmon.Count{
			Warning: int64(l.CatalogXminAge.Warning), Critical: int64(l.CatalogXminAge.Critical)},
		NotReady:        duration(l.FailoverNotReady),
		Stalled:         duration(l.Stalled),
		LongTransaction: time.Duration(l.LongTransaction),
	}
	if want := slotmon.DefaultLimits(); got != want {
		t.Errorf("defaults are\n%+v, those of slotmon\n%+v", got, want)
	}
}
