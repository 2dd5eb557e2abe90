package witness

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/pgserver"
)

func startPostgres(t *testing.T) *pgx.ConnConfig {
	t.Helper()
	server, err := pgserver.Start(t.Context(), pgserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	config, err := pgx.ParseConfig(server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

const outbox = `CREATE TABLE outbox (event_id text, aggregate_type text, aggregate_id text, aggregate_version bigint, event_type text, payload jsonb)`

func execute(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func slots(t *testing.T, conn *pgx.Conn) (n int) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_replication_slots").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestOracleTellsWhatWasCommittedOnceAndInOrder(t *testing.T) {
	config := startPostgres(t)
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	execute(t, conn, outbox)
	for _, temporary := range []bool{true, false} {
		oracle, err := NewOracle(t.Context(), config, OracleOptions{Slot: "oracle", Temporary: temporary, Tables: []string{"public.outbox"}})
		if err != nil {
			t.Fatal(err)
		}
		execute(t, conn, `BEGIN; INSERT INTO outbox VALUES ('a', 'order', 'o1', 1, 'Placed', '{"k": "it''s"}'), ('b', 'order', 'o2', 1, 'Placed', NULL); COMMIT`)
		execute(t, conn, `BEGIN; INSERT INTO outbox VALUES ('never', 'order', 'o1', 2, 'Paid', '{}'); ROLLBACK`)
		first, err := oracle.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		execute(t, conn, `INSERT INTO outbox VALUES ('c', 'order', 'o1', 2, 'Paid', '{}')`)
		second, err := oracle.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(first) != 2 || len(second) != 1 {
			t.Fatalf("read %d and %d rows, want 2 and 1", len(first), len(second))
		}
		a, b, c := first[0], first[1], second[0]
		if a.EventID != "a" || a.AggregateID != "o1" || a.Version != 1 || a.EventType != "Placed" || string(a.Payload) != `{"k": "it's"}` {
			t.Errorf("%+v", a)
		}
		if b.EventID != "b" || b.Payload != nil || b.CommitEnd != a.CommitEnd || c.EventID != "c" || c.CommitEnd <= b.CommitEnd || c.CommitTime.Before(b.CommitTime) {
			t.Errorf("b %+v, c %+v", b, c)
		}
		if err := oracle.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := slots(t, conn); n != 0 {
			t.Errorf("temporary %v: %d slots are left", temporary, n)
		}
	}
}

func TestOracleWithoutTablesIsRefused(t *testing.T) {
	config, err := pgx.ParseConfig("")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewOracle(t.Context(), config, OracleOptions{}); err == nil {
		t.Error("it would see nothing")
	}
}
