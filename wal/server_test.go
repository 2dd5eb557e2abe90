package wal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/internal/pgserver"
)

// TestAgainstRealServers is what only a real server can show.
func TestAgainstRealServers(t *testing.T) {
	for _, major := range []string{"14", "18"} {
		t.Run(major, func(t *testing.T) {
			t.Parallel()
			server := startServer(t, major)
			sql := connect(t, server.URL("postgres"))
			exec(t, sql, "CREATE DATABASE shop")
			shop := connect(t, server.URL("shop"))
			exec(t, shop,
				`CREATE TABLE outbox (id int PRIMARY KEY, payload text, at timestamptz, day date, span interval, ratio float8, bin bytea)`,
				`CREATE TABLE orders (id int)`,
				`CREATE PUBLICATION "Out""box" FOR TABLE outbox, orders WITH (publish = 'insert')`,
				`SELECT pg_create_logical_replication_slot('outbox_slot', 'pgoutput')`)
			t.Run("partitions", func(t *testing.T) { partitions(t, server) })
			t.Run("a changed publication", func(t *testing.T) { changedPublication(t, server, shop) })
			t.Run("row text", func(t *testing.T) { rowText(t, server, shop) })
			t.Run("confirmed_flush_lsn", func(t *testing.T) { followsForeignWrites(t, server, shop) })
			// Last, since it ends the server.
			t.Run("fast shutdown", func(t *testing.T) { fastShutdown(t, server, shop) })
		})
	}
}

func realConfig(server *pgserver.Server) Config {
	return Config{
		Slot: fakeSlot, Publication: `Out"box`, Tables: []Table{{"public", "outbox"}}, Columns: []string{"id", "payload"},
		Connect: func(context.Context) (*ConnConfig, error) { return pgconn.ParseConfig(server.URL("shop")) },
	}
}

// live is a Stream that runs against a real server. Its batches must be taken.
type live struct {
	*Stream
	t    *testing.T
	out  chan *Batch
	done chan error
}

