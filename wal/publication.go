package wal

import (
	"fmt"
	"slices"
	"strings"
)

// known is what the catalogs say about the publication's tables. It implements
// Tables.
type known struct {
	outbox      map[uint32]bool // oids of outbox tables and of their partitions
	foreign     map[uint32]bool // oids of the publication's other tables
	names       map[Table]bool
	fingerprint string
}

// Classify goes by oid, since a partition arrives under its own name unless
// the publication publishes via the root. A table that was dropped and created
// again is still the outbox in WAL older than that.
func (k *known) Classify(rel *Relation) Class {
	switch {
	case k.outbox[rel.ID] || k.names[Table{rel.Schema, rel.Name}]:
		return Outbox
	case k.foreign[rel.ID]:
		return Foreign
	}
	return Unknown
}

type publicationRow struct {
	Row struct {
		Insert  bool `json:"pubinsert"`
		ViaRoot bool `json:"pubviaroot"`
	} `json:"row"`
	OID  string `json:"oid"`
	XMin string `json:"xmin"`
}

type publishedTable struct {
	Schema  string   `json:"schemaname"`
	Name    string   `json:"tablename"`
	OID     uint32   `json:"oid"`
	Columns []string `json:"attnames"` // absent before 15
	Filter  *string  `json:"rowfilter"`
}

type outboxTable struct {
	Schema  string   `json:"schema"`
	Name    string   `json:"name"`
	OID     uint32   `json:"oid"`
	Tree    []uint32 `json:"tree"` // itself and every partition
	Leaves  []leaf   `json:"leaves"`
	Columns []string `json:"columns"`
}

// leaf is a table that holds rows: the outbox table itself, or a partition.
type leaf struct {
	Name        string   `json:"name"`
	Persistence string   `json:"persistence"`
	Ancestors   []uint32 `json:"ancestors"` // itself and every table it is a partition of
}

func (c *Config) checkPublication(cat *catalog) (*known, error) {
	quoted := quoteLiteral(c.Publication)
	publications, err := query[publicationRow](cat, "SELECT json_build_object('row', row_to_json(p), 'oid', p.oid::text, 'xmin', p.xmin::text) FROM pg_catalog.pg_publication p WHERE pubname = "+quoted)
	if err != nil {
		return nil, fmt.Errorf("read publication %s: %w", c.Publication, err)
	}
	if len(publications) == 0 {
		return nil, c.publicationMissing()
	}
	if !publications[0].Row.Insert {
		return nil, c.stop(PublicationUnusable, nil,
			fmt.Sprintf("ALTER PUBLICATION %s SET (publish = 'insert')", quoteIdentifier(c.Publication)),
			"publication %s does not publish inserts", c.Publication)
	}
	published, err := query[publishedTable](cat, `SELECT row_to_json(x) FROM (SELECT t.*, c.oid::int8 AS oid FROM pg_catalog.pg_publication_tables t
		JOIN pg_catalog.pg_namespace n ON n.nspname = t.schemaname JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename
		WHERE t.pubname = `+quoted+") x")
	if err != nil {
		return nil, fmt.Errorf("read the tables of publication %s: %w", c.Publication, err)
	}
	k := &known{outbox: map[uint32]bool{}, foreign: map[uint32]bool{}, names: map[Table]bool{}}
	for _, t := range published {
		k.foreign[t.OID] = true
	}
	for _, table := range c.Tables {
		found, err := c.outboxTable(cat, table)
		if err != nil {
			return nil, err
		}
		if err := c.checkPublished(found, published); err != nil {
			return nil, err
		}
		k.names[table] = true
		for _, oid := range found.Tree {
			k.outbox[oid] = true
			delete(k.foreign, oid)
		}
	}
	k.fingerprint, err = c.fingerprint(cat, publications[0])
	return k, err
}

func (c *Config) outboxTable(cat *catalog, table Table) (*outboxTable, error) {
	rows, err := query[outboxTable](cat, `SELECT row_to_json(x) FROM (
		SELECT n.nspname AS schema, c.relname AS name, c.oid::int8 AS oid,
			(SELECT array_agg(o) FROM (SELECT c.oid::int8 AS o UNION SELECT relid::oid::int8 FROM pg_catalog.pg_partition_tree(c.oid)) t) AS tree,
			(SELECT json_agg(json_build_object('name', l.oid::regclass::text, 'persistence', l.relpersistence, 'ancestors',
				(SELECT array_agg(o) FROM (SELECT l.oid::int8 AS o UNION SELECT relid::oid::int8 FROM pg_catalog.pg_partition_ancestors(l.oid)) a)))
				FROM pg_catalog.pg_class l WHERE l.relkind <> 'p'
				AND l.oid IN (SELECT c.oid UNION SELECT relid FROM pg_catalog.pg_partition_tree(c.oid))) AS leaves,
			(SELECT array_agg(attname::text) FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND attnum > 0 AND NOT attisdropped) AS columns
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = `+quoteLiteral(table.Schema)+" AND c.relname = "+quoteLiteral(table.Name)+" AND c.relkind IN ('r', 'p')) x")
	if err != nil {
		return nil, fmt.Errorf("read table %s: %w", table, err)
	}
	if len(rows) == 0 {
		if kind, err := c.otherKind(cat, table); err != nil || kind != "" {
			if err != nil {
				return nil, fmt.Errorf("read table %s: %w", table, err)
			}
			return nil, c.stop(TableUnusable, nil, "name the table itself in outbox.tables", "outbox table %s is a %s, and only the rows of tables are in the WAL", table, kind)
		}
		return nil, c.stop(TableUnusable, nil, "create it with `cdcpub init`, or correct outbox.tables", "outbox table %s does not exist in database %s", table, c.database)
	}
	for _, leaf := range rows[0].Leaves {
		if leaf.Persistence != "p" {
			return nil, c.stop(TableUnusable, nil, fmt.Sprintf("ALTER TABLE %s SET LOGGED", leaf.Name),
				"outbox table %s is UNLOGGED: its rows never reach the WAL", leaf.Name)
		}
	}
	return &rows[0], nil
}

