package config

import (
	"bytes"
	"fmt"
)

// SlotMonitor configures the monitor of slots: what is sampled, what counts as
// too much, and who is told. `cdcpub run` watches its own slot by it, `cdcpub
// slot watch` every slot of all Servers, and `cdcpub slot status` judges by it.
type SlotMonitor struct {
	// Interval is the time between two samples of a server, default 10s, from
	// 1s to 1h.
	Interval Duration `yaml:"interval"`
	// Timeout is how long one sample may take, connection included, default 5s,
	// from 100ms to 5m. Then the server counts as unreachable.
	Timeout Duration `yaml:"timeout"`
	// Servers are connection strings of further servers that `cdcpub slot
	// watch` samples besides Postgres.URL; none by default. What they leave out
	// comes from where Postgres.URL has it, but for Postgres.PasswordFile. See
	// ConnString.ConnConfig.
	Servers []ConnString `yaml:"servers"`
	// Standbys are connection strings of the standbys of Postgres.URL that must
	// have the failover slot synchronized (PostgreSQL 17); none by default.
	// Postgres.PasswordFile counts for them too, since roles and passwords are
	// the primary's. See Postgres.StandbyConnConfig.
	Standbys []ConnString `yaml:"standbys"`
	// Volume is about the file system of pg_wal of Postgres.URL, where the
	// monitor cannot look by itself.
	Volume Volume `yaml:"volume"`
	// RaiseAfter is how long a finding must last before its alert is raised,
	// default 30s, up to 24h. What is critical at once, a lost slot for
	// instance, does not wait.
	RaiseAfter Duration `yaml:"raise_after"`
	// ResolveAfter is how long the finding must be gone before its alert is
	// resolved, default 1m, up to 24h.
	ResolveAfter Duration `yaml:"resolve_after"`
	// Limits are the thresholds of every slot that Slots does not name.
	Limits MonitorLimits `yaml:"limits"`
	// Slots are the limits of single slots, by slot name, on whichever server;
	// none by default. What a slot does not state is that of Limits. The
	// environment cannot state them.
	Slots map[string]MonitorLimits `yaml:"slots"`
	// Webhook gets alerts as JSON.
	Webhook Webhook `yaml:"webhook"`
	// Alertmanager gets alerts by the API of Prometheus Alertmanager.
	Alertmanager Alertmanager `yaml:"alertmanager"`
}

// LimitsOf returns the limits of a slot: those of Slots where it is named, else
// Limits.
func (m SlotMonitor) LimitsOf(slot string) MonitorLimits {
	if own, named := m.Slots[slot]; named {
		return own
	}
	return m.Limits
}

// Volume is the file system that holds pg_wal. Where the server is local it is
// asked itself and neither field is needed; without any, the time until it is
// full is unknown.
type Volume struct {
	// Size is its whole size, default 0: not stated.
	Size Size `yaml:"size"`
	// FreeCommand is a command with its arguments that prints the number of
	// free bytes, and nothing else; none by default. No shell is involved.
	FreeCommand []string `yaml:"free_command"`
}

// MonitorLimits are the thresholds of a slot. 0 turns a threshold off.
type MonitorLimits struct {
	// RetainedWAL is how much WAL the slot keeps from removal, default 10GiB
	// and 50GiB.
	RetainedWAL Limit[Size] `yaml:"retained_wal"`
	// RetainedWALShare is the same as a share of max_slot_wal_keep_size, where
	// that is set, default 75% and 90%.
	RetainedWALShare Limit[Ratio] `yaml:"retained_wal_share"`
	// TimeToLost is the time until the slot is lost at the present rate of
	// writes, default 6h and 1h. It counts down.
	TimeToLost Limit[Duration] `yaml:"time_to_lost"`
	// TimeToFull is the time until the volume is full at the present rate of
	// writes, default 6h and 1h. It counts down.
	TimeToFull Limit[Duration] `yaml:"time_to_full"`
	// Inactive is how long nobody has held the slot, default 2m and 10m.
	Inactive Limit[Duration] `yaml:"inactive"`
	// ConfirmedLag is how long the confirmed lag has not fallen while WAL was
	// written, default 5m and 30m.
	ConfirmedLag Limit[Duration] `yaml:"confirmed_lag"`
	// CatalogXminAge is age(catalog_xmin) in transactions, default 50000000 and
	// 200000000. VACUUM cannot clean the catalogs behind it.
	CatalogXminAge Limit[Count] `yaml:"catalog_xmin_age"`
	// FailoverNotReady is how long one of SlotMonitor.Standbys has not had the
	// failover slot ready, default 5m and never.
	FailoverNotReady Limit[Duration] `yaml:"failover_not_ready"`
	// Stalled is how long the publisher has published nothing of what waits,
	// default 1m and 10m.
	Stalled Limit[Duration] `yaml:"stalled"`
	// LongTransaction is the age from which an open transaction that keeps WAL
	// from removal is named, default 5m. That is information, not an alert.
	LongTransaction Duration `yaml:"long_transaction"`
}

// Limit is a pair of thresholds for one quantity. They need not both be set; if
// they are, warning comes first.
type Limit[T Size | Ratio | Count | Duration] struct {
	Warning  T `yaml:"warning"`
	Critical T `yaml:"critical"`
}

// Webhook configures the generic alert sink.
type Webhook struct {
	// URL is where alerts are posted to, http or https; none by default. It is
	// a secret, since many services have a token in it.
	URL SecretURL `yaml:"url"`
	// SecretFile is a file with the key that signs each delivery (HMAC-SHA256),
	// read again each time; none by default.
	SecretFile string `yaml:"secret_file"`
}

// CheckSecret tells whether SecretFile, if there is one, has a key. Errors begin
// with the field and do not show it.
func (w Webhook) CheckSecret() error {
	if w.SecretFile == "" {
		return nil
	}
	const path = "slot_monitor.webhook.secret_file"
	key, err := readFile(w.SecretFile)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(bytes.TrimRight(key, "\r\n")) == 0 {
		return fmt.Errorf("%s: %s is empty; write the key into it, or remove the setting", path, w.SecretFile)
	}
	return nil
}

// Alertmanager configures the alert sink for Prometheus Alertmanager.
type Alertmanager struct {
	// URLs are the base URLs, http or https, of all members of the cluster;
	// none by default. Each gets every alert, as Alertmanager wants it. A user
	// and password in one are used for basic authentication.
	URLs []SecretURL `yaml:"urls"`
}
