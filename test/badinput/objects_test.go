package badinput

import "github.com/cdcpub/cdcpub/test/harness"

// What stands in the place of the outbox table.
const (
	asView         = "ALTER TABLE outbox RENAME TO events;\nCREATE VIEW outbox AS SELECT * FROM events"
	asMaterialized = "ALTER TABLE outbox RENAME TO events;\nCREATE MATERIALIZED VIEW outbox AS SELECT * FROM events"
	asForeign      = "DROP TABLE outbox;\nCREATE FOREIGN DATA WRAPPER elsewhere;\nCREATE SERVER elsewhere FOREIGN DATA WRAPPER elsewhere;\nCREATE FOREIGN TABLE outbox (event_id uuid) SERVER elsewhere"
	asUnlogged     = "ALTER PUBLICATION DBNAME DROP TABLE outbox;\nALTER TABLE outbox SET UNLOGGED"
)

const dropSlot = "SELECT pg_drop_replication_slot('DBNAME');\n"

// rowsLongest is for what may cost data: the place in the WAL, the
// event, what is wrong and what that means for the rows behind it must
// all be said.
const rowsLongest = 650

// objects are mistakes with slot, publication and table.
var objects = []mistake{
	{name: "no slot", prepare: dropSlot, code: 3, names: []string{"slot cdcpub_db", "cdcpub init"}},
	{name: "a slot of another plugin", prepare: dropSlot + "SELECT pg_create_logical_replication_slot('DBNAME', 'test_decoding')", code: 3, names: []string{"test_decoding", "pgoutput"}},
	{name: "a slot of another plugin, init", args: []string{"init"}, prepare: dropSlot + "SELECT pg_create_logical_replication_slot('DBNAME', 'test_decoding')", code: 3, names: []string{"pgoutput"}},
	{name: "a slot of another database", code: 3, names: []string{"slot cdcpub_db", "database"}, first: func(s *stand) {
		s.elsewhere = harness.Database(s.t, s.server)
		s.replace = append([]string{"/DBNAME?", "/" + s.elsewhere + "?"}, s.replace...)
	}},
	{name: "a lost slot", longest: rowsLongest, code: 4, names: []string{"slot cdcpub_db", "lost", "cdcpub slot drop"}, first: func(s *stand) {
		server := shared.Postgres(s.t, "", "max_slot_wal_keep_size=1MB")
		s.point(server, harness.Database(s.t, server))
		s.owner = server.URL(s.elsewhere)
		s.outbox()
		for range 4 {
			s.execute("SELECT pg_logical_emit_message(false, 'fill', 'one record, so that there is a segment to leave')")
			s.execute("SELECT pg_switch_wal()")
		}
		s.execute("CHECKPOINT")
	}},
	{name: "a two-phase slot", prepare: dropSlot + "SELECT pg_create_logical_replication_slot('DBNAME', 'pgoutput', false, true)", code: 3, names: []string{"two_phase"}},
	{name: "a physical slot", prepare: dropSlot + "SELECT pg_create_physical_replication_slot('DBNAME')", code: 3, names: []string{"physical"}},
	{name: "no publication", prepare: "DROP PUBLICATION DBNAME", code: 3, names: []string{"publication cdcpub_db", "cdcpub init"}},
	{name: "a publication without the table", prepare: "ALTER PUBLICATION DBNAME DROP TABLE outbox", code: 3, names: []string{"public.outbox", "ALTER PUBLICATION"}},
	{name: "a publication without inserts", prepare: "ALTER PUBLICATION DBNAME SET (publish = 'update')", code: 3, names: []string{"ALTER PUBLICATION"}},
	{name: "a row filter", prepare: "ALTER PUBLICATION DBNAME SET TABLE outbox WHERE (aggregate_version > 1)", code: 3, names: []string{"row filter", "public.outbox"}},
	{name: "a column list without the payload", prepare: "ALTER PUBLICATION DBNAME SET TABLE outbox (event_id, aggregate_type, aggregate_id, aggregate_version, event_type)", code: 3, names: []string{"payload"}},
	{name: "no table", prepare: "DROP TABLE outbox", code: 3, names: []string{"public.outbox", "cdcpub init"}},
	{name: "a view in the place of the table", prepare: asView, code: 3, names: []string{"public.outbox"}},
	{name: "a view in the place of the table, init", args: initialise, prepare: asView, code: 3, names: []string{"public.outbox", "outbox.tables"}},
	{name: "a view in the place of the table, check", args: checking, prepare: asView, code: 3, names: []string{"public.outbox", "view"}},
	{name: "a materialized view in the place of the table", prepare: asMaterialized, code: 3, names: []string{"public.outbox"}},
	{name: "a materialized view in the place of the table, init", args: initialise, prepare: asMaterialized, code: 3, names: []string{"public.outbox", "outbox.tables"}},
	{name: "a materialized view in the place of the table, check", args: checking, prepare: asMaterialized, code: 3, names: []string{"public.outbox", "materialized view"}},
	{name: "a foreign table in the place of the table", prepare: asForeign, code: 3, names: []string{"public.outbox"}},
	{name: "a foreign table in the place of the table, init", args: initialise, prepare: asForeign, code: 3, names: []string{"public.outbox", "outbox.tables"}},
	{name: "a foreign table in the place of the table, check", args: checking, prepare: asForeign, code: 3, names: []string{"public.outbox", "foreign table"}},
	{name: "an UNLOGGED table, init", args: initialise, prepare: asUnlogged, code: 3, names: []string{"UNLOGGED", "SET LOGGED"}},
	{name: "an UNLOGGED table, check", args: checking, prepare: asUnlogged, code: 3, names: []string{"UNLOGGED", "SET LOGGED"}},
	{name: "no slot, check", args: checking, prepare: dropSlot, code: 3, names: []string{"slot.exists", "init"}},
	{name: "no publication, check", args: checking, prepare: "DROP PUBLICATION DBNAME", code: 3, names: []string{"publication.exists", "init"}},
	{name: "no such column", prepare: "ALTER TABLE outbox RENAME payload TO body", code: 3, names: []string{"payload", "outbox.columns"}},
	{name: "an UNLOGGED table", prepare: asUnlogged, code: 3, names: []string{"UNLOGGED", "SET LOGGED"}},
	{name: "a row without the event id", longest: rowsLongest, code: 4, names: []string{"event_id", "public.outbox"}, prepare: "ALTER TABLE outbox DROP CONSTRAINT outbox_pkey;\nALTER TABLE outbox ALTER event_id DROP NOT NULL;\n" +
		"INSERT INTO outbox (event_id, aggregate_type, aggregate_id, payload) VALUES (NULL, 'order', '1', '{}')", env: []string{"CDCPUB_ON_STOP=exit"}},
	{name: "a row whose topic cannot be named", longest: rowsLongest, code: 4, names: []string{"kafka.topic", "public.outbox"}, env: []string{"CDCPUB_ON_STOP=exit"}, first: func(s *stand) {
		s.insert("aggregate_type, aggregate_id, payload", "'order/new', '1', '{}'")
	}},
}
