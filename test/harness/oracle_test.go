package harness_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

const createOutbox = `CREATE TABLE outbox (
	event_id uuid PRIMARY KEY, aggregate_type text NOT NULL, aggregate_id text NOT NULL,
	aggregate_version bigint NOT NULL, event_type text NOT NULL, payload jsonb)`

func outbox(t *testing.T, version string) (*pgserver.Server, string, *pgx.Conn) {
	t.Helper()
	server := shared.Postgres(t, version)
	database := harness.Database(t, server)
	conn, err := pgx.Connect(t.Context(), server.URL(database))
	must(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) })
	do(t, conn, createOutbox)
	return server, database, conn
}

func do(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

func insert(n int) string {
	return fmt.Sprintf(`INSERT INTO outbox VALUES ('00000000-0000-0000-0000-%012d', 'order', 'o-%d', %d, 'created', '{"n": %d}')`, n, n%3, n, n)
}

func TestOracleTellsCommittedRowsInCommitOrder(t *testing.T) {
	server, database, conn := outbox(t, "")
	oracle := harness.NewOracle(t, server.URL(database), harness.OracleOptions{Tables: []string{"public.outbox"}, AllColumns: true})
	other, err := pgx.Connect(t.Context(), server.URL(database))
	must(t, err)
	defer other.Close(t.Context())
	do(t, conn, "BEGIN", insert(1), insert(2))
	do(t, other, insert(3)) // commits before 1 and 2
	do(t, conn, "SAVEPOINT s", insert(4), "ROLLBACK TO s", "COMMIT")
	do(t, conn, "BEGIN", insert(5), "ROLLBACK")
	do(t, conn, "CREATE TABLE other (n int)", "INSERT INTO other VALUES (1)")
	do(t, conn, "UPDATE outbox SET aggregate_version = 0", "DELETE FROM outbox")
	do(t, conn, `INSERT INTO outbox VALUES ('00000000-0000-0000-0000-000000000006', 'it''s', E'a\nb', -6, '"[x]":null', NULL)`)

	rows, err := oracle.Read(limit(t))
	must(t, err)
	var versions []int64
	for _, r := range rows {
		versions = append(versions, r.Version)
	}
	if got := fmt.Sprint(versions); got != "[3 1 2 -6]" {
		t.Fatalf("read versions %s, want [3 1 2 -6]", got)
	}
	if rows[1].CommitEnd != rows[2].CommitEnd || rows[0].CommitEnd >= rows[1].CommitEnd {
		t.Errorf("commit ends %v, %v, %v", rows[0].CommitEnd, rows[1].CommitEnd, rows[2].CommitEnd)
	}
	if since := time.Since(rows[0].CommitTime); since < 0 || since > time.Minute {
		t.Errorf("commit time %v", rows[0].CommitTime)
	}
	if r := rows[0]; r.EventID != "00000000-0000-0000-0000-000000000003" || r.AggregateType != "order" ||
		r.AggregateID != "o-0" || r.EventType != "created" || string(r.Payload) != `{"n": 3}` {
		t.Errorf("row %+v", r)
	}
	if r := rows[3]; r.AggregateType != "it's" || r.AggregateID != "a\nb" || r.EventType != `"[x]":null` || r.Payload != nil || len(r.Columns) != 6 {
		t.Errorf("row %+v", r)
	}

	if rows, err = oracle.Read(limit(t)); err != nil || len(rows) != 0 {
		t.Errorf("a second Read = %v, %v, want nothing", rows, err)
	}
	do(t, conn, insert(7))
	if rows, err = oracle.Read(limit(t)); err != nil || len(rows) != 1 || rows[0].Version != 7 {
		t.Errorf("Read after one more = %v, %v", rows, err)
	}
}

// What test_decoding prints must be, column by column, what pgoutput sends.
// And the lsn of its COMMIT line must be the transaction's end LSN, which is
// what a publisher confirms. Both are compared on the oldest and the newest
// version, whatever the role's settings are.
func TestOracleAgreesWithPgoutput(t *testing.T) {
	for _, version := range []string{"14", "", "18"} {
		t.Run("version "+version, func(t *testing.T) {
			server, database, conn := outbox(t, version)
			do(t, conn,
				`CREATE TYPE "odd ] [ ""type" AS ENUM ('a b', 'c''d')`,
				`ALTER DATABASE `+database+` SET datestyle = 'German, DMY'`,
				`ALTER DATABASE `+database+` SET timezone = 'Asia/Tokyo'`,
				`ALTER DATABASE `+database+` SET bytea_output = 'escape'`,
				`ALTER DATABASE `+database+` SET extra_float_digits = 0`,
				`CREATE TABLE "Odd ""table: INSERT:" (
					"a [b]: c" int, yes bool, no bool, nothing text, empty text, quoted text, tags text[],
					kind "odd ] [ ""type", bits bit(3), bytes bytea, f float8, nan float4, num numeric(10,2), at timestamptz,
					day date, span interval, padded char(4), doc json, docb jsonb, small smallint, o oid)`,
				`CREATE PUBLICATION p FOR ALL TABLES`,
				`SELECT pg_create_logical_replication_slot('`+database+`', 'pgoutput')`)
			oracle := harness.NewOracle(t, server.URL(database), harness.OracleOptions{
				Tables: []string{`public."Odd ""table: INSERT:"`}, AllColumns: true,
			})
			do(t, conn, `INSERT INTO "Odd ""table: INSERT:" VALUES (
				-1, true, false, NULL, '', E'it''s \\ "x"\n null', '{"a b",NULL,"c''d"}',
				'c''d', B'101', '\x00ff27', 0.1::float8 + 0.2, 'NaN', 12.30, '2024-02-29 23:59:59.5+01',
				'2024-02-29', '1 day -02:00', 'ab', '{"z": 1,  "a": 0.00}', '{"z": 1, "a": 0.00}', 5, 4000000000)`)
			rows, err := oracle.Read(limit(t))
			must(t, err)
			if len(rows) != 1 {
				t.Fatalf("the oracle read %d rows, want 1", len(rows))
			}
			want := decodePgoutput(t, server.URL(database), database)
			if rows[0].CommitEnd != want.CommitEnd {
				t.Errorf("commit end %v, pgoutput says %v", rows[0].CommitEnd, want.CommitEnd)
			}
			if !rows[0].CommitTime.Equal(want.CommitTime) {
				t.Errorf("commit time %v, pgoutput says %v", rows[0].CommitTime, want.CommitTime)
			}
			for name, value := range want.Columns {
				if got := rows[0].Columns[name]; show(got) != show(value) {
					t.Errorf("column %s is %s, pgoutput says %s", name, show(got), show(value))
				}
			}
			if len(rows[0].Columns) != len(want.Columns) {
				t.Errorf("%d columns, pgoutput says %d", len(rows[0].Columns), len(want.Columns))
			}
		})
	}
}

func show(v *string) string {
	if v == nil {
		return "NULL"
	}
	return fmt.Sprintf("%q", *v)
}

// decodePgoutput reads the one transaction that a slot has, over the
// replication protocol and with pglogrepl's parser.
func decodePgoutput(t *testing.T, url, slot string) verify.Row {
	t.Helper()
	config, err := pgconn.ParseConfig(url)
	must(t, err)
	for name, value := range map[string]string{
		"replication": "database", "datestyle": "ISO", "timezone": "UTC", "intervalstyle": "postgres",
		"extra_float_digits": "3", "bytea_output": "hex",
	} {
		config.RuntimeParams[name] = value
	}
	conn, err := pgconn.ConnectConfig(t.Context(), config)
	must(t, err)
	defer conn.Close(context.Background())
	must(t, pglogrepl.StartReplication(t.Context(), conn, slot, 0, pglogrepl.StartReplicationOptions{
		PluginArgs: []string{"proto_version '1'", "publication_names 'p'"},
	}))
	row := verify.Row{Columns: map[string]*string{}}
	var relation *pglogrepl.RelationMessage
	for ctx := limit(t); ; {
		message, err := conn.ReceiveMessage(ctx)
		must(t, err)
		data, ok := message.(*pgproto3.CopyData)
		if !ok {
			t.Fatalf("received %T", message)
		}
		if data.Data[0] != pglogrepl.XLogDataByteID {
			continue
		}
		x, err := pglogrepl.ParseXLogData(data.Data[1:])
		must(t, err)
		logical, err := pglogrepl.Parse(x.WALData)
		must(t, err)
		switch m := logical.(type) {
		case *pglogrepl.RelationMessage:
			relation = m
		case *pglogrepl.InsertMessage:
			for i, column := range m.Tuple.Columns {
				var value *string
				if column.DataType == pglogrepl.TupleDataTypeText {
					text := string(column.Data)
					value = &text
				}
				row.Columns[relation.Columns[i].Name] = value
			}
		case *pglogrepl.CommitMessage:
			if relation == nil {
				continue // a transaction without rows, which 14 announces
			}
			row.CommitEnd, row.CommitTime = m.TransactionEndLSN, m.CommitTime
			return row
		}
	}
}

func TestConfirmedFlushLSNIsTheSlots(t *testing.T) {
	server, database, conn := outbox(t, "")
	var want string
	must(t, conn.QueryRow(t.Context(), `SELECT lsn::text FROM pg_create_logical_replication_slot('`+database+`', 'pgoutput')`).Scan(&want))
	got, err := harness.ConfirmedFlushLSN(limit(t), server.URL(database), database)
	must(t, err)
	if got.String() != want {
		t.Errorf("confirmed %v, want %s", got, want)
	}
	if _, err := harness.ConfirmedFlushLSN(limit(t), server.URL(database), "missing"); err == nil {
		t.Error("no error for a missing slot")
	}
}
