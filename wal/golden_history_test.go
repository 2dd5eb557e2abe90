package wal

// The history that the goldens are recorded from, and who looks at it.

// since is SQL that only a major version and the later ones know.
type since struct {
	major int
	sql   string
}

var goldenSetup = []since{
	{0, `CREATE SCHEMA app`},
	{0, `CREATE TYPE app.mood AS ENUM ('calm', 'cross')`},
	{0, `CREATE DOMAIN app.name AS text CHECK (VALUE <> 'nobody')`},
	{0, `CREATE TYPE app.pair AS (a int, b text)`},
	{0, `CREATE TABLE app.outbox (id uuid PRIMARY KEY, aggregate_id text, version bigint, payload jsonb, note varchar(20), at timestamptz,
		amount numeric(12,2), ratio float8, bin bytea, span interval, feeling app.mood, tags text[], done bool)`},
	{0, `CREATE TABLE app."outbox Kinds" (id int PRIMARY KEY, i2 smallint, o oid, f4 real, c char(5), "quote""d" text, who app.name, pair app.pair,
		j json, d date, t time(3), tz timetz, ts timestamp(6), r int4range, mr int4multirange, ip inet, net cidr, mac macaddr, bits bit(3), more varbit,
		spot point, words tsvector, x xml, moods app.mood[], grid int[], lsn pg_lsn, one "char")`},
	{0, `CREATE TABLE app.outbox_big (id int PRIMARY KEY, payload jsonb, note text)`},
	{0, `CREATE TABLE app.outbox_made (id int PRIMARY KEY, total int, doubled int GENERATED ALWAYS AS (total * 2) STORED)`},
	{18, `ALTER TABLE app.outbox_made ADD tripled int GENERATED ALWAYS AS (total * 3) VIRTUAL`},
	{0, `CREATE TABLE app.outbox_parts (id int, region text, payload text, PRIMARY KEY (id, region)) PARTITION BY LIST (region)`},
	{0, `CREATE TABLE app.outbox_parts_eu PARTITION OF app.outbox_parts FOR VALUES IN ('eu')`},
	// Attached with another order of columns, and a dropped one.
	{0, `CREATE TABLE app.outbox_parts_us (payload text, gone int, region text NOT NULL, id int NOT NULL)`},
	{0, `ALTER TABLE app.outbox_parts_us DROP gone`},
	{0, `ALTER TABLE app.outbox_parts ATTACH PARTITION app.outbox_parts_us FOR VALUES IN ('us')`},
	{0, `CREATE TABLE app.orders (id int PRIMARY KEY, total numeric)`},
	{0, `SELECT pg_replication_origin_create('elsewhere')`},
	{0, `CREATE PUBLICATION inserts FOR TABLE app.outbox, app."outbox Kinds", app.outbox_made, app.outbox_parts WITH (publish = 'insert')`},
	{0, `CREATE PUBLICATION via_root FOR TABLE app.outbox_parts WITH (publish = 'insert', publish_via_partition_root = true)`},
	{0, `CREATE PUBLICATION everything FOR TABLE app.outbox, app.outbox_big, app.outbox_parts, app.orders`},
	{18, `CREATE PUBLICATION made FOR TABLE app.outbox_made WITH (publish = 'insert', publish_generated_columns = stored)`},
}

