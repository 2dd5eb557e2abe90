package slotmon

import "time"

// Alert is a finding that has lasted, with its life.
type Alert struct {
	// Key is stable over restarts: server, slot and finding.
	Server string    `json:"server"`
	Slot   string    `json:"slot,omitempty"`
	ID     FindingID `json:"id"`
	// Severity is Warning or Critical. An Unknown finding is a Critical alert.
	Severity Severity `json:"severity"`
	// Since is when the finding was first seen, Raised when the alert began,
	// Resolved when it ended; zero while it has not.
	Since    time.Time `json:"since"`
	Raised   time.Time `json:"raised"`
	Resolved time.Time `json:"resolved,omitzero"`
	Summary  string    `json:"summary"`
	Cause    string    `json:"cause,omitempty"`
	Cure     string    `json:"cure,omitempty"`
}

// AlertKey identifies an alert.
type AlertKey struct {
	Server, Slot string
	ID           FindingID
}

// Key is what identifies the alert.
func (a *Alert) Key() AlertKey { return AlertKey{a.Server, a.Slot, a.ID} }

// Timing is how long things must last.
type Timing struct {
	// RaiseAfter is how long a finding that is not AtOnce must last before its
	// alert begins, and how long a worse severity must last before the alert
	// takes it.
	RaiseAfter time.Duration
	// ResolveAfter is how long the finding must be absent, by the relaxed
	// limits, before the alert ends.
	ResolveAfter time.Duration
}
