package slotmon

import (
	"time"

	"github.com/jackc/pglogrepl"
)

// LSN is a pglogrepl.LSN that JSON has as text, 0/16B3748.
type LSN pglogrepl.LSN

// String implements fmt.Stringer.
func (l LSN) String() string { return pglogrepl.LSN(l).String() }

// MarshalText implements encoding.TextMarshaler.
func (l LSN) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *LSN) UnmarshalText(text []byte) error {
	parsed, err := pglogrepl.ParseLSN(string(text))
	*l = LSN(parsed)
	return err
}

// Sample is what one server said about its slots at one moment. What the
// server's version does not have, what is NULL and what the role may not see is
// nil: the absence of a number is a state of its own and never zero. A Sample
// is not written to after it was read.
type Sample struct {
	// Taken is when the sample was complete, by our clock.
	Taken  time.Time `json:"taken"`
	Server Server    `json:"server"`
	// Slots are all slots of the cluster, by name.
	Slots []Slot `json:"slots"`
	// Transactions are the oldest open ones that have a transaction id or a
	// snapshot, and all prepared ones, oldest first, 20 at most.
	Transactions []Transaction `json:"transactions"`
	// Publication is what the catalogs say about the publication that was asked
	// for; nil if none was, or the connection is to another database than the
	// slot's.
	Publication *Publication `json:"publication,omitempty"`
	// Unseen names what the role may not see, each with the GRANT that is
	// missing.
	Unseen []string `json:"unseen,omitempty"`
}

// Server is the cluster.
type Server struct {
	SystemID   string `json:"system_id"`
	Version    string `json:"version"`     // "17.9"
	VersionNum int    `json:"version_num"` // 170009
	Database   string `json:"database"`    // of the connection
	InRecovery bool   `json:"in_recovery"` // a standby
	// WAL is the end of WAL: pg_current_wal_lsn, on a standby the last LSN
	// received or replayed.
	WAL LSN `json:"wal_lsn"`
	// Now and Started are by the server's clock.
	Now     time.Time `json:"now"`
	Started time.Time `json:"started"`
	// MaxSlotWALKeepSize is in bytes, -1 for no limit.
	MaxSlotWALKeepSize int64 `json:"max_slot_wal_keep_size"`
	// IdleSlotTimeout is idle_replication_slot_timeout (18), 0 for none.
	IdleSlotTimeout   time.Duration `json:"-"`
	MaxSlots          int           `json:"max_replication_slots"`
	MaxWALSenders     int           `json:"max_wal_senders"`
	AutovacuumFreeze  int64         `json:"autovacuum_freeze_max_age"`
	SyncedStandbys    string        `json:"synchronized_standby_slots,omitempty"` // 17
	WALDirectoryBytes *int64        `json:"wal_directory_bytes,omitempty"`        // pg_ls_waldir, with pg_monitor
	Volume            Volume        `json:"volume"`
}

// Volume is the file system that holds pg_wal, as far as it can be known.
type Volume struct {
	// FreeBytes is nil when it is unknown, and then Unknown says why.
	FreeBytes *int64 `json:"free_bytes,omitempty"`
	// SizeBytes may be nil although FreeBytes is known.
	SizeBytes *int64 `json:"size_bytes,omitempty"`
	// Source says how it is known: "statfs /var/lib/postgresql/15/main/pg_wal",
	// "command", "configured size".
	Source  string `json:"source,omitempty"`
	Unknown string `json:"unknown,omitempty"`
}

// Slot is a row of pg_replication_slots with what belongs to it.
type Slot struct {
	Name              string  `json:"name"`
	Plugin            string  `json:"plugin,omitempty"`
	Type              string  `json:"type"` // logical, physical
	Database          string  `json:"database,omitempty"`
	Temporary         bool    `json:"temporary"`
	Active            bool    `json:"active"`
	RestartLSN        *LSN    `json:"restart_lsn"`
	ConfirmedFlushLSN *LSN    `json:"confirmed_flush_lsn"`
	WALStatus         *string `json:"wal_status"` // reserved, extended, unreserved, lost; nil: never reserved any
	// SafeWALSize is nil without a restart_lsn.
	SafeWALSize *int64 `json:"safe_wal_size"`
	// CatalogXminAge is age(catalog_xmin), XminAge age(xmin), in transactions.
	CatalogXminAge *int64 `json:"catalog_xmin_age"`
	XminAge        *int64 `json:"xmin_age"`
	TwoPhase       bool   `json:"two_phase"`
	// InactiveSince is the server's own memory (17).
	InactiveSince      *time.Time `json:"inactive_since,omitempty"`
	Conflicting        *bool      `json:"conflicting,omitempty"`         // 16
	InvalidationReason *string    `json:"invalidation_reason,omitempty"` // 17
	Failover           *bool      `json:"failover,omitempty"`            // 17
	Synced             *bool      `json:"synced,omitempty"`              // 17
	// RetainedBytes is end of WAL - restart_lsn. It is nil for a slot that is
	// lost, also where the server still shows a restart_lsn.
	RetainedBytes *int64 `json:"retained_bytes"`
	// ConfirmedLagBytes is end of WAL - confirmed_flush_lsn. Negative: somebody
	// confirmed WAL that does not exist yet.
	ConfirmedLagBytes *int64  `json:"confirmed_lag_bytes"`
	Holder            *Holder `json:"holder,omitempty"`
	Spill             *Spill  `json:"spill,omitempty"` // 14
}

