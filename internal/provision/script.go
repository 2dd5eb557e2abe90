package provision

import (
	"fmt"
	"strings"
	"time"
)

// Script is the plan as a psql script for the database: commented for whoever
// must approve it, and safe to run again. It stops at the first error. It is
// pure, so it cannot say how things are on the server.
func (p *Plan) Script(database string) string {
	s := &script{plan: p, database: database}
	s.head()
	s.guard()
	for _, role := range p.Roles {
		s.role(role)
	}
	s.tables()
	s.publication()
	s.slot()
	return strings.TrimLeft(s.String(), "\n")
}

// script collects the text.
type script struct {
	strings.Builder
	plan     *Plan
	database string
}

// comment writes a paragraph. Names in it may hold anything, so each line is
// commented out by itself.
func (s *script) comment(format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\r", " ")
	for line := range strings.SplitSeq(text, "\n") {
		s.WriteString(strings.TrimRight("-- "+line, " ") + "\n")
	}
}

// section begins with an empty line and a comment.
func (s *script) section(format string, args ...any) {
	s.WriteString("\n")
	s.comment(format, args...)
}

func (s *script) statement(format string, args ...any) { fmt.Fprintf(s, format+";\n", args...) }

// do writes an anonymous block, with a quote that does not occur in it.
func (s *script) do(body string) {
	quote := "$$"
	for n := 1; strings.Contains(body, quote); n++ {
		quote = fmt.Sprintf("$do%d$", n)
	}
	s.statement("DO %s\nBEGIN\n%sEND\n%s", quote, body, quote)
}

func (s *script) head() {
	s.comment(`What cdcpub needs in database %s, from "cdcpub init --print".

Run it in that database, as a superuser or as the administrator of a managed
server, with the file name in place of init.sql:

    psql -X -d %s -f init.sql

Not in one transaction (psql -1): PostgreSQL refuses to create a slot in a
transaction that has written. It may be run again: what exists stays as it is,
right or wrong; "cdcpub check" then says whether everything fits.`, s.database, identifier(s.database))
	s.WriteString("\\set ON_ERROR_STOP on\n")
}

func (s *script) guard() {
	var b strings.Builder
	refuse := func(condition, message, argument string) {
		if argument != "" {
			argument = ", " + argument
		}
		fmt.Fprintf(&b, "    IF %s THEN\n        RAISE EXCEPTION %s%s;\n    END IF;\n", condition, literal(message), argument)
	}
	percent := strings.NewReplacer("%", "%%")
	refuse("current_database() <> "+literal(s.database), "this is database %, and the slot belongs into "+percent.Replace(s.database), "current_database()")
	refuse("pg_is_in_recovery()", "this server is a standby: connect to the primary", "")
	refuse("current_setting('wal_level') <> 'logical'", "wal_level is %: set it to logical, which takes a restart of the server", "current_setting('wal_level')")
	if s.plan.Failover {
		refuse("current_setting('server_version_num')::int < 170000", "failover slots exist since PostgreSQL 17, and this is %", "current_setting('server_version')")
	}
	s.section("Nothing is done in the wrong place.")
	s.do(b.String())
}

func (s *script) role(r Role) {
	if r.Right == Publish {
		s.section(`The role of the service (the user of postgres.url). It needs no right on any
table: rows reach it through the WAL. For the same reason REPLICATION lets it read
the changes of every table of each database that it may connect to. So in
pg_hba.conf let it in from its own hosts only, and to this database only (the word
"replication" there is for physical replication, which it does not need):

    hostssl  %s  %s  <its address>/32  scram-sha-256

It gets no password here. Set one with \password %s in psql, which
sends only its hash, or let it in by certificate or cloud token.
On Amazon RDS and Aurora membership in rds_replication stands for REPLICATION.`, hba(s.database), hba(r.Name), identifier(r.Name))
	} else {
		s.section(`A role that only watches: for "cdcpub slot watch", "cdcpub slot status" and
dashboards. pg_monitor lets it see the lag of every walsender and the size of
pg_wal; it can change nothing. It gets no password here either.`)
	}
	s.do(fmt.Sprintf("    IF to_regrole(%s) IS NOT NULL THEN\n        RETURN;\n    END IF;\n", literal(identifier(r.Name))) + r.creation())
	s.statement("%s", r.connectSQL(s.database))
	if r.Right == Publish {
		s.comment(`Not needed to publish. With it "cdcpub check" also looks for the topics of the
aggregate types in the table, and at its largest payload:`)
		for _, table := range s.plan.Tables {
			s.comment("    GRANT USAGE ON SCHEMA %s TO %s; GRANT SELECT ON %s TO %s;", identifier(table.Schema), identifier(r.Name), table.sql(), identifier(r.Name))
		}
		s.comment(`Nor is this. With it "cdcpub run" sees who holds the slot and its WAL, and names
them in alerts:`)
		s.comment("    %s;", r.monitorSQL())
	}
}

