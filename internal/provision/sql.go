package provision

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// TableSQL is the statement that creates an outbox table. The table carries the
// contract: an event has an identity, and two events of one aggregate never
// share a version, so that writers must take turns.
func (p *Plan) TableSQL(table Table) string { return p.createTable("CREATE TABLE ", table) }

func (p *Plan) createTable(create string, table Table) string {
	var lines []string
	for _, c := range p.columns() {
		lines = append(lines, strings.TrimRight(identifier(c.Name)+" "+c.Type+" "+c.Constraint, " "))
	}
	if c := p.Columns; c.AggregateType != "" && c.AggregateVersion != "" {
		lines = append(lines, fmt.Sprintf("UNIQUE (%s, %s, %s)", identifier(c.AggregateType), identifier(c.AggregateID), identifier(c.AggregateVersion)))
	}
	return create + table.sql() + " (\n    " + strings.Join(lines, ",\n    ") + "\n)"
}

// PublicationSQL is the statement that creates the publication. Inserts only:
// deleting from the outbox then needs no replica identity. Via the root:
// partitions arrive under the table's own name.
func (p *Plan) PublicationSQL() string {
	names := make([]string, 0, len(p.Tables))
	for _, table := range p.Tables {
		names = append(names, table.sql())
	}
	return fmt.Sprintf("CREATE PUBLICATION %s FOR TABLE %s WITH (publish = 'insert', publish_via_partition_root = true)",
		identifier(p.Publication), strings.Join(names, ", "))
}

func (p *Plan) addTableSQL(table Table) string {
	return fmt.Sprintf("ALTER PUBLICATION %s ADD TABLE %s", identifier(p.Publication), table.sql())
}

func (r Role) createSQL(rds bool) []string {
	name := identifier(r.Name)
	switch {
	case r.Right == Monitor:
		return []string{"CREATE ROLE " + name + " LOGIN", r.monitorSQL()}
	case rds:
		return []string{"CREATE ROLE " + name + " LOGIN", "GRANT " + rdsReplication + " TO " + name}
	}
	return []string{"CREATE ROLE " + name + " LOGIN REPLICATION"}
}

func (r Role) monitorSQL() string { return "GRANT pg_monitor TO " + identifier(r.Name) }

func (r Role) connectSQL(database string) string {
	return fmt.Sprintf("GRANT CONNECT ON DATABASE %s TO %s", identifier(database), identifier(r.Name))
}

// rdsReplication stands for REPLICATION where nobody may grant that itself.
const rdsReplication = "rds_replication"

// plainName needs no quotes, unless it is a key word.
var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// identifier quotes a name where SQL needs it.
func identifier(name string) string {
	if _, isKeyWord := slices.BinarySearch(keyWords, name); plainName.MatchString(name) && !isKeyWord {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// literal is a string constant, whatever standard_conforming_strings is.
func literal(text string) string {
	quoted := "'" + strings.ReplaceAll(text, "'", "''") + "'"
	if strings.Contains(text, `\`) {
		return "E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}
