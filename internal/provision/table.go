package provision

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// Columns names the outbox columns; an empty name leaves the column out.
type Columns struct {
	EventID, AggregateType, AggregateID, AggregateVersion string
	EventType, Payload, SchemaVersion, Headers            string
}

// TableSQL is the statement that creates an outbox table. The table carries the
// contract: an event has an identity, and two events of one aggregate never
// share a version, so that writers must take turns.
func (p *Plan) TableSQL(table Table) string {
	c := p.Columns
	var lines []string
	add := func(name, definition string) {
		if name != "" {
			lines = append(lines, pgx.Identifier{name}.Sanitize()+" "+definition)
		}
	}
	add(c.EventID, "uuid PRIMARY KEY DEFAULT gen_random_uuid()")
	add(c.AggregateType, "text NOT NULL")
	add(c.AggregateID, "text NOT NULL")
	add(c.AggregateVersion, "bigint NOT NULL")
	add(c.EventType, "text NOT NULL")
	add(c.Payload, "jsonb")
	add(c.SchemaVersion, "integer")
	add(c.Headers, "jsonb")
	add("occurred_at", "timestamptz")
	add("created_at", "timestamptz NOT NULL DEFAULT now()")
	if c.AggregateType != "" && c.AggregateVersion != "" {
		unique := pgx.Identifier{c.AggregateType}.Sanitize() + ", " + pgx.Identifier{c.AggregateID}.Sanitize() + ", " + pgx.Identifier{c.AggregateVersion}.Sanitize()
		lines = append(lines, "UNIQUE ("+unique+")")
	}
	return "CREATE TABLE " + table.quoted() + " (\n\t" + strings.Join(lines, ",\n\t") + "\n)"
}
