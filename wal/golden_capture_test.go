package wal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/cdcpub/cdcpub/internal/pgserver"
)

// capture plays the history on a fresh server and records what each view of it
// sends, and what test_decoding prints.
func capture(t *testing.T, major int) (all []golden, witnessed []string) {
	t.Helper()
	ctx := t.Context()
	server := startServer(t, strconv.Itoa(major))
	sql := connect(t, server.URL("postgres"))
	exec(t, sql, "SET timezone = 'UTC'")
	for _, statement := range goldenSetup {
		if major >= statement.major {
			exec(t, sql, statement.sql)
		}
	}
	exec(t, sql, "SELECT pg_create_logical_replication_slot('witness', 'test_decoding')")
	var views []goldenView
	for _, v := range goldenViews {
		if major >= v.from {
			views = append(views, v)
			exec(t, sql, "SELECT pg_create_logical_replication_slot('"+v.name+"', 'pgoutput')")
		}
	}
	for _, transaction := range goldenHistory {
		exec(t, sql, append(append([]string{"BEGIN"}, transaction...), "COMMIT")...)
	}
	end, err := pglogrepl.ParseLSN(ask(t, sql, "SELECT pg_current_wal_lsn()"))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range views {
		g := golden{view: v}
		args := append([]string{"publication_names '" + v.publication + "'"}, v.args...)
		if !strings.Contains(strings.Join(v.args, " "), "proto_version") {
			args = append(args, "proto_version '1'")
		}
		stream := connect(t, server.URL("postgres")+"&replication=database&timezone=UTC&client_encoding=UTF8")
		err := pglogrepl.StartReplication(ctx, stream, v.name, 0, pglogrepl.StartReplicationOptions{Mode: pglogrepl.LogicalReplication, PluginArgs: args})
		if err != nil {
			t.Fatal(err)
		}
		for done := false; !done; {
			done = g.receive(t, ctx, stream, end)
		}
		all = append(all, g)
	}
	results, err := sql.Exec(ctx, "SELECT lsn, xid, data FROM pg_logical_slot_peek_changes('witness', NULL, NULL, 'include-timestamp', 'on')").ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range results[0].Rows {
		witnessed = append(witnessed, fmt.Sprintf("%s %s %s", row[0], row[1], strconv.Quote(string(row[2]))))
	}
	return all, witnessed
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
		if g.view.refused == 0 || data.WALData[0] == g.view.refused {
			g.messages = append(g.messages, goldenMessage{data.WALStart, append([]byte(nil), data.WALData...)})
		}
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
	server, err := pgserver.Start(t.Context(), pgserver.Options{Version: major, Settings: map[string]string{"max_replication_slots": "20", "logical_decoding_work_mem": "64kB"}})
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
