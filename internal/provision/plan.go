package provision

import (
	"time"

	"github.com/jackc/pgx/v5"
)

// Plan names what must exist. Names are as in the catalogs, unquoted.
type Plan struct {
	Tables  []Table
	Columns Columns
	// Extra are further columns of new tables.
	Extra []Column
	// ConventionOnly leaves created_at out of new tables, for conventions that
	// do not know it.
	ConventionOnly bool
	// Required are the columns that every outbox table must have and publish.
	Required    []string
	Publication string
	Slot        string
	// Failover has standbys keep a copy of the slot (PostgreSQL 17 and newer).
	Failover bool
	// Roles are created where they are missing. Those that exist must have
	// their rights. Without any, roles are not looked at.
	Roles []Role
	// SlotTimeout bounds the creation of the slot, which waits for every write
	// transaction that is running.
	SlotTimeout time.Duration
	// CountTimeout bounds counting the rows that a new slot does not deliver,
	// for each table; then their number is an estimate. Zero means 5 s.
	CountTimeout time.Duration
}

// Table is a qualified table name.
type Table struct{ Schema, Name string }

func (t Table) String() string { return t.Schema + "." + t.Name }

// quoted is for parameters that are read as SQL, such as that of to_regclass.
func (t Table) quoted() string { return pgx.Identifier{t.Schema, t.Name}.Sanitize() }

// sql is for people too: quoted only where necessary.
func (t Table) sql() string { return identifier(t.Schema) + "." + identifier(t.Name) }

// Columns names the outbox columns; an empty name leaves the column out.
type Columns struct {
	EventID, AggregateType, AggregateID, AggregateVersion string
	EventType, Payload, SchemaVersion, Headers            string
	Timestamp, OccurredAt                                 string
}

// Column is a column of an outbox table.
type Column struct {
	Name, Type string
	// Constraint follows the type where the table is new, for example NOT NULL.
	Constraint string
}

// Right is what a role may do.
type Right int

// The rights of roles.
const (
	// Publish is to read slots: LOGIN, REPLICATION and CONNECT, or membership
	// in rds_replication where that role exists (Amazon RDS and Aurora).
	Publish Right = iota
	// Monitor is to see everything about slots: LOGIN, pg_monitor and CONNECT.
	Monitor
)

// Role is a role and what it must be able to do.
type Role struct {
	Name  string
	Right Right
}

// Step is one thing that was looked at or done.
type Step struct {
	Object string // "table public.outbox"
	Done   string // "created" or what was found
	Next   string // what only a human can do about it, empty if there is nothing
}

// columns are those of a new table, each once.
func (p *Plan) columns() []Column {
	c := p.Columns
	candidates := append([]Column{
		{c.EventID, "uuid", "PRIMARY KEY DEFAULT gen_random_uuid()"},
		{c.AggregateType, "text", "NOT NULL"},
		{c.AggregateID, "text", "NOT NULL"},
		{c.AggregateVersion, "bigint", "NOT NULL"},
		{c.EventType, "text", "NOT NULL"},
		{c.Payload, "jsonb", ""},
		{c.SchemaVersion, "integer", ""},
		{c.Headers, "jsonb", ""},
		{c.Timestamp, "timestamptz", ""},
		{c.OccurredAt, "timestamptz", ""},
	}, p.Extra...)
	if !p.ConventionOnly {
		candidates = append(candidates, Column{"created_at", "timestamptz", "NOT NULL DEFAULT now()"})
	}
	var columns []Column
	seen := map[string]bool{"": true}
	for _, column := range candidates {
		if !seen[column.Name] {
			columns = append(columns, column)
		}
		seen[column.Name] = true
	}
	return columns
}
