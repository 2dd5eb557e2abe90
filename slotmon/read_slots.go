package slotmon

import "time"

// slotRow is a row of pg_replication_slots with what belongs to it.
type slotRow struct {
	Slot     slotColumns `json:"slot"`
	Activity *struct {
		User            string     `json:"usename"`
		ApplicationName string     `json:"application_name"`
		Address         string     `json:"client_addr"`
		Since           *time.Time `json:"backend_start"`
		State           string     `json:"state"`
	} `json:"activity"`
	Sender *struct {
		State     string     `json:"state"`
		SentLSN   *LSN       `json:"sent_lsn"`
		FlushLSN  *LSN       `json:"flush_lsn"`
		ReplyTime *time.Time `json:"reply_time"`
	} `json:"sender"`
	Spill          *Spill `json:"spill"`
	XminAge        *int64 `json:"xmin_age"`
	CatalogXminAge *int64 `json:"catalog_xmin_age"`
}

// slotColumns are those of the view, by name; see "pg_replication_slots" in the
// PostgreSQL documentation. Pointers are columns that may be NULL or are not in
// every version.
type slotColumns struct {
	Name               string     `json:"slot_name"`
	Plugin             string     `json:"plugin"`
	Type               string     `json:"slot_type"`
	Database           string     `json:"database"`
	Temporary          bool       `json:"temporary"`
	Active             bool       `json:"active"`
	ActivePID          *int       `json:"active_pid"`
	RestartLSN         *LSN       `json:"restart_lsn"`
	ConfirmedFlushLSN  *LSN       `json:"confirmed_flush_lsn"`
	WALStatus          *string    `json:"wal_status"`
	SafeWALSize        *int64     `json:"safe_wal_size"`
	TwoPhase           bool       `json:"two_phase"`
	InactiveSince      *time.Time `json:"inactive_since"`
	Conflicting        *bool      `json:"conflicting"`
	InvalidationReason *string    `json:"invalidation_reason"`
	Failover           *bool      `json:"failover"`
	Synced             *bool      `json:"synced"`
}

// slotsSQL joins a slot with who holds it. The statistics views show everybody
// which process, role and application it is; the rest of their columns is NULL
// without pg_read_all_stats.
const slotsSQL = `SELECT json_build_object('slot', row_to_json(s), 'spill', row_to_json(d), 'activity', row_to_json(a), 'sender', row_to_json(r),
		'xmin_age', age(s.xmin), 'catalog_xmin_age', age(s.catalog_xmin))
	FROM pg_replication_slots s
	LEFT JOIN (SELECT slot_name, spill_txns, spill_bytes, total_bytes FROM pg_stat_replication_slots) d ON d.slot_name = s.slot_name
	LEFT JOIN (SELECT pid, usename, application_name, client_addr, backend_start, state FROM pg_stat_activity) a ON a.pid = s.active_pid
	LEFT JOIN (SELECT pid, state, sent_lsn, flush_lsn, reply_time FROM pg_stat_replication) r ON r.pid = s.active_pid
	ORDER BY s.slot_name`

// slot is the row, measured against the end of WAL.
func (r *slotRow) slot(end walEnd) Slot {
	c := &r.Slot
	s := Slot{
		Name:               c.Name,
		Plugin:             c.Plugin,
		Type:               c.Type,
		Database:           c.Database,
		Temporary:          c.Temporary,
		Active:             c.Active,
		RestartLSN:         c.RestartLSN,
		ConfirmedFlushLSN:  c.ConfirmedFlushLSN,
		WALStatus:          c.WALStatus,
		SafeWALSize:        c.SafeWALSize,
		CatalogXminAge:     r.CatalogXminAge,
		XminAge:            r.XminAge,
		TwoPhase:           c.TwoPhase,
		InactiveSince:      c.InactiveSince,
		Conflicting:        c.Conflicting,
		InvalidationReason: c.InvalidationReason,
		Failover:           c.Failover,
		Synced:             c.Synced,
		Holder:             r.holder(),
		Spill:              r.Spill,
	}
	if !s.Lost() {
		s.RetainedBytes = end.after(s.RestartLSN)
	}
	if s.RestartLSN == nil {
		// PostgreSQL computes one for a slot that has reserved nothing, as if it
		// needed all WAL from the beginning.
		s.SafeWALSize = nil
	}
	s.ConfirmedLagBytes = end.after(s.ConfirmedFlushLSN)
	return s
}

func (r *slotRow) holder() *Holder {
	if r.Slot.ActivePID == nil {
		return nil
	}
	h := &Holder{PID: *r.Slot.ActivePID}
	if a := r.Activity; a != nil {
		h.User, h.ApplicationName, h.Address, h.Since, h.State = a.User, a.ApplicationName, a.Address, a.Since, a.State
	}
	if s := r.Sender; s != nil {
		h.State, h.SentLSN, h.FlushLSN, h.ReplyTime = s.State, s.SentLSN, s.FlushLSN, s.ReplyTime
	}
	return h
}

// after is how many bytes the end is after position: negative if it is before,
// nil if either is unknown, or the end is and lies beyond what is known of it.
// LSNs are unsigned, so the difference wraps into the right sign.
func (e walEnd) after(position *LSN) *int64 {
	if e.LSN == nil || position == nil {
		return nil
	}
	bytes := int64(*e.LSN - *position)
	if e.AtLeast && bytes < 0 {
		return nil
	}
	return &bytes
}