// creation is what a block does if the role is missing.
func (r Role) creation() string {
	const indent = "    "
	if r.Right == Monitor {
		return indent + strings.Join(r.createSQL(false), ";\n"+indent) + ";\n"
	}
	const deeper = indent + indent
	return indent + "IF to_regrole('" + rdsReplication + "') IS NULL THEN\n" +
		deeper + strings.Join(r.createSQL(false), ";\n"+deeper) + ";\n" +
		indent + "ELSE\n" +
		deeper + strings.Join(r.createSQL(true), ";\n"+deeper) + ";\n" +
		indent + "END IF;\n"
}

// hba quotes a name for pg_hba.conf where it must be.
func hba(name string) string {
	if plainName.MatchString(name) && name != "all" && name != "replication" {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

func (s *script) tables() {
	unique := ""
	if c := s.plan.Columns; c.AggregateType != "" && c.AggregateVersion != "" {
		unique = "\nTwo writers of one aggregate must take turns, by a lock on its row, so that commit\norder is version order; the UNIQUE constraint stops those that do not."
	}
	s.section(`The outbox. The application inserts a row in the transaction of the change that
it tells about. What counts is the INSERT in the WAL: rows may be deleted again.%s
A new table belongs to whoever runs this. The application's role needs:`, unique)
	for _, table := range s.plan.Tables {
		s.comment("    GRANT INSERT ON %s TO <application>;", table.sql())
	}
	for _, table := range s.plan.Tables {
		s.statement("%s", s.plan.createTable("CREATE TABLE IF NOT EXISTS ", table))
	}
}

func (s *script) publication() {
	s.section(`The publication says which tables the slot delivers. Inserts only: an UPDATE or
DELETE in the outbox is no event, and needs no replica identity then. Via the
root: partitions of the outbox arrive under its own name.`)
	var b strings.Builder
	name := literal(s.plan.Publication)
	create := strings.Replace(s.plan.PublicationSQL(), " WITH ", "\n            WITH ", 1)
	fmt.Fprintf(&b, "    IF NOT EXISTS (SELECT FROM pg_publication WHERE pubname = %s) THEN\n        %s;\n    END IF;\n", name, create)
	for _, table := range s.plan.Tables {
		fmt.Fprintf(&b, `    IF NOT EXISTS (SELECT FROM pg_publication p WHERE pubname = %s AND (puballtables OR EXISTS (
            SELECT FROM pg_publication_rel WHERE prpubid = p.oid AND prrelid = to_regclass(%s)))) THEN
        %s;
    END IF;
`, name, literal(table.sql()), s.plan.addTableSQL(table))
	}
	s.do(b.String())
}

func (s *script) slot() {
	failover, about := "", ""
	if s.plan.Failover {
		failover = ", failover => true"
		about = "\nFailover: a standby that synchronises slots keeps a copy, which survives the\nfailover once \"cdcpub slot status\" calls it ready. An unread one may never be."
	}
	s.section(`The slot, last: what was written before its publication existed cannot be decoded.
It begins now; rows that are in the outbox already will not be published:`)
	for _, table := range s.plan.Tables {
		s.comment("    SELECT count(*) FROM %s;", table.sql())
	}
	s.comment(`From now on the server keeps all WAL until "cdcpub run" confirms it. Without
max_slot_wal_keep_size a slot that nobody reads fills the disk: start cdcpub soon.%s
It waits for every write transaction that is running, no longer than this:`, about)
	s.statement("SET statement_timeout = '%s'", timeSetting(s.plan.SlotTimeout))
	s.statement("SELECT pg_create_logical_replication_slot(%s, 'pgoutput'%s)\n    WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = %s)",
		literal(s.plan.Slot), failover, literal(s.plan.Slot))
	s.statement("RESET statement_timeout")
}

// timeSetting is a duration as PostgreSQL's settings have it. Zero would be no
// limit.
func timeSetting(d time.Duration) string {
	if d >= time.Second && d%time.Second == 0 {
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return fmt.Sprintf("%dms", max(1, d.Milliseconds()))
}
