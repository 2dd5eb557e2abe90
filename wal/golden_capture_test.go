package wal

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/cdcpub/cdcpub/internal/pgserver"
)

var goldenSetup = []string{
	`CREATE SCHEMA app`,
	`CREATE TYPE app.mood AS ENUM ('calm', 'cross')`,
	`CREATE TABLE app.outbox (id uuid PRIMARY KEY, aggregate_id text, version bigint, payload jsonb, note varchar(20), at timestamptz,
		amount numeric(12,2), ratio float8, bin bytea, span interval, feeling app.mood, tags text[], done bool)`,
	`CREATE TABLE app.outbox_big (id int PRIMARY KEY, payload jsonb, note text)`,
	`CREATE TABLE app.outbox_parts (id int, region text, payload text, PRIMARY KEY (id, region)) PARTITION BY LIST (region)`,
	`CREATE TABLE app.outbox_parts_eu PARTITION OF app.outbox_parts FOR VALUES IN ('eu')`,
	`CREATE TABLE app.outbox_parts_us PARTITION OF app.outbox_parts FOR VALUES IN ('us')`,
	`CREATE TABLE app.orders (id int PRIMARY KEY, total numeric)`,
	`CREATE PUBLICATION inserts FOR TABLE app.outbox, app.outbox_parts WITH (publish = 'insert')`,
	`CREATE PUBLICATION via_root FOR TABLE app.outbox_parts WITH (publish = 'insert', publish_via_partition_root = true)`,
	`CREATE PUBLICATION everything FOR TABLE app.outbox, app.outbox_big, app.outbox_parts, app.orders`,
}

var goldenPublications = []string{"inserts", "via_root", "everything"}

// goldenHistory has a transaction per entry; one statement after the other.
var goldenHistory = [][]string{
	{`INSERT INTO app.outbox VALUES ('00000000-0000-4000-8000-000000000001', 'order-1', 1, '{"b": 1, "a": [null, "grüße €"]}', 'plain', '2026-01-02 03:04:05.678901+00',
		12345.60, 0.1::float8 + 0.2::float8, '\x00ff10', '1 year 2 mons 3 days 04:05:06.789', 'cross', '{a,"b c",NULL}', true)`},
	{`INSERT INTO app.outbox (id) VALUES ('00000000-0000-4000-8000-000000000002')`},
	{`INSERT INTO app.outbox VALUES ('00000000-0000-4000-8000-000000000003', '', 0, '""', '', 'infinity', 'NaN', '-Infinity', '', '0', 'calm', '{}', false)`},
	{`INSERT INTO app.outbox (id, version) VALUES ('00000000-0000-4000-8000-000000000004', 1), ('00000000-0000-4000-8000-000000000005', 2)`,
		`INSERT INTO app.outbox (id, version) VALUES ('00000000-0000-4000-8000-000000000006', 3)`},
	{`INSERT INTO app.outbox (id, note) VALUES ('00000000-0000-4000-8000-000000000007', 'before savepoint')`, `SAVEPOINT s`,
		`INSERT INTO app.outbox (id, note) VALUES ('00000000-0000-4000-8000-000000000008', 'rolled back')`, `ROLLBACK TO s`,
		`INSERT INTO app.outbox (id, note) VALUES ('00000000-0000-4000-8000-000000000009', 'after savepoint')`},
	{`INSERT INTO app.outbox (id, note) VALUES ('00000000-0000-4000-8000-00000000000a', 'old columns')`, `ALTER TABLE app.outbox ADD COLUMN added text DEFAULT 'new'`,
		`ALTER TABLE app.outbox DROP COLUMN tags`,
		`INSERT INTO app.outbox (id, note) VALUES ('00000000-0000-4000-8000-00000000000b', 'new columns')`},
	{`INSERT INTO app.outbox_parts VALUES (1, 'eu', 'one'), (2, 'us', 'two')`},
	{`INSERT INTO app.outbox_parts_us VALUES (3, 'us', 'into the leaf')`},
	{`INSERT INTO app.outbox (id, note) VALUES ('00000000-0000-4000-8000-00000000000c', 'deleted at once')`,
		`DELETE FROM app.outbox WHERE note = 'deleted at once'`},
	{`INSERT INTO app.outbox_big SELECT 1, jsonb_build_object('text', (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 3200) i)), 'TOAST'`},
	{`UPDATE app.outbox_big SET note = 'TOAST unchanged'`},
	{`UPDATE app.outbox SET note = 'same key' WHERE version = 1`},
	{`UPDATE app.outbox SET id = '00000000-0000-4000-8000-0000000000ff' WHERE version = 2`},
	{`ALTER TABLE app.orders REPLICA IDENTITY FULL`, `INSERT INTO app.orders VALUES (1, 9.99)`, `UPDATE app.orders SET total = 10`, `DELETE FROM app.orders`},
	{`DELETE FROM app.outbox WHERE version = 3`},
	{`INSERT INTO app.orders VALUES (2, 1)`},
	{`TRUNCATE app.orders, app.outbox_parts RESTART IDENTITY CASCADE`},
	{`INSERT INTO app.outbox (id, note) VALUES ('00000000-0000-4000-8000-00000000000d', 'the end')`},
}

