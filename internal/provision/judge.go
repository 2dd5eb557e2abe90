package provision

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is something that exists and does not fit, or is not possible here.
type Problem struct {
	Object string // "table public.outbox"
	What   string // a clause about the object
	Cure   string // what to do, an SQL statement where that is enough
}

// ProblemsError has everything that stands in the way. Nothing was changed.
type ProblemsError struct{ Problems []Problem }

func (e *ProblemsError) Error() string {
	var b strings.Builder
	b.WriteString("nothing was created, because this is in the way:")
	for _, problem := range e.Problems {
		fmt.Fprintf(&b, "\n  %s %s\n    %s", problem.Object, problem.What, problem.Cure)
	}
	return b.String()
}

// judge says what stands in the way. It is pure.
func (p *Plan) judge(f *found) []Problem {
	problems := p.judgeServer(f)
	for i, wanted := range p.Roles {
		problems = append(problems, wanted.judge(&f.roles[i], &f.server)...)
	}
	for i, wanted := range p.Tables {
		problems = append(problems, p.judgeTable(wanted, &f.tables[i], &f.server)...)
	}
	problems = append(problems, p.judgePublication(f)...)
	return append(problems, p.judgeSlot(f)...)
}

func (p *Plan) judgeServer(f *found) (problems []Problem) {
	if f.server.InRecovery {
		return []Problem{{"server", "is a standby, on which nothing can be created", "connect to the primary"}}
	}
	if f.slot == nil && f.server.WALLevel != "logical" {
		problems = append(problems, Problem{"server", fmt.Sprintf("has wal_level = %s, with which there is no logical decoding", f.server.WALLevel),
			"ALTER SYSTEM SET wal_level = logical; then restart PostgreSQL (RDS and Aurora: parameter rds.logical_replication, Cloud SQL: flag cloudsql.logical_decoding)"})
	}
	return problems
}

func (r Role) judge(found *role, server *server) (problems []Problem) {
	if !found.Exists {
		return nil
	}
	lacks := func(missing bool, what, cure string) {
		if missing {
			problems = append(problems, Problem{"role " + r.Name, what, cure})
		}
	}
	name := identifier(r.Name)
	lacks(!found.Login, "exists and may not log in", "ALTER ROLE "+name+" LOGIN")
	switch {
	case r.Right == Monitor:
		lacks(!found.Right, "exists and is no member of pg_monitor", "GRANT pg_monitor TO "+name)
	case server.RDS:
		lacks(!found.Right, "exists and may not read slots", "GRANT "+rdsReplication+" TO "+name)
	default:
		lacks(!found.Right, "exists and may not read slots", "ALTER ROLE "+name+" REPLICATION")
	}
	lacks(!found.Connect, "exists and may not connect to database "+server.Database, r.connectSQL(server.Database))
	return problems
}

// kindName is a pg_class.relkind in words.
func kindName(kind string) string {
	switch kind {
	case "v":
		return "view"
	case "m":
		return "materialized view"
	case "f":
		return "foreign table"
	}
	return "relation of another kind"
}

func (p *Plan) judgeTable(wanted Table, found *table, server *server) []Problem {
	object := "table " + wanted.String()
	switch {
	case !found.SchemaExists:
		return []Problem{{object, fmt.Sprintf("has no schema: %s does not exist in database %s", wanted.Schema, server.Database),
			"CREATE SCHEMA " + identifier(wanted.Schema) + ", or correct outbox.tables"}}
	case !found.Exists:
		return nil
	case found.Kind != "r" && found.Kind != "p":
		return []Problem{{object, "is a " + kindName(found.Kind) + ", and only the rows of tables are in the WAL", "name the table itself in outbox.tables"}}
	}
	var problems []Problem
	for _, name := range found.Unlogged {
		problems = append(problems, Problem{object, "is UNLOGGED, so its rows never reach the WAL", "ALTER TABLE " + name + " SET LOGGED"})
	}
	var add []string
	var missing []string
	for _, name := range p.Required {
		if !slices.Contains(found.Columns, name) {
			missing = append(missing, name)
			add = append(add, "ADD COLUMN "+p.addedColumn(name))
		}
	}
	if len(missing) > 0 {
		problems = append(problems, Problem{object, "lacks what the configuration names: " + strings.Join(missing, ", "),
			fmt.Sprintf("ALTER TABLE %s %s; or name the right columns in outbox.columns, outbox.headers and kafka.topic", wanted.sql(), strings.Join(add, ", "))})
	}
	return append(problems, p.judgePublished(object, found, missing)...)
}

// addedColumn defines a column for a table that may have rows: without the
// constraint that a new table has.
func (p *Plan) addedColumn(name string) string {
	for _, column := range p.columns() {
		if column.Name == name {
			return identifier(name) + " " + column.Type
		}
	}
	return identifier(name) + " text"
}

// judgePublished looks at how the publication contains the table. The columns
// in missing are not in the table at all.
func (p *Plan) judgePublished(object string, found *table, missing []string) (problems []Problem) {
	if found.Filter != nil {
		problems = append(problems, Problem{object, fmt.Sprintf("has a row filter in publication %s, %s: rows that it excludes would be lost", p.Publication, *found.Filter),
			"remove the filter: ALTER PUBLICATION ... SET TABLE, with all tables of the publication"})
	}
	withheld := slices.DeleteFunc(slices.Clone(found.Withheld), func(name string) bool { return slices.Contains(missing, name) })
	if len(withheld) > 0 {
		problems = append(problems, Problem{object, fmt.Sprintf("has a column list in publication %s without %s", p.Publication, strings.Join(withheld, ", ")),
			"add them to the list: ALTER PUBLICATION ... SET TABLE, with all tables of the publication"})
	}
	return problems
}

func (p *Plan) judgePublication(f *found) []Problem {
	if f.publication == nil || f.publication.Insert {
		return nil
	}
	return []Problem{{"publication " + p.Publication, "exists and does not publish inserts",
		fmt.Sprintf("ALTER PUBLICATION %s SET (publish = 'insert'), if no other reader needs what it publishes now; else name another in postgres.publication", identifier(p.Publication))}}
}

func (p *Plan) judgeSlot(f *found) []Problem {
	object := "slot " + p.Slot
	switch {
	case p.Failover && f.server.VersionNum < 170000:
		return []Problem{{object, fmt.Sprintf("cannot be a failover slot: this server is PostgreSQL %s, and they exist since 17", f.server.Version),
			"leave out --failover, and create the slot again after each failover, or use the slot management of your cluster manager"}}
	case f.slot == nil || f.slot.Creating:
		return nil
	case f.slot.Unusable:
		return []Problem{{object, "exists and cannot be used: it is lost, belongs to another database, is two-phase or has another plugin than pgoutput",
			fmt.Sprintf("look: `cdcpub slot status %s`; if nobody needs it, `cdcpub slot drop %s` and run init again; what it should have held must be published by other means", p.Slot, p.Slot)}}
	case p.Failover && !f.slot.Failover:
		return []Problem{{object, "exists and is not a failover slot",
			fmt.Sprintf(`while nobody reads it: psql "dbname=%s replication=database" -c 'ALTER_REPLICATION_SLOT %s (FAILOVER true)'`, f.server.Database, p.Slot)}}
	}
	return nil
}
