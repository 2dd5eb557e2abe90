package slotmon

import "time"

// Subject is everything that Judge looks at for one slot.
type Subject struct {
	// Name is the slot's.
	Name string
	// Sample is the newest one; nil when the server could not be asked, and
	// then Unreachable says why.
	Sample      *Sample
	Unreachable string
	Trend       Trend
	// FirstLook: nobody has looked at the slot before the samples of Trend, so
	// that how long it has had no reader is known only where the server says so
	// (17).
	FirstLook bool
	// Expected says what the slot must be, nil for a slot that is only
	// watched: it need not exist, and plugin, database and two_phase are its
	// owner's business.
	Expected *Expected
	// Publisher is what the cdcpub that holds the slot says of itself, nil when
	// there is none to ask.
	Publisher *Publisher
	// Standbys are the servers that should have the slot after a failover; nil
	// when none is configured.
	Standbys []Standby
}

// Expected is what a publisher needs of its slot.
type Expected struct {
	Database    string
	Publication string
	Tables      []Table
	// Columns are those that a record is made of: a column list that has them
	// all leaves nothing out. If there are none, every column list counts as a
	// filter.
	Columns []string
}

// Table is a qualified table name as the catalogs have it.
type Table struct{ Schema, Name string }

func (t Table) String() string { return t.Schema + "." + t.Name }

// Publisher is the state of a cdcpub, from its own memory or its /status.
type Publisher struct {
	// Address is where it was asked, empty for the process itself.
	Address string `json:"address,omitempty"`
	// Unanswered says why it did not answer; the other fields are then empty.
	Unanswered string `json:"unanswered,omitempty"`
	State      string `json:"state,omitempty"` // publisher.State: streaming, standby, blocked, ...
	Role       string `json:"role,omitempty"`  // active, standby
	Slot       string `json:"slot,omitempty"`
	// Stall is the cause why nothing is published, empty if there is none.
	Stall      string    `json:"stall,omitempty"`
	StallSince time.Time `json:"stall_since,omitzero"`
}

// Standby is a physical standby that was asked for a failover slot.
type Standby struct {
	Address     string `json:"address"`
	Unreachable string `json:"unreachable,omitempty"`
	// Not says why the server that was asked is no standby of the primary;
	// empty if it is one. Slot is then nil.
	Not string `json:"not_a_standby,omitempty"`
	// Slot is the slot there, nil if it has none of that name.
	Slot *Slot `json:"slot,omitempty"`
}

// StandbyAt returns what a server said about the slot of a primary. A server
// that was promoted keeps the mark of a synced slot without its meaning, and so
// does the primary itself, whose address may have been a standby's before: what
// they have survives no failover.
func StandbyAt(address string, primary, asked *Sample, slot string) Standby {
	answer := Standby{Address: address}
	own, other := primary.Server.SystemID, asked.Server.SystemID
	switch {
	case !asked.Server.InRecovery:
		answer.Not = "is not a standby: it is not in recovery"
	case own != "" && other != "" && own != other: // else the role may not see it
		answer.Not = "is a standby of another server: its system identifier is " + other + ", the primary's " + own
	default:
		answer.Slot = asked.FindSlot(slot)
	}
	return answer
}

// Ready tells if the slot would survive a promotion of this standby: it is
// synced, no longer temporary, and not invalidated (PostgreSQL documentation,
// "Logical Replication Failover").
func (s *Standby) Ready() bool {
	return s.Slot != nil && s.Slot.Synced != nil && *s.Slot.Synced && !s.Slot.Temporary && !s.Slot.Lost()
}
