package main

import (
	"reflect"
	"testing"

	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/slotmon"
)

func loadSlots(t *testing.T, text string) *config.Config {
	t.Helper()
	loaded, err := config.LoadFor(file(t, text), nil, config.NeedSlots)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func TestDefaultLimitsAreThoseOfSlotmon(t *testing.T) {
	loaded := loadSlots(t, smallest)
	if got, want := limitsOf(&loaded.SlotMonitor, "any"), slotmon.DefaultLimits(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Every limit of the configuration arrives, and in its own place.
func TestEveryLimitCounts(t *testing.T) {
	loaded := loadSlots(t, smallest+`
slot_monitor:
  raise_after: 7s
  resolve_after: 9s
  volume: {size: 3GiB}
  slots:
    cdcpub:
      retained_wal: {warning: 1, critical: 2}
      retained_wal_share: {warning: 3%, critical: 4%}
      time_to_lost: {warning: 6ns, critical: 5ns}
      time_to_full: {warning: 8ns, critical: 7ns}
      inactive: {warning: 9ns, critical: 10ns}
      confirmed_lag: {warning: 11ns, critical: 12ns}
      catalog_xmin_age: {warning: 13, critical: 14}
      failover_not_ready: {warning: 15ns, critical: 16ns}
      stalled: {warning: 17ns, critical: 18ns}
      long_transaction: 19ns
`)
	want := slotmon.Limits{
		RetainedWAL: slotmon.Bytes{Warning: 1, Critical: 2}, RetainedShare: slotmon.Ratio{Warning: 0.03, Critical: 0.04},
		TimeToLost: slotmon.Duration{Warning: 6, Critical: 5}, TimeToFull: slotmon.Duration{Warning: 8, Critical: 7},
		Inactive: slotmon.Duration{Warning: 9, Critical: 10}, ConfirmedLag: slotmon.Duration{Warning: 11, Critical: 12},
		CatalogXminAge: slotmon.Count{Warning: 13, Critical: 14}, NotReady: slotmon.Duration{Warning: 15, Critical: 16},
		Stalled: slotmon.Duration{Warning: 17, Critical: 18}, LongTransaction: 19,
	}
	for i := range reflect.TypeFor[slotmon.Limits]().NumField() {
		if reflect.ValueOf(want).Field(i).IsZero() {
			t.Errorf("%s is not tried", reflect.TypeFor[slotmon.Limits]().Field(i).Name)
		}
	}
	if got := limitsOf(&loaded.SlotMonitor, "cdcpub"); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := limitsOf(&loaded.SlotMonitor, "other"); got != slotmon.DefaultLimits() {
		t.Errorf("%+v", got)
	}
	if got, want := timingOf(&loaded.SlotMonitor), (slotmon.Timing{RaiseAfter: 7e9, ResolveAfter: 9e9}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := volumeOf(&loaded.SlotMonitor); got.SizeBytes != 3<<30 || got.Timeout == 0 {
		t.Errorf("%+v", got)
	}
}

func TestExpectedIsTheConfiguredSlot(t *testing.T) {
	got := expectedOf(loadSlots(t, smallest), "shop")
	if got == nil || got.Database != "shop" || got.Publication != "cdcpub" || len(got.Tables) != 1 || got.Tables[0].String() != "public.outbox" || len(got.Columns) < 4 {
		t.Errorf("%+v", got)
	}
	if got := expectedOf(loadSlots(t, "postgres: {url: 'postgres://localhost/x'}\n"), "x"); got != nil {
		t.Errorf("%+v", got)
	}
}

// What is configured for a server does not count for another one.
func TestURLOfAnotherServerLeavesOutWhatBelongsToTheConfiguredOne(t *testing.T) {
	config := file(t, `postgres: {url: 'postgres://cdcpub@127.0.0.1:5/shop', slot: cdcpub, password_file: /nowhere}
slot_monitor: {volume: {size: 3GiB}, standbys: ['postgres://127.0.0.1:7/shop']}
`)
	for url, same := range map[string]bool{"postgres://admin:horse@127.0.0.1:5/postgres": true, "postgres://cdcpub@127.0.0.1:6/shop": false} {
		server, err := slotFlags{configFile: configFile{&config}, URL: url}.server(&process{})
		if err != nil {
			t.Fatal(err)
		}
		m := server.config.SlotMonitor
		if (m.Volume.Size != 0) != same || (len(m.Standbys) != 0) != same || (server.config.HTTP.Advertise != "") != same {
			t.Errorf("%s: %+v, advertise %q", url, m.Volume, server.config.HTTP.Advertise)
		}
		if server.config.Postgres.Slot != "cdcpub" || string(server.config.Postgres.URL) != url || server.config.Postgres.PasswordFile != "" {
			t.Errorf("%s: %+v", url, server.config.Postgres)
		}
	}
}
