package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cdcpub/cdcpub/router"
	"github.com/cdcpub/cdcpub/wal"
)

func (j *judge) outbox() {
	if j.Postgres.Unreachable != nil {
		j.skip(outboxIDs, "depends on %s", idReachable)
		return
	}
	for i := range j.Postgres.Tables {
		t := &j.Postgres.Tables[i]
		name := t.Name.String()
		switch {
		case t.Unread != "":
			j.skipFor(name, outboxIDs, "could not be read: %s", t.Unread)
		case !t.Exists && t.Kind != "":
			j.addFor(idTable, name, fail("is a %s, and only rows of tables are in the WAL", t.Kind).cured("name the table itself in outbox.tables"))
			j.skipFor(name, outboxIDs[1:], "depends on %s", idTable)
		case !t.Exists:
			j.addFor(idTable, name, fail("does not exist in database %s", j.Postgres.Database).cured("create it as the role that is to own it, or correct outbox.tables", j.initAsOwner()))
			j.skipFor(name, outboxIDs[1:], "depends on %s", idTable)
		default:
			j.table(t)
		}
	}
}

func (j *judge) skipFor(subject string, ids []string, format string, args ...any) {
	for _, id := range ids {
		j.addFor(id, subject, skip(format, args...))
	}
}

func (j *judge) table(t *Table) {
	name := t.Name.String()
	exists := ok("%s", plural(len(t.Columns), "column"))
	if t.Partitioned {
		exists = ok("%s, partitioned, %s", plural(len(t.Columns), "column"), plural(t.Partitions, "partition"))
	}
	j.addFor(idTable, name, exists)
	columns := j.columns(t)
	j.addFor(idColumns, name, columns)
	j.addFor(idTypes, name, j.columnTypes(t))
	j.addFor(idNotNull, name, j.notNull(t))
	j.addFor(idUnique, name, j.unique(t))
	j.addFor(idUnlogged, name, logged(t))
}

func (t *Table) column(name string) *Column {
	i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
	if name == "" || i < 0 {
		return nil
	}
	return &t.Columns[i]
}

// columns: a generated column is in the WAL only if the publication says so,
// from 18 on.
func (j *judge) columns(t *Table) outcome {
	required := j.Setup.Route.RequiredColumns()
	var missing, generated []string
	for _, name := range required {
		switch c := t.column(name); {
		case c == nil:
			missing = append(missing, name)
		case !j.published18(t, c):
			generated = append(generated, name)
		}
	}
	if len(missing) > 0 {
		o := fail("lacks %s, which the configuration needs; its columns are %s", strings.Join(missing, ", "), columnNames(t))
		if t.column("aggregateid") != nil && t.column("id") != nil {
			return o.cured("these are the names of Debezium's outbox: state them all at once with outbox.preset: debezium")
		}
		return o.cured("name the table's own columns in outbox.columns, outbox.headers and kafka.topic; an empty name leaves a part out")
	}
	if len(generated) > 0 {
		return fail("column %s is generated, and PostgreSQL does not publish it", strings.Join(generated, ", ")).
			cured("let the application write the column; or on PostgreSQL 18, if it is STORED, publish it", fmt.Sprintf("ALTER PUBLICATION %s SET (publish_generated_columns = stored);", ident(j.Setup.Publication)))
	}
	return ok("has all that are configured: %s", strings.Join(required, ", "))
}

func columnNames(t *Table) string {
	var names []string
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		return "none at all"
	}
	const most = 20
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// published18 tells if rows in the WAL have the column, column lists aside.
func (j *judge) published18(t *Table, c *Column) bool {
	content := j.Postgres.Content
	if c.Generated == "" || content == nil {
		return true
	}
	if c.Generated != "s" || content.Generated == "" {
		return false
	}
	return content.Generated == "s" || slices.ContainsFunc(content.Members, func(m Member) bool {
		return slices.Contains(t.Line, m.OID) && slices.Contains(m.Columns, c.Name)
	})
}

// columnTypes asks the router first, as the publisher will, and then looks for
// types that the router takes and that are a bad choice.
func (j *judge) columnTypes(t *Table) outcome {
	if j.missing(t) {
		return skip("depends on %s", idColumns)
	}
	route, err := router.New(j.Setup.Route)
	if err != nil {
		return skip("the configuration gives no routing: %s", err)
	}
	relation := &wal.Relation{Schema: t.Name.Schema, Name: t.Name.Name}
	for _, c := range t.Columns {
		column := wal.Column{Name: c.Name, TypeOID: c.TypeOID}
		if c.TypeOID != c.BaseOID {
			column.Base = c.BaseType
		}
		relation.Columns = append(relation.Columns, column)
	}
	var refused *router.Error
	if err := route.Check(relation); errors.As(err, &refused) {
		return fail("%s", refused.Reason).cured(refused.Hint)
	}
	columns := &j.Setup.Route.Columns
	judged := []outcome{
		timestampType(t.column(columns.Timestamp.Name), Fail, "outbox.columns.timestamp", "record timestamps"),
		timestampType(t.column(columns.OccurredAt.Name), Warn, "outbox.columns.occurred_at", "the metric of end-to-end latency"),
		headersType(t.column(columns.Headers.Name)),
		keyType(t, t.column(columns.EventID.Name), "the event id"),
		keyType(t, t.column(columns.AggregateID.Name), "the record key"),
		keyType(t, t.column(columns.AggregateType.Name), "the aggregate type"),
	}
	worst := ok("event id %s, key %s, payload %s", typeOf(t, columns.EventID.Name), typeOf(t, columns.AggregateID.Name), typeOf(t, columns.Payload.Name))
	for _, o := range judged {
		if o.status == Fail && worst.status != Fail || o.status == Warn && worst.status == OK {
			worst = o
		}
	}
	return worst
}

