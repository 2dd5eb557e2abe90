package check

import (
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/slotmon"
)

// tableRow is what the catalogs have of a table.
type tableRow struct {
	Kind       string     `json:"kind"`
	Line       []uint32   `json:"line"`
	Partitions int        `json:"partitions"`
	Key        []string   `json:"partition_key"`
	Expression bool       `json:"partition_expression"`
	Unlogged   []string   `json:"unlogged"`
	Columns    []Column   `json:"columns"`
	Unique     [][]string `json:"unique"`
	Leading    []string   `json:"leading"` // first columns of B-trees
	Readable   bool       `json:"readable"`
}

const tableSQL = `WITH RECURSIVE c AS (
		SELECT c.* , n.oid AS schema FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'p', 'v', 'm', 'f')),
	tree AS (SELECT c.oid FROM c UNION SELECT relid::oid FROM c, pg_partition_tree(c.oid)),
	base AS (
		SELECT a.attnum, t.oid, t.typtype, t.typbasetype, t.typname, t.typcategory FROM c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
		UNION ALL
		SELECT b.attnum, t.oid, t.typtype, t.typbasetype, t.typname, t.typcategory FROM base b JOIN pg_type t ON t.oid = b.typbasetype WHERE b.typtype = 'd')
	SELECT json_build_object(
		'kind', c.relkind,
		'line', (SELECT json_agg(oid::int8) FROM (SELECT oid FROM tree UNION SELECT relid::oid FROM c, pg_partition_ancestors(c.oid)) l),
		'partitions', (SELECT count(*) FROM pg_class l JOIN tree USING (oid) WHERE l.relkind <> 'p' AND l.oid <> c.oid),
		'partition_key', (SELECT json_agg(DISTINCT a.attname) FROM pg_partitioned_table p JOIN tree ON tree.oid = p.partrelid
			CROSS JOIN unnest(p.partattrs::int2[]) k(attnum) JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = k.attnum),
		'partition_expression', EXISTS (SELECT FROM pg_partitioned_table p JOIN tree ON tree.oid = p.partrelid WHERE 0 = ANY (p.partattrs::int2[])),
		'unlogged', (SELECT json_agg(l.oid::regclass::text ORDER BY l.oid) FROM pg_class l JOIN tree USING (oid) WHERE l.relkind <> 'p' AND l.relpersistence <> 'p'),
		'columns', (SELECT json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod), 'type_oid', a.atttypid::int8,
				'base_type', b.typname, 'base_oid', b.oid::int8, 'category', b.typcategory, 'not_null', a.attnotnull, 'generated', a.attgenerated) ORDER BY a.attnum)
			FROM pg_attribute a JOIN base b ON b.attnum = a.attnum AND b.typtype <> 'd' WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
		'unique', (SELECT json_agg((SELECT json_agg(a.attname ORDER BY k.ordinality) FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(attnum, ordinality)
				JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum WHERE k.ordinality <= i.indnkeyatts))
			FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL),
		'leading', (SELECT json_agg(DISTINCT a.attname) FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am m ON m.oid = x.relam AND m.amname = 'btree'
			JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL),
		'readable', has_schema_privilege(c.schema, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'))::text
	FROM c`

// kinds are those of pg_class.relkind that are no table.
var kinds = map[string]string{"v": "view", "m": "materialized view", "f": "foreign table"}

func (r *reading) table(name slotmon.Table) Table {
	t := Table{Name: name}
	var row tableRow
	found, err := r.scan(&row, tableSQL, name.Schema, name.Name)
	switch {
	case err != nil:
		t.Unread = oneLine(err)
		return t
	case !found:
		return t
	}
	t.Kind, t.Exists = kinds[row.Kind], kinds[row.Kind] == ""
	t.Line, t.Partitioned, t.Partitions, t.Unlogged = row.Line, row.Kind == "p", row.Partitions, row.Unlogged
	t.PartitionKey, t.PartitionedByExpression = row.Key, row.Expression
	t.Columns, t.Unique, t.Readable = row.Columns, row.Unique, row.Readable
	if t.Exists && t.Readable {
		r.rows(&t, row.Leading)
	}
	return t
}

// The numbers of aggregate types and rows that are looked at.
const (
	mostTypes = 500
	mostRows  = 10_000
	someRows  = 1_000
)

// rows looks at a bounded number of rows, for a bounded time.
func (r *reading) rows(t *Table, leading []string) {
	err := r.briefly(func(tx pgx.Tx) error { return r.readTypes(tx, t, leading) })
	if err == nil {
		err = r.briefly(func(tx pgx.Tx) error { return r.readPayloads(tx, t) })
	}
	if err != nil {
		t.RowsUnread = oneLine(err)
	}
}

// briefly runs queries that the server gives up after a while. A context with
// that deadline would end the connection.
func (r *reading) briefly(query func(pgx.Tx) error) error {
	tx, err := r.conn.BeginTx(r.ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return err
	}
	defer tx.Rollback(r.ctx)
	if _, err := tx.Exec(r.ctx, fmt.Sprintf("SET LOCAL statement_timeout = %d; SET LOCAL lock_timeout = %d", sampleTimeout.Milliseconds(), lockTimeout.Milliseconds())); err != nil {
		return err
	}
	return query(tx)
}

// readTypes goes through an index from one type to the next, where there is
// one, and else looks at the first rows.
func (r *reading) readTypes(tx pgx.Tx, t *Table, leading []string) error {
	name := r.setup.Route.Columns.AggregateType.Name
	t.TypesAll = true
	if t.column(name) == nil {
		return nil
	}
	table, column := ident(t.Name.Schema, t.Name.Name), ident(name)
	sql := fmt.Sprintf(`SELECT DISTINCT %[2]s::text, count(*) OVER () FROM (SELECT %[2]s FROM %[1]s LIMIT %[3]d) s LIMIT %[4]d`, table, column, mostRows, mostTypes)
	if slices.Contains(leading, name) {
		sql = fmt.Sprintf(`WITH RECURSIVE t(v) AS (
			(SELECT %[2]s FROM %[1]s WHERE %[2]s IS NOT NULL ORDER BY 1 LIMIT 1)
			UNION ALL SELECT (SELECT %[2]s FROM %[1]s WHERE %[2]s > t.v ORDER BY 1 LIMIT 1) FROM t WHERE t.v IS NOT NULL)
			SELECT v::text, 0::int8 FROM t WHERE v IS NOT NULL LIMIT %[3]d`, table, column, mostTypes)
	}
	rows, err := tx.Query(r.ctx, sql)
	if err != nil {
		return err
	}
	defer rows.Close()
	found := 0
	for rows.Next() {
		var value *string
		var seen int64
		if err := rows.Scan(&value, &seen); err != nil {
			return err
		}
		found++
		if value != nil {
			t.Types = append(t.Types, *value)
		}
		t.TypesAll = seen < mostRows && found < mostTypes
	}
	return rows.Err()
}

// readPayloads measures the first rows.
func (r *reading) readPayloads(tx pgx.Tx, t *Table) error {
	c := t.column(r.setup.Route.Columns.Payload.Name)
	if c == nil {
		return nil
	}
	value := ident(c.Name)
	if c.BaseType != "bytea" {
		value += "::text"
	}
	sql := fmt.Sprintf("SELECT coalesce(max(octet_length(v)), 0)::int8, count(*) FROM (SELECT %s AS v FROM %s LIMIT %d) s", value, ident(t.Name.Schema, t.Name.Name), someRows)
	return tx.QueryRow(r.ctx, sql).Scan(&t.LargestPayload, &t.PayloadRows)
}