// capture plays the history on a fresh server and records what each
// publication sends.
func capture(t *testing.T, major string) []golden {
	t.Helper()
	ctx := t.Context()
	server := startServer(t, major)
	sql := connect(t, server.URL("postgres"))
	exec(t, sql, goldenSetup...)
	for _, publication := range goldenPublications {
		exec(t, sql, "SELECT pg_create_logical_replication_slot('"+publication+"', 'pgoutput')")
	}
	for _, transaction := range goldenHistory {
		exec(t, sql, append(append([]string{"BEGIN"}, transaction...), "COMMIT")...)
	}
	end, err := pglogrepl.ParseLSN(ask(t, sql, "SELECT pg_current_wal_lsn()"))
	if err != nil {
		t.Fatal(err)
	}
	var all []golden
	for _, publication := range goldenPublications {
		g := golden{publication: publication}
		stream := connect(t, server.URL("postgres")+"&replication=database&timezone=UTC&client_encoding=UTF8")
		err := pglogrepl.StartReplication(ctx, stream, publication, 0, pglogrepl.StartReplicationOptions{
			Mode: pglogrepl.LogicalReplication, PluginArgs: []string{"proto_version '1'", "publication_names '" + publication + "'"}})
		if err != nil {
			t.Fatal(err)
		}
		for done := false; !done; {
			done = g.receive(t, ctx, stream, end)
		}
		all = append(all, g)
	}
	return all
}

// receive records one message; true when the server has sent all up to end.
func (g *golden) receive(t *testing.T, ctx context.Context, stream *pgconn.PgConn, end pglogrepl.LSN) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	received, err := stream.ReceiveMessage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	message, ok := received.(*pgproto3.CopyData)
	if !ok {
		t.Fatalf("%T", received)
	}
	switch message.Data[0] {
	case pglogrepl.XLogDataByteID:
		data, err := pglogrepl.ParseXLogData(message.Data[1:])
		if err != nil {
			t.Fatal(err)
		}
		g.messages = append(g.messages, goldenMessage{data.WALStart, append([]byte(nil), data.WALData...)})
	case pglogrepl.PrimaryKeepaliveMessageByteID:
		k, err := pglogrepl.ParsePrimaryKeepaliveMessage(message.Data[1:])
		if err != nil {
			t.Fatal(err)
		}
		if err := pglogrepl.SendStandbyStatusUpdate(ctx, stream, pglogrepl.StandbyStatusUpdate{WALWritePosition: 1, ReplyRequested: k.ServerWALEnd < end}); err != nil {
			t.Fatal(err)
		}
		return k.ServerWALEnd >= end
	}
	return false
}

// startServer starts a server that ends with the test.
func startServer(t *testing.T, major string) *pgserver.Server {
	t.Helper()
	server, err := pgserver.Start(t.Context(), pgserver.Options{Version: major, Settings: map[string]string{"max_replication_slots": "20"}})
	if err != nil {
		t.Fatalf("PostgreSQL %s: %v; without a network, install it (apt-get install postgresql-%s)", major, err, major)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}

func connect(t *testing.T, url string) *pgconn.PgConn {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func exec(t *testing.T, conn *pgconn.PgConn, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

func ask(t *testing.T, conn *pgconn.PgConn, sql string) string {
	t.Helper()
	results, err := conn.Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		t.Fatal(errors.New(sql + ": not one row"))
	}
	return string(results[0].Rows[0][0])
}