// otherKind is what has the name of the table and is none; "" if nothing has.
func (c *Config) otherKind(cat *catalog, table Table) (string, error) {
	kinds, err := query[string](cat, `SELECT to_json(CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' ELSE 'relation of another kind' END)
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = `+quoteLiteral(table.Schema)+" AND c.relname = "+quoteLiteral(table.Name)+" AND c.relkind NOT IN ('r', 'p')")
	if err != nil || len(kinds) == 0 {
		return "", err
	}
	return kinds[0], nil
}

// checkPublished makes sure that every row and every configured column of the
// table, or of its leaf partitions, is published.
func (c *Config) checkPublished(table *outboxTable, published []publishedTable) error {
	name := Table{table.Schema, table.Name}
	add := fmt.Sprintf("ALTER PUBLICATION %s ADD TABLE %s.%s; rows written before that will not be published", quoteIdentifier(c.Publication), quoteIdentifier(name.Schema), quoteIdentifier(name.Name))
	covered := make(map[uint32]bool)
	for _, p := range published {
		if !slices.Contains(table.Tree, p.OID) {
			continue
		}
		covered[p.OID] = true
		if p.Filter != nil {
			return c.stop(PublicationUnusable, nil, "remove the row filter", "publication %s has a row filter on %s (%s): rows that it excludes would be lost", c.Publication, name, *p.Filter)
		}
		for _, column := range c.Columns {
			if !slices.Contains(table.Columns, column) {
				return c.stop(TableUnusable, nil, "correct outbox.columns, outbox.headers or kafka.topic, or add the column", "outbox table %s has no column %s", name, column)
			}
			if p.Columns != nil && !slices.Contains(p.Columns, column) {
				return c.stop(PublicationUnusable, nil, "add the column to the publication's column list", "publication %s does not publish column %s of %s", c.Publication, column, name)
			}
		}
	}
	if len(table.Leaves) == 0 && len(covered) == 0 {
		return c.stop(TableUnusable, nil, "create its first partition", "outbox table %s has no partition, so that nobody can tell whether publication %s contains it", name, c.Publication)
	}
	for _, leaf := range table.Leaves {
		if !slices.ContainsFunc(leaf.Ancestors, func(oid uint32) bool { return covered[oid] }) {
			return c.stop(PublicationUnusable, nil, add, "publication %s does not contain outbox table %s (rows of %s would be lost)", c.Publication, name, leaf.Name)
		}
	}
	return nil
}

// fingerprint is made of the catalog rows that decide whether outbox rows are
// published. Dropping a table from a publication and adding it again leaves no
// other trace than new rows here. Rows of partitions are left out: a new
// partition is no gap.
func (c *Config) fingerprint(cat *catalog, publication publicationRow) (string, error) {
	oids := make([]string, 0, len(c.Tables))
	for _, table := range c.Tables {
		oids = append(oids, fmt.Sprintf("to_regclass(%s)", quoteLiteral(quoteIdentifier(table.Schema)+"."+quoteIdentifier(table.Name))))
	}
	rows, err := query[string](cat, "SELECT to_json(oid::text || ':' || xmin::text) FROM pg_catalog.pg_publication_rel WHERE prpubid = "+publication.OID+
		" AND prrelid IN ("+strings.Join(oids, ", ")+") ORDER BY oid")
	if err != nil {
		return "", fmt.Errorf("read publication %s: %w", c.Publication, err)
	}
	schemas, err := c.schemaFingerprint(cat, publication)
	if err != nil {
		return "", fmt.Errorf("read publication %s: %w", c.Publication, err)
	}
	return publication.OID + ":" + publication.XMin + " " + strings.Join(append(rows, schemas...), " "), nil
}

// schemaFingerprint is the part of FOR TABLES IN SCHEMA, which came with 15.
func (c *Config) schemaFingerprint(cat *catalog, publication publicationRow) ([]string, error) {
	exists, err := query[bool](cat, "SELECT to_json(to_regclass('pg_catalog.pg_publication_namespace') IS NOT NULL)")
	if err != nil || !exists[0] {
		return nil, err
	}
	names := make([]string, 0, len(c.Tables))
	for _, table := range c.Tables {
		names = append(names, quoteLiteral(table.Schema))
	}
	return query[string](cat, "SELECT to_json('schema ' || p.oid::text || ':' || p.xmin::text) FROM pg_catalog.pg_publication_namespace p JOIN pg_catalog.pg_namespace n ON n.oid = p.pnnspid"+
		" WHERE p.pnpubid = "+publication.OID+" AND n.nspname IN ("+strings.Join(names, ", ")+") ORDER BY p.oid")
}
