package monitor

import (
	"time"

	"github.com/cdcpub/cdcpub/slotmon"
)

// Snapshot is what the monitor knows. It is not written to after it was made.
type Snapshot struct {
	Interval time.Duration `json:"-"`
	Servers  []Server      `json:"servers"`
	// Alerts are those that are raised, worst first.
	Alerts []slotmon.Alert `json:"alerts"`
	Sinks  []Sink          `json:"sinks"`
}

// Server is one server and its slots.
type Server struct {
	// Name is host:port/database, or what the configuration calls it.
	Name string `json:"name"`
	// Up tells if the last try to take a sample succeeded; Unreachable says why
	// not. Sample is then the last one that did, nil if there was none.
	Up bool `json:"up"`
	// Asked is when the last try ended; zero before the first.
	Asked       time.Time       `json:"asked,omitzero"`
	Unreachable string          `json:"unreachable,omitempty"`
	Sample      *slotmon.Sample `json:"sample,omitempty"`
	// Verdict is the worst of the slots'.
	Verdict slotmon.Severity `json:"verdict"`
	Slots   []Slot           `json:"slots"`
}

// Slot is one slot and what is thought of it.
type Slot struct {
	Name string `json:"name"`
	// Ours: it is the slot that the configuration publishes from.
	Ours bool `json:"ours"`
	// Slot is nil for one that should exist and does not, and for one that has
	// never been seen.
	Slot     *slotmon.Slot     `json:"slot,omitempty"`
	Report   slotmon.Report    `json:"report"`
	Standbys []slotmon.Standby `json:"standbys,omitempty"`
}

// Sink is the state of one alert sink.
type Sink struct {
	Name string `json:"name"` // log, webhook, alertmanager http://am:9093
	// Sent and Failed count deliveries; LastError is empty after one that
	// succeeded.
	Sent      int       `json:"sent"`
	Failed    int       `json:"failed"`
	LastSent  time.Time `json:"last_sent,omitzero"`
	LastError string    `json:"last_error,omitempty"`
}