// Lost tells if the slot can never be read again.
func (s *Slot) Lost() bool {
	return s.WALStatus != nil && *s.WALStatus == "lost" || s.InvalidationReason != nil ||
		s.Conflicting != nil && *s.Conflicting
}

// Holder is the walsender that has the slot, from pg_stat_replication and
// pg_stat_activity. Without pg_monitor only PID is known.
type Holder struct {
	PID             int        `json:"pid"`
	User            string     `json:"user,omitempty"`
	ApplicationName string     `json:"application_name,omitempty"`
	Address         string     `json:"address,omitempty"` // empty: Unix socket, or unseen
	Since           *time.Time `json:"since,omitempty"`   // backend_start
	State           string     `json:"state,omitempty"`
	SentLSN         *LSN       `json:"sent_lsn,omitempty"`
	FlushLSN        *LSN       `json:"flush_lsn,omitempty"`
	// ReplyTime is when the server last got a status update, by the client's
	// clock.
	ReplyTime *time.Time `json:"reply_time,omitempty"`
}

// Spill is pg_stat_replication_slots: decoding that did not fit in
// logical_decoding_work_mem.
type Spill struct {
	Transactions int64 `json:"spill_txns"`
	Bytes        int64 `json:"spill_bytes"`
	TotalBytes   int64 `json:"total_bytes"`
}

// Transaction is open, or prepared and waiting for COMMIT PREPARED.
type Transaction struct {
	// GID names a prepared transaction; PID an open one.
	GID             string     `json:"gid,omitempty"`
	PID             int        `json:"pid,omitempty"`
	User            string     `json:"user,omitempty"`
	Database        string     `json:"database,omitempty"`
	ApplicationName string     `json:"application_name,omitempty"`
	Began           time.Time  `json:"began"`                 // server's clock
	QueryStarted    *time.Time `json:"query_start,omitempty"` // of the last query
	State           string     `json:"state,omitempty"`       // "idle in transaction"
	// Writes tells if it has a transaction id: only such hold restart_lsn.
	Writes bool `json:"writes"`
}

// Publication is what is published, compared with what should be.
type Publication struct {
	Name   string `json:"name"`
	Exists bool   `json:"exists"`
	// Tables is how many were asked for; of none nothing is known.
	Tables int `json:"tables"`
	// Inserts is false when INSERT is not published.
	Inserts bool `json:"inserts"`
	// Missing are the configured tables that it does not publish, Filtered
	// those with a row filter or a column list, Unlogged those whose rows are
	// not in the WAL.
	Missing  []string `json:"missing,omitempty"`
	Filtered []string `json:"filtered,omitempty"`
	Unlogged []string `json:"unlogged,omitempty"`
	// ByPartition are the partitioned tables that it lists partition by
	// partition and not as such: one that is attached later is not published.
	ByPartition []string `json:"by_partition,omitempty"`
	// Fingerprint changes when the publication or what it contains is altered,
	// dropped and made anew included: oid and xmin of its catalog rows.
	Fingerprint string `json:"fingerprint"`
}

// whole tells if every row of every table that was asked for is published.
func (p *Publication) whole() bool {
	return p.Exists && p.Inserts && len(p.Missing)+len(p.Filtered)+len(p.Unlogged) == 0
}

// isCopy tells if the slot is the copy on a standby of one on its primary. On a
// primary the column has no meaning (pg_replication_slots, synced).
func (s *Sample) isCopy(slot *Slot) bool {
	return s.Server.InRecovery && slot.Synced != nil && *slot.Synced
}

// FindSlot returns the slot with the name, or nil.
func (s *Sample) FindSlot(name string) *Slot {
	for i := range s.Slots {
		if s.Slots[i].Name == name {
			return &s.Slots[i]
		}
	}
	return nil
}