// goldenHistory has a transaction per entry; one statement after the other.
var goldenHistory = [][]string{
	{`INSERT INTO app.outbox VALUES ('00000000-0000-4000-8000-000000000001', 'order-1', 1, '{"b": 1, "a": [null, "grüße €"]}', 'plain', '2026-01-02 03:04:05.678901+00',
		12345.60, 0.1::float8 + 0.2::float8, '\x00ff10', '1 year 2 mons 3 days 04:05:06.789', 'cross', '{a,"b c",NULL}', true)`},
	{`INSERT INTO app.outbox (id) VALUES ('00000000-0000-4000-8000-000000000002')`},
	{`INSERT INTO app.outbox VALUES ('00000000-0000-4000-8000-000000000003', '', 0, '""', '', 'infinity', 'NaN', '-Infinity', '', '0', 'calm', '{}', false)`},
	{`INSERT INTO app."outbox Kinds" VALUES (1, -32768, 4294967295, 1e-7, 'ab', E'it''s "quoted"\n\\ \t', 'ann', ROW(1, 'b,"c'), '{"a":  1.0}', '0044-03-15 BC', '23:59:60',
		'12:00:00+05:30', '294276-12-31 23:59:59.999999', '[1,5)', '{[1,3),[5,)}', '::1/64', '10.0.0.0/8', '08:00:2b:01:02:03', B'101', B'', '(1.5,-2)', 'a:1 b:2A',
		'<a>ü</a>', '{calm,NULL}', '{{1,2},{3,NULL}}', '16/B374D848', 'x')`,
		`INSERT INTO app."outbox Kinds" (id) VALUES (2)`},
	{`INSERT INTO app.outbox (id, version) VALUES ('00000000-0000-4000-8000-000000000004', 1), ('00000000-0000-4000-8000-000000000005', 2)`,
		`INSERT INTO app.outbox (id, version) VALUES ('00000000-0000-4000-8000-000000000006', 3)`},
	{`INSERT INTO app.outbox (id, note) VALUES ('00000000-0000-4000-8000-000000000007', 'before savepoint')`, `SAVEPOINT s`,
		`INSERT INTO app.outbox (id, note) VALUES ('00000000-0000-4000-8000-000000000008', 'rolled back')`, `ROLLBACK TO s`,
		`INSERT INTO app.outbox (id, note) VALUES ('00000000-0000-4000-8000-000000000009', 'after savepoint')`},
	{`INSERT INTO app.outbox (id, note) VALUES ('00000000-0000-4000-8000-00000000000a', 'old columns')`, `ALTER TABLE app.outbox ADD COLUMN added text DEFAULT 'new'`,
		`ALTER TABLE app.outbox DROP COLUMN tags`,
		`INSERT INTO app.outbox (id, note) VALUES ('00000000-0000-4000-8000-00000000000b', 'new columns')`},
	{`INSERT INTO app.outbox_parts VALUES (1, 'eu', 'one'), (2, 'us', 'two')`},
	{`INSERT INTO app.outbox_parts_us VALUES ('into the leaf', 'us', 3)`},
	{`INSERT INTO app.outbox_made VALUES (1, 21), (2, NULL)`},
	{`INSERT INTO app.outbox (id, note) VALUES ('00000000-0000-4000-8000-00000000000c', 'deleted at once')`,
		`DELETE FROM app.outbox WHERE note = 'deleted at once'`},
	// Two relations in turn, ours and one that is not.
	{`INSERT INTO app.outbox (id, version) VALUES ('00000000-0000-4000-8000-000000000010', 10)`, `INSERT INTO app.orders VALUES (10, 1)`,
		`INSERT INTO app.outbox_big VALUES (10, '{}')`, `INSERT INTO app.outbox (id, version) VALUES ('00000000-0000-4000-8000-000000000011', 11)`,
		`UPDATE app.orders SET total = 2 WHERE id = 10`, `INSERT INTO app.outbox_big VALUES (11, NULL, 'eleven')`},
	// A transaction of another server, which this one replays.
	{`SELECT pg_replication_origin_session_setup('elsewhere')`, `SELECT pg_replication_origin_xact_setup('0/1234', '2026-01-01 00:00:00+00')`,
		`INSERT INTO app.outbox (id, note) VALUES ('00000000-0000-4000-8000-000000000012', 'from elsewhere')`},
	{`SELECT pg_replication_origin_session_reset()`},
	{`SELECT pg_logical_emit_message(true, 'golden', 'within')`, `INSERT INTO app.outbox (id, note) VALUES ('00000000-0000-4000-8000-000000000013', 'beside a message')`,
		`SELECT pg_logical_emit_message(false, 'golden', 'at once')`},
	{`INSERT INTO app.outbox_big SELECT 1, jsonb_build_object('text', (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 400) i)), 'TOAST'`},
	{`UPDATE app.outbox_big SET note = 'TOAST unchanged' WHERE id = 1`},
	{`UPDATE app.outbox SET note = 'same key' WHERE version = 1`},
	{`UPDATE app.outbox SET id = '00000000-0000-4000-8000-0000000000ff' WHERE version = 2`},
	{`ALTER TABLE app.orders REPLICA IDENTITY FULL`, `INSERT INTO app.orders VALUES (1, 9.99)`, `UPDATE app.orders SET total = 10 WHERE id = 1`, `DELETE FROM app.orders WHERE id = 1`},
	{`DELETE FROM app.outbox WHERE version = 3`},
	{`INSERT INTO app.orders VALUES (2, 1)`},
	{`TRUNCATE app.orders, app.outbox_parts RESTART IDENTITY CASCADE`},
	// More than logical_decoding_work_mem: whoever allows it gets it streamed.
	{`INSERT INTO app.orders SELECT 1000 + i FROM generate_series(1, 900) i`, `INSERT INTO app.outbox_big VALUES (12, '{}', 'behind a large transaction of others')`},
	{`INSERT INTO app.outbox (id, note) VALUES ('00000000-0000-4000-8000-00000000000d', 'the end')`},
}

// goldenView is one way to look at the history.
type goldenView struct {
	name, publication string
	args              []string
	// from is the first major version that has it.
	from int
	// tables and kinds of messages (I, U, D and T) are what the publication
	// has, written by hand.
	tables []string
	kinds  string
	// refused is a type of message that we never ask for and do not read; the
	// golden has nothing else.
	refused byte
}

var goldenViews = []goldenView{
	{name: "inserts", publication: "inserts", kinds: "I",
		tables: []string{`app.outbox`, `app."outbox Kinds"`, `app.outbox_made`, `app.outbox_parts_eu`, `app.outbox_parts_us`}},
	{name: "via_root", publication: "via_root", kinds: "I", tables: []string{"app.outbox_parts"}},
	{name: "everything", publication: "everything", kinds: "IUDT",
		tables: []string{"app.outbox", "app.outbox_big", "app.outbox_parts_eu", "app.outbox_parts_us", "app.orders"}},
	{name: "made", publication: "made", kinds: "I", from: 18, tables: []string{"app.outbox_made"}},
	{name: "messages", publication: "everything", args: []string{"messages 'true'"}, refused: 'M'},
	{name: "streaming", publication: "everything", args: []string{"proto_version '2'", "streaming 'on'"}, refused: 'S'},
}

func goldenViewOf(name string) goldenView {
	for _, v := range goldenViews {
		if v.name == name {
			return v
		}
	}
	return goldenView{}
}
