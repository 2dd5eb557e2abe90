package provision

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/pgserver"
)

var (
	common   = Columns{EventID: "event_id", AggregateType: "aggregate_type", AggregateID: "aggregate_id", AggregateVersion: "aggregate_version", EventType: "event_type", Payload: "payload", SchemaVersion: "schema_version", Headers: "headers"}
	debezium = Columns{EventID: "id", AggregateType: "aggregatetype", AggregateID: "aggregateid", EventType: "type", Payload: "payload"}
)

type database struct {
	t    *testing.T
	url  string
	conn *pgx.Conn
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func newDatabase(t *testing.T, server *pgserver.Server) *database {
	t.Helper()
	admin := &database{t: t, conn: connect(t, server.URL("postgres"))}
	name := "d" + admin.text("SELECT count(*)::text FROM pg_database")
	admin.exec("CREATE DATABASE " + name)
	return &database{t, server.URL(name), connect(t, server.URL(name))}
}

func (d *database) exec(sql string) {
	d.t.Helper()
	if _, err := d.conn.Exec(d.t.Context(), sql); err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
}

func (d *database) text(sql string, args ...any) (value string) {
	d.t.Helper()
	if err := d.conn.QueryRow(d.t.Context(), sql, args...).Scan(&value); err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
	return value
}

func (d *database) run(p Plan) (steps []Step, err error) {
	if p.SlotTimeout == 0 {
		p.SlotTimeout = time.Minute
	}
	err = Run(d.t.Context(), d.conn, p, func(s Step) { steps = append(steps, s) })
	return steps, err
}

func (d *database) expect(p Plan, want ...Step) {
	d.t.Helper()
	steps, err := d.run(p)
	if err != nil {
		d.t.Fatal(err)
	}
	for i := range steps {
		steps[i].Done, _, _ = strings.Cut(steps[i].Done, " at LSN")
	}
	if !slices.Equal(steps, want) {
		d.t.Errorf("did %q, want %q", steps, want)
	}
}

func plan(name string, tables ...Table) Plan {
	return Plan{Tables: tables, Columns: common, Publication: name, Slot: name}
}

func TestAgainstAServer(t *testing.T) {
	server, err := pgserver.Start(t.Context(), pgserver.Options{Settings: map[string]string{"max_prepared_transactions": "5"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	outbox := Table{"public", "outbox"}
	for name, f := range map[string]func(*testing.T, *database){
		"creates what is missing, once": func(t *testing.T, d *database) {
			d.expect(plan("once", outbox), Step{"table public.outbox", "created"}, Step{"publication once", "created"}, Step{"slot once", "created"})
			d.expect(plan("once", outbox), Step{"table public.outbox", "exists"}, Step{"publication once", "exists"}, Step{"slot once", "exists"})
			if got := d.text("SELECT pubinsert::text || pubupdate || pubdelete || pubtruncate || pubviaroot FROM pg_publication WHERE pubname = 'once'"); got != "truefalsefalsefalsetrue" {
				t.Errorf("the publication is %s", got)
			}
			if got := d.text("SELECT plugin || ' ' || (database = current_database()) FROM pg_replication_slots WHERE slot_name = 'once'"); got != "pgoutput true" {
				t.Errorf("the slot is %s", got)
			}
			if got := d.text("SHOW statement_timeout"); got != "0" {
				t.Errorf("leaves statement_timeout at %s", got)
			}
			d.exec("INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type) VALUES ('o', '1', 1, 'T')")
			_, err := d.conn.Exec(t.Context(), "INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type) VALUES ('o', '1', 1, 'T')")
			if err == nil {
				t.Error("two events of one aggregate may share a version")
			}
		},
		"quotes names": func(t *testing.T, d *database) {
			d.exec(`CREATE SCHEMA "My Schema"`)
			p := plan(`Out"Box`, Table{"My Schema", `Out"box`})
			p.Slot = "quoted"
			p.Columns.EventID = `Event "Id"`
			d.expect(p, Step{`table My Schema.Out"box`, "created"}, Step{`publication Out"Box`, "created"}, Step{"slot quoted", "created"})
			d.expect(p, Step{`table My Schema.Out"box`, "exists"}, Step{`publication Out"Box`, "exists"}, Step{"slot quoted", "exists"})
		},
		"debezium columns": func(t *testing.T, d *database) {
			p := plan("debezium", outbox)
			p.Columns = debezium
			d.expect(p, Step{"table public.outbox", "created"}, Step{"publication debezium", "created"}, Step{"slot debezium", "created"})
			d.exec(`INSERT INTO outbox (aggregatetype, aggregateid, type, payload) VALUES ('o', '1', 'T', '{}')`)
			if id := d.text("SELECT id::text FROM outbox"); len(id) != 36 {
				t.Errorf("the event id is %s", id)
			}
		},
		"a publication gets the tables that it lacks": func(t *testing.T, d *database) {
			d.exec("CREATE TABLE other (id int); CREATE PUBLICATION lacks FOR TABLE other")
			second := Table{"public", "outbox2"}
			d.expect(plan("lacks", outbox, second), Step{"table public.outbox", "created"}, Step{"table public.outbox2", "created"},
				Step{"publication lacks", "exists"}, Step{"publication lacks", "table public.outbox added"}, Step{"publication lacks", "table public.outbox2 added"},
				Step{"slot lacks", "created"})
			d.expect(plan("lacks", outbox, second), Step{"table public.outbox", "exists"}, Step{"table public.outbox2", "exists"},
				Step{"publication lacks", "exists"}, Step{"slot lacks", "exists"})
		},
		"a partitioned table is published through its root": func(t *testing.T, d *database) {
			d.exec("CREATE TABLE outbox (event_id uuid, aggregate_id text) PARTITION BY LIST (aggregate_id); CREATE TABLE p1 PARTITION OF outbox FOR VALUES IN ('1')")
			for _, done := range []string{"created", "exists"} {
				d.expect(plan("parted", outbox), Step{"table public.outbox", "exists"}, Step{"publication parted", done}, Step{"slot parted", done})
			}
		},
		"says that older rows are not published": func(t *testing.T, d *database) {
			d.exec("CREATE TABLE outbox AS SELECT gen_random_uuid() AS event_id FROM generate_series(1, 3)")
			d.expect(plan("older", outbox), Step{"table public.outbox", "exists"}, Step{"publication older", "created"}, Step{"slot older", "created"},
				Step{"table public.outbox", "contains 3 rows; those written before the slot was created will not be published"})
		},
		"names the writers that a slot waits for, and leaves no half-made slot": func(t *testing.T, d *database) {
			d.exec("CREATE TABLE busy (id int)")
			writer := &database{t: t, conn: connect(t, d.url)}
			writer.exec("SET application_name = 'slow job'; BEGIN; INSERT INTO busy VALUES (1)")
			p := plan("behind", outbox)
			p.SlotTimeout = 300 * time.Millisecond
			_, err := d.run(p)
			if err == nil {
				t.Fatal("a slot was created beside an open write transaction")
			}
			for _, part := range []string{"slot behind", "300ms", "'slow job'", writer.text("SELECT pg_backend_pid()::text"), "--timeout"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("does not say %q: %v", part, err)
				}
			}
			if n := d.text("SELECT count(*)::text FROM pg_replication_slots WHERE slot_name = 'behind'"); n != "0" {
				t.Error("a slot is left")
			}
			writer.exec("PREPARE TRANSACTION 'forgotten'")
			if _, err = d.run(p); err == nil || !strings.Contains(err.Error(), "prepared transaction 'forgotten'") {
				t.Errorf("%v", err)
			}
			writer.exec("COMMIT PREPARED 'forgotten'")
			p.SlotTimeout = 0
			d.expect(p, Step{"table public.outbox", "exists"}, Step{"publication behind", "exists"}, Step{"slot behind", "created"})
		},
		"a slot that is being created does not exist yet": func(t *testing.T, d *database) {
			d.exec("CREATE TABLE busy (id int)")
			writer := &database{t: t, conn: connect(t, d.url)}
			writer.exec("BEGIN; INSERT INTO busy VALUES (1)")
			ctx, cancel := context.WithCancel(t.Context())
			other := connect(t, d.url)
			done := make(chan error, 1)
			go func() {
				p := plan("half", outbox)
				p.SlotTimeout = time.Minute
				done <- Run(ctx, other, p, func(Step) {})
			}()
			for d.text("SELECT count(*)::text FROM pg_replication_slots WHERE slot_name = 'half'") == "0" {
				select {
				case err := <-done:
					t.Fatalf("ended with %v", err)
				case <-time.After(5 * time.Millisecond):
				}
			}
			if _, err := d.run(plan("half", outbox)); err == nil || !strings.Contains(err.Error(), "is creating it at this moment") {
				t.Errorf("%v", err)
			}
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("ended with %v", err)
			}
			writer.exec("ROLLBACK")
		},
		"a role without REPLICATION is told what it needs": func(t *testing.T, d *database) {
			d.exec(`CREATE ROLE plain LOGIN; CREATE TABLE outbox (event_id uuid); ALTER TABLE outbox OWNER TO plain; GRANT CREATE ON DATABASE ` + d.text("SELECT current_database()") + ` TO plain`)
			d.exec("SET SESSION AUTHORIZATION plain")
			if _, err := d.run(plan("rights", outbox)); err == nil || !strings.Contains(err.Error(), "REPLICATION") {
				t.Errorf("%v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { f(t, newDatabase(t, server)) })
	}
}