func (j *judge) missing(t *Table) bool {
	return slices.ContainsFunc(j.Setup.Route.RequiredColumns(), func(name string) bool { return t.column(name) == nil })
}

func typeOf(t *Table, name string) string {
	if c := t.column(name); c != nil {
		return c.Type
	}
	return "none"
}

func timestampType(c *Column, status Status, setting, use string) outcome {
	if c == nil || c.BaseType == "timestamptz" || c.BaseType == "timestamp" {
		return outcome{}
	}
	o := warn("column %s is %s, and %s need timestamptz", c.Name, c.Type, use)
	o.status = status
	return o.cured("name another column in " + setting + ", or leave it out")
}

func headersType(c *Column) outcome {
	switch {
	case c == nil || c.BaseType == "jsonb" || c.BaseType == "json":
		return outcome{}
	case c.Category == "S": // string types
		return warn("column %s of the headers is %s: a row whose text is not a JSON object stops the stream", c.Name, c.Type).cured("make it jsonb, or name none in outbox.columns.headers")
	}
	return fail("column %s of the headers is %s, and headers are a JSON object", c.Name, c.Type).cured("make it jsonb, or name none in outbox.columns.headers")
}

// keyType warns of types whose text is no lasting identity.
func keyType(t *Table, c *Column, use string) outcome {
	switch {
	case c == nil:
		return outcome{}
	case c.BaseType == "bpchar":
		return warn("column %s is %s: PostgreSQL pads it with blanks, which become part of %s", c.Name, c.Type, use).
			cured("make it text", fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s TYPE text;", ident(t.Name.Schema, t.Name.Name), ident(c.Name)))
	case slices.Contains([]string{"float4", "float8", "json", "jsonb", "xml", "money"}, c.BaseType), c.Category == "A", c.Category == "C":
		return warn("column %s is %s, whose text is %s: equal values may have unequal texts", c.Name, c.Type, use).cured("use uuid, text or an integer")
	}
	return outcome{}
}

func (j *judge) notNull(t *Table) outcome {
	columns := &j.Setup.Route.Columns
	var nullable, commands []string
	for _, name := range []string{columns.EventID.Name, columns.AggregateID.Name} {
		if c := t.column(name); c != nil && !c.NotNull {
			nullable = append(nullable, name)
			commands = append(commands, fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s SET NOT NULL;", ident(t.Name.Schema, t.Name.Name), ident(name)))
		}
	}
	switch {
	case t.column(columns.EventID.Name) == nil || t.column(columns.AggregateID.Name) == nil:
		return skip("depends on %s", idColumns)
	case len(nullable) > 0:
		return warn("%s may be NULL: one such row cannot be published and stops the stream", strings.Join(nullable, " and ")).
			cured("let PostgreSQL refuse such rows; the statement reads the whole table", commands...)
	}
	return ok("%s and %s are NOT NULL", columns.EventID.Name, columns.AggregateID.Name)
}

func (j *judge) unique(t *Table) outcome {
	columns := &j.Setup.Route.Columns
	var key []string
	for _, name := range []string{columns.AggregateType.Name, columns.AggregateID.Name, j.Setup.AggregateVersion} {
		if t.column(name) != nil {
			key = append(key, name)
		}
	}
	if j.Setup.AggregateVersion == "" {
		return ok("no aggregate version is configured, so none can be given twice")
	}
	if t.column(j.Setup.AggregateVersion) == nil || t.column(columns.AggregateID.Name) == nil {
		return skip("depends on %s", idColumns)
	}
	for _, unique := range t.Unique {
		if len(without(unique, key)) == 0 {
			return ok("no two rows have the same %s", strings.Join(unique, ", "))
		}
	}
	quoted := make([]string, 0, len(key))
	for _, name := range key {
		quoted = append(quoted, ident(name))
	}
	o := warn("nothing keeps two rows from having the same %s: two writers of one aggregate can then commit in the wrong order unnoticed", strings.Join(key, ", "))
	outside := without(t.PartitionKey, key)
	switch {
	case t.PartitionedByExpression:
		return o.cured("PostgreSQL cannot keep that where the partition key has an expression: see that every writer locks its aggregate before it takes the next version; a unique index on each partition finds those that do not, within the partition")
	case len(outside) > 0:
		return o.cured(fmt.Sprintf("PostgreSQL cannot keep that while the partition key has %s, which a unique key of the whole table would have to contain: see that every writer locks its aggregate before it takes the next version; a unique index on each partition finds those that do not, within the partition", strings.Join(outside, ", ")))
	case t.Partitioned:
		return o.cured("let PostgreSQL refuse such rows; the statement blocks the writers while it builds the index", fmt.Sprintf("ALTER TABLE %s ADD UNIQUE (%s);", ident(t.Name.Schema, t.Name.Name), strings.Join(quoted, ", ")))
	}
	return o.cured("let PostgreSQL refuse such rows; without blocking the writers",
		fmt.Sprintf("CREATE UNIQUE INDEX CONCURRENTLY ON %s (%s);", ident(t.Name.Schema, t.Name.Name), strings.Join(quoted, ", ")))
}

func logged(t *Table) outcome {
	if len(t.Unlogged) == 0 {
		return ok("its rows are in the WAL")
	}
	commands := make([]string, 0, len(t.Unlogged))
	for _, name := range t.Unlogged {
		commands = append(commands, fmt.Sprintf("ALTER TABLE %s SET LOGGED;", name))
	}
	which := "it is UNLOGGED"
	if t.Partitioned {
		which = "partitions are UNLOGGED (" + list(t.Unlogged) + ")"
	}
	return fail("%s: these rows never reach the WAL", which).cured("the statement rewrites the table; rows written before are not published", commands...)
}