func goLive(t *testing.T, config Config) *live {
	t.Helper()
	// Not t.Context(): that one ends before the clean-up can wait for Run.
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := Open(ctx, config)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	l := &live{Stream: stream, t: t, out: make(chan *Batch), done: make(chan error, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.done <- stream.Run(ctx, l.out)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return l
}

func (l *live) take() *Batch {
	l.t.Helper()
	select {
	case b := <-l.out:
		return b
	case <-time.After(20 * time.Second):
		l.t.Fatalf("no batch in 20 s; the server was heard %s ago", l.Silence())
	}
	return nil
}

// row takes until the next row. Everything else is confirmed.
func (l *live) row() Row {
	l.t.Helper()
	for {
		b := l.take()
		if b == nil {
			l.t.Fatalf("the stream ended: %v", <-l.done)
		}
		for _, e := range b.Events {
			switch e.Kind {
			case Insert:
				return e.Row
			case Commit, Keepalive:
				l.Confirm(e.LSN)
			}
		}
	}
}

// finish ends the stream cleanly.
func (l *live) finish() {
	l.t.Helper()
	l.Stop()
	for b := range l.out {
		for _, e := range b.Events {
			if e.Kind == Commit || e.Kind == Keepalive {
				l.Confirm(e.LSN)
			}
		}
	}
	l.Finish()
	if err := <-l.done; err != nil {
		l.t.Fatal(err)
	}
}

// rowText: no setting of the role, the database, the server or the URL changes
// a byte of a row.
func rowText(t *testing.T, server *pgserver.Server, shop *pgconn.PgConn) {
	for setting, value := range map[string]string{
		"DateStyle": "German, DMY", "bytea_output": "escape", "TimeZone": "Asia/Kathmandu", "extra_float_digits": "-15",
		"IntervalStyle": "sql_standard", "client_encoding": "LATIN1", "client_min_messages": "error",
	} {
		exec(t, shop, fmt.Sprintf("ALTER ROLE postgres SET %s = '%s'", setting, value),
			fmt.Sprintf("ALTER DATABASE shop SET %s = '%s'", setting, value),
			fmt.Sprintf("ALTER ROLE postgres IN DATABASE shop SET %s = '%s'", setting, value),
			fmt.Sprintf("ALTER SYSTEM SET %s = '%s'", setting, value))
	}
	if err := server.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, connect(t, server.URL("shop")), "SHOW bytea_output"); got != "escape" {
		t.Fatalf("bytea_output = %s: the settings do not work", got)
	}
	config := realConfig(server)
	config.Connect = func(context.Context) (*ConnConfig, error) {
		return pgconn.ParseConfig(server.URL("shop") + "&TimeZone=Asia/Tokyo&options=-c%20DateStyle%3DGerman")
	}
	l := goLive(t, config)
	exec(t, shop, `INSERT INTO outbox VALUES (1, U&'gr\00fc\00dfe', '2026-01-02 03:04:05.678901+00', '2026-01-02', '1 year 2 mons -3 days 04:05:06', 0.1::float8 + 0.2::float8, '\x00ff41')`)
	want := []string{"1", "grüße", "2026-01-02 03:04:05.678901+00", "2026-01-02", "1 year 2 mons -3 days +04:05:06", "0.30000000000000004", `\x00ff41`}
	row := l.row()
	for i, value := range row.Values {
		if string(value) != want[i] {
			t.Errorf("%s = %q, want %q", row.Relation.Columns[i].Name, value, want[i])
		}
	}
	l.finish()
}

// followsForeignWrites: with nothing of ours open, writes to other tables and
// other databases do not hold WAL.
func followsForeignWrites(t *testing.T, server *pgserver.Server, shop *pgconn.PgConn) {
	l := goLive(t, realConfig(server))
	postgres := connect(t, server.URL("postgres"))
	exec(t, shop, "CREATE TABLE IF NOT EXISTS foreign_here (id int)", "INSERT INTO foreign_here SELECT generate_series(1, 1000)")
	exec(t, postgres, "CREATE TABLE IF NOT EXISTS foreign_there (id int)", "INSERT INTO foreign_there SELECT generate_series(1, 1000)")
	target, err := pglogrepl.ParseLSN(ask(t, shop, "SELECT pg_current_wal_lsn()"))
	if err != nil {
		t.Fatal(err)
	}
	for l.Confirmed() < target {
		b := l.take()
		if b == nil {
			t.Fatal(<-l.done)
		}
		for _, e := range b.Events {
			if e.Kind == Commit || e.Kind == Keepalive {
				l.Confirm(e.LSN)
			}
		}
	}
	l.finish() // the last status was processed when this returns
	confirmed, err := pglogrepl.ParseLSN(ask(t, shop, "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = 'outbox_slot'"))
	if err != nil || confirmed < target || confirmed != l.Confirmed() {
		t.Errorf("confirmed_flush_lsn %s, want %s, at least %s (%v)", confirmed, l.Confirmed(), target, err)
	}
	if holder := ask(t, shop, "SELECT coalesce(active_pid, 0) FROM pg_replication_slots"); holder != "0" {
		t.Errorf("pid %s still holds the slot", holder)
	}
}

// fastShutdown: PostgreSQL waits for a client that holds back. We let go.
func fastShutdown(t *testing.T, server *pgserver.Server, shop *pgconn.PgConn) {
	l := goLive(t, realConfig(server))
	exec(t, shop, "INSERT INTO outbox SELECT i, repeat('x', 1000) FROM generate_series(100, 20000) i")
	l.row() // and nothing is confirmed or taken any more
	stopped := make(chan error, 1)
	began := time.Now()
	go func() { stopped <- server.Stop(pgserver.Fast, 60*time.Second) }()
	for range l.out {
		// Until the stream notices it offers one batch, which nobody took.
	}
	if err := <-l.done; !errors.Is(err, ErrServerStopping) {
		t.Error(err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the shutdown took %s", took)
	}
}

// partitions: what a publication says about a partitioned outbox is read from
// real catalogs.
func partitions(t *testing.T, server *pgserver.Server) {
	sql := connect(t, server.URL("shop"))
	exec(t, sql, `CREATE TABLE parts (id int, region text, payload text) PARTITION BY LIST (region)`,
		`CREATE TABLE parts_eu PARTITION OF parts FOR VALUES IN ('eu')`,
		`CREATE TABLE parts_rest PARTITION OF parts DEFAULT PARTITION BY LIST (region)`,
		`CREATE TABLE parts_us PARTITION OF parts_rest FOR VALUES IN ('us')`)
	publications := map[string]struct {
		definition string
		refused    bool
	}{
		"the root":             {"FOR TABLE parts", false},
		"via the root":         {"FOR TABLE parts WITH (publish_via_partition_root = true)", false},
		"all leaves":           {"FOR TABLE parts_eu, parts_us", false},
		"leaf and middle":      {"FOR TABLE parts_eu, parts_rest", false},
		"leaf and middle, via": {"FOR TABLE parts_eu, parts_rest WITH (publish_via_partition_root = true)", false},
		"one leaf":             {"FOR TABLE parts_eu", true},
		"one leaf, via":        {"FOR TABLE parts_eu WITH (publish_via_partition_root = true)", true},
		"everything":           {"FOR ALL TABLES", false},
	}
	for name, p := range publications {
		exec(t, sql, `CREATE PUBLICATION p `+p.definition)
		config := realConfig(server)
		config.Publication, config.Tables = "p", []Table{{"public", "parts"}}
		stream, err := Open(t.Context(), config)
		if err == nil {
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			_ = stream.Run(ended, make(chan *Batch))
		}
		var stop *StopError
		if refused := errors.As(err, &stop) && stop.Reason == PublicationUnusable; refused != p.refused || err != nil && !refused {
			t.Errorf("%s: %v", name, err)
		}
		exec(t, sql, "DROP PUBLICATION p", "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active")
		for ask(t, sql, "SELECT count(*) FROM pg_replication_slots WHERE active") != "0" {
		}
	}
}

// changedPublication: dropping and adding the table leaves no trace but new
// catalog rows.
func changedPublication(t *testing.T, server *pgserver.Server, shop *pgconn.PgConn) {
	changes := []string{`ALTER PUBLICATION "Out""box" DROP TABLE outbox; ALTER PUBLICATION "Out""box" ADD TABLE outbox`,
		`ALTER PUBLICATION "Out""box" SET (publish = 'update'); ALTER PUBLICATION "Out""box" SET (publish = 'insert')`}
	if server.Installation().Major >= 15 {
		exec(t, shop, `ALTER PUBLICATION "Out""box" ADD TABLES IN SCHEMA public`)
		changes = append(changes, `ALTER PUBLICATION "Out""box" DROP TABLES IN SCHEMA public; ALTER PUBLICATION "Out""box" ADD TABLES IN SCHEMA public`)
	}
	config := realConfig(server)
	for i, change := range append([]string{"SELECT 1"}, changes...) {
		l := goLive(t, config)
		l.finish()
		previous := l.Identity()
		config.Previous = &previous
		for _, sql := range strings.Split(change, "; ") {
			exec(t, shop, sql)
		}
		stream, err := Open(t.Context(), config)
		if i == 0 {
			if err != nil {
				t.Fatal(err)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			_ = stream.Run(ended, make(chan *Batch))
			for ask(t, shop, "SELECT count(*) FROM pg_replication_slots WHERE active") != "0" {
			}
			continue
		}
		var stop *StopError
		if !errors.As(err, &stop) || stop.Reason != PublicationChanged {
			t.Errorf("%s: %v", change, err)
		}
		config.Previous = nil
	}
	if len(changes) > 2 {
		exec(t, shop, `ALTER PUBLICATION "Out""box" DROP TABLES IN SCHEMA public`)
	}
}
