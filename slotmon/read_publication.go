package slotmon

import (
	"encoding/json"
	"strconv"
	"strings"
)

// published is what the catalogs have of a publication and of the tables that
// should be in it.
type published struct {
	Publication *struct {
		OID     string `json:"oid"`
		XMin    string `json:"xmin"`
		Inserts bool   `json:"pubinsert"`
		All     bool   `json:"puballtables"`
	} `json:"publication"`
	// Relations are the tables that exist and all their partitions.
	Relations []relation `json:"relations"`
	// Members are the publication's rows for any relation in a Line, Schemas
	// those for its schema (15).
	Members []member    `json:"members"`
	Schemas []schemaRow `json:"schemas"`
}

type relation struct {
	Root        uint32 `json:"root"` // oid of the table that was asked for
	OID         uint32 `json:"oid"`
	Schema      string `json:"schema"`
	Name        string `json:"name"`
	Partitioned bool   `json:"partitioned"` // holds no rows itself
	Persistence string `json:"persistence"`
	Line        []step `json:"line"` // itself and every table it is a partition of
}

type step struct {
	OID    uint32 `json:"oid"`
	Schema uint32 `json:"schema"`
}

type member struct {
	OID      string   `json:"oid"`
	XMin     string   `json:"xmin"`
	Relation uint32   `json:"relation"`
	Except   bool     `json:"except"` // 19: not published, of all tables
	Filter   bool     `json:"filter"`
	Columns  []string `json:"columns"` // nil: all
}

type schemaRow struct {
	OID    string `json:"oid"`
	XMin   string `json:"xmin"`
	Schema uint32 `json:"schema"`
}

// publicationSQL has three parameters: the database to look in, the publication,
// the tables as JSON. It reads the catalogs and not pg_publication_tables, which
// lists every table of the database for a publication of all tables. Columns
// that a version lacks are read through JSON.
const publicationSQL = `WITH wanted AS (
		SELECT c.oid FROM json_to_recordset($3::json) AS w("Schema" text, "Name" text)
		JOIN pg_namespace n ON n.nspname = w."Schema"
		JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w."Name" AND c.relkind IN ('r', 'p')),
	relation AS (
		SELECT w.oid AS root, c.oid, c.relname, c.relnamespace, c.relkind, c.relpersistence FROM wanted w
		CROSS JOIN LATERAL (SELECT w.oid UNION SELECT relid::oid FROM pg_partition_tree(w.oid)) t(oid)
		JOIN pg_class c ON c.oid = t.oid),
	line AS (
		SELECT r.root, r.oid, c.oid AS step, c.relnamespace FROM relation r
		CROSS JOIN LATERAL (SELECT r.oid UNION SELECT relid::oid FROM pg_partition_ancestors(r.oid)) a(oid)
		JOIN pg_class c ON c.oid = a.oid),
	lines AS (
		SELECT root, oid, json_agg(json_build_object('oid', step::int8, 'schema', relnamespace::int8)) AS line FROM line GROUP BY root, oid)
	SELECT json_build_object(
		'publication', (SELECT json_build_object('oid', p.oid::text, 'xmin', p.xmin::text, 'pubinsert', p.pubinsert, 'puballtables', p.puballtables)
			FROM pg_publication p WHERE p.pubname = $2),
		'relations', (SELECT json_agg(json_build_object('root', r.root::int8, 'oid', r.oid::int8, 'schema', n.nspname, 'name', r.relname,
				'partitioned', r.relkind = 'p', 'persistence', r.relpersistence,
				'line', l.line)
				ORDER BY r.root, n.nspname, r.relname)
			FROM relation r JOIN pg_namespace n ON n.oid = r.relnamespace JOIN lines l ON l.root = r.root AND l.oid = r.oid),
		'members', (SELECT json_agg(json_build_object('oid', m.oid::text, 'xmin', m.xmin::text, 'relation', m.prrelid::int8,
				'except', coalesce((to_jsonb(m) ->> 'prexcept')::bool, false), 'filter', to_jsonb(m) ->> 'prqual' IS NOT NULL,
				'columns', (SELECT json_agg(a.attname) FROM jsonb_array_elements_text(nullif(to_jsonb(m) -> 'prattrs', 'null')) k
					JOIN pg_attribute a ON a.attrelid = m.prrelid AND a.attnum = k::int2)) ORDER BY m.oid)
			FROM pg_publication_rel m JOIN pg_publication p ON p.oid = m.prpubid
			WHERE p.pubname = $2 AND m.prrelid IN (SELECT step FROM line)),
		'schemas', `

const (
	schemasSQL = `(SELECT json_agg(json_build_object('oid', s.oid::text, 'xmin', s.xmin::text, 'schema', s.pnnspid::int8) ORDER BY s.oid)
			FROM pg_publication_namespace s JOIN pg_publication p ON p.oid = s.pnpubid
			WHERE p.pubname = $2 AND s.pnnspid IN (SELECT relnamespace FROM line))`
	noSchemasSQL     = "NULL"
	whereDatabaseSQL = ") WHERE current_database() = $1"
)

// askPublication asks for the publication, if the connection is to the database
// that it is expected in. FOR TABLES IN SCHEMA and its catalog came with 15.
func askPublication(b *batch, serverVersion string, expected *Expected) *[]published {
	schemas := schemasSQL
	if major(serverVersion) < 15 {
		schemas = noSchemasSQL
	}
	tables, err := json.Marshal(expected.Tables)
	if err != nil || expected.Tables == nil { // strings always marshal
		tables = []byte("[]")
	}
	return ask[published](b, "the publication", publicationSQL+schemas+whereDatabaseSQL,
		expected.Database, expected.Publication, string(tables))
}

// major reads 17 from "17.9 (Debian 17.9-1)" and 19 from "19beta1".
func major(serverVersion string) int {
	end := strings.IndexFunc(serverVersion, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(serverVersion)
	}
	n, err := strconv.Atoi(serverVersion[:end])
	if err != nil {
		return 0
	}
	return n
}
