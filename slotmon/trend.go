package slotmon

import "time"

// Trend is how a slot moves, as far as the samples that were taken tell. A nil
// rate is not known yet: there was only one sample, or a value was absent.
type Trend struct {
	// Over is the time between the oldest and the newest sample that were used.
	Over time.Duration `json:"-"`
	// Rates in bytes per second.
	WALRate       *float64 `json:"wal_bytes_per_second"`
	RetainedRate  *float64 `json:"retained_bytes_per_second"`
	ConfirmedRate *float64 `json:"confirmed_bytes_per_second"`
	// InactiveFor is how long nobody has held the slot: by the server's memory
	// (17), else since the first sample that saw it so, which is a lower bound.
	// Nil while it is held.
	InactiveFor *time.Duration `json:"-"`
	// CopyFor is how long the slot has been a standby's copy of one on its
	// primary, as far as the samples tell; nil while it is not.
	CopyFor *time.Duration `json:"-"`
	// LagNotFallingFor is how long the confirmed lag has not fallen while WAL
	// was written; nil when it has fallen, is small, or is not known.
	LagNotFallingFor *time.Duration `json:"-"`
	// NotReadyFor is how long no standby has had the failover slot ready.
	NotReadyFor *time.Duration `json:"-"`
	// PublicationChanged: the fingerprint differs from the first one seen.
	PublicationChanged bool `json:"publication_changed"`
	// PublicationWhole is the end of WAL, and WholeSeen the time, of the last
	// sample before one in which the publication was unaltered and published the
	// tables whole: no row written before it is missing in the stream. Nil while
	// there is none.
	PublicationWhole *LSN      `json:"publication_whole_lsn,omitempty"`
	WholeSeen        time.Time `json:"publication_whole_at,omitzero"`
}
