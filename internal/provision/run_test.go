package provision

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestCreatesWhatIsMissingOnce(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		p := d.withRoles(d.plan(outbox))
		publisher, monitor := p.Roles[0].Name, p.Roles[1].Name
		d.expect(p, "role "+publisher+": created, without a password", "role "+monitor+": created, without a password",
			"table public.outbox: created", "publication "+d.name+": created", "slot "+d.name+": created")
		before := d.catalogs(p)
		d.expect(p, "role "+publisher+": exists", "role "+monitor+": exists",
			"table public.outbox: exists", "publication "+d.name+": exists", "slot "+d.name+": exists")
		if after := d.catalogs(p); after != before {
			t.Errorf("the second run changed\n%s\nto\n%s", before, after)
		}
		if got := d.text("SELECT concat_ws(' ', pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot) FROM pg_publication WHERE pubname = $1", d.name); got != "t f f f t" {
			t.Errorf("the publication is %s", got)
		}
		if got := d.text("SHOW statement_timeout"); got != "0" {
			t.Errorf("leaves statement_timeout at %s", got)
		}
		const event = "INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type) VALUES ('o', '1', 1, 'T')"
		d.exec(event)
		if _, err := d.conn.Exec(t.Context(), event); err == nil {
			t.Error("two events of one aggregate may share a version")
		}
	})
}

func TestSaysThatASlotIsOlderThanAPublicationThatItCreates(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		p := d.plan(outbox)
		if _, err := d.run(p); err != nil {
			t.Fatal(err)
		}
		d.exec("DROP PUBLICATION " + d.name)
		exists := "slot " + d.name + ": exists"
		steps := d.expect(p, "table public.outbox: exists", "publication "+d.name+": created", exists)
		answer := "(42704) at the first row"
		if d.server.Installation().Major >= 18 {
			answer = "passes over the first row with a notice"
		}
		for _, words := range []string{"is older than publication " + d.name, answer, "`cdcpub slot drop " + d.name + "`", "A slot older than its publication"} {
			if next := steps[2].Next; !strings.Contains(next, words) {
				t.Errorf("does not say %q: %s", words, next)
			}
		}
		if steps = d.expect(p, "table public.outbox: exists", "publication "+d.name+": exists", exists); steps[2].Next != "" {
			t.Errorf("says of a slot that may be as it must be: %s", steps[2].Next)
		}
	})
}

func TestNewTablesHaveTheColumnsOfTheConfiguration(t *testing.T) {
	const columns = `SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod) || CASE WHEN attnotnull THEN ' !' ELSE '' END, ', ' ORDER BY attnum)
		FROM pg_attribute WHERE attrelid = 'outbox'::regclass AND attnum > 0`
	d := newDatabase(t, shared.Postgres(t, "15"))
	for name, c := range map[string]struct {
		change func(*Plan)
		want   string
	}{
		"all": {func(*Plan) {}, "event_id uuid !, aggregate_type text !, aggregate_id text !, aggregate_version bigint !, event_type text !, payload jsonb, " +
			"schema_version integer, headers jsonb, occurred_at timestamp with time zone, created_at timestamp with time zone !"},
		"those of the debezium convention and no others": {func(p *Plan) {
			p.Columns = Columns{EventID: "id", AggregateType: "aggregatetype", AggregateID: "aggregateid", EventType: "type", Payload: "payload"}
			p.ConventionOnly = true
		}, "id uuid !, aggregatetype text !, aggregateid text !, type text !, payload jsonb"},
		"each once, further ones at the end": {func(p *Plan) {
			p.Columns = Columns{EventID: "id", AggregateID: "key", Payload: "body", Timestamp: "at", OccurredAt: "at"}
			p.Extra = []Column{{"region", "text", "NOT NULL"}, {"region", "text", ""}, {"id", "text", ""}, {"order", "text", ""}}
			p.ConventionOnly = true
		}, "id uuid !, key text !, body jsonb, at timestamp with time zone, region text !, order text"},
	} {
		t.Run(name, func(t *testing.T) {
			p := d.plan(outbox)
			c.change(&p)
			d.exec("DROP TABLE IF EXISTS outbox", p.TableSQL(outbox))
			if got := d.text(columns); got != c.want {
				t.Errorf("the table has %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestQuotesNames(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		d.exec(`CREATE SCHEMA "My Schema"`)
		p := d.withRoles(d.plan(Table{"My Schema", `Out"box`}))
		p.Publication, p.Columns.EventID, p.Required = `Out"Box`, `Event "Id"`, nil
		p.Roles[0].Name = d.role(`Pub"lisher`)
		for _, done := range []string{"created", "exists"} {
			roleDone := strings.Replace(done, "created", "created, without a password", 1)
			d.expect(p, "role "+p.Roles[0].Name+": "+roleDone, "role "+p.Roles[1].Name+": "+roleDone,
				`table My Schema.Out"box: `+done, `publication Out"Box: `+done, "slot "+d.name+": "+done)
		}
	})
}

func TestAPublicationGetsTheTablesThatItLacks(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		d.exec("CREATE TABLE other (id int)", "CREATE PUBLICATION "+d.name+" FOR TABLE other")
		p := d.plan(outbox, Table{"public", "outbox2"})
		exists := "publication " + d.name + ": exists (it also publishes update, delete, truncate, which cdcpub ignores)"
		d.expect(p, "table public.outbox: created", "table public.outbox2: created", exists,
			"publication "+d.name+": table public.outbox added", "publication "+d.name+": table public.outbox2 added", "slot "+d.name+": created")
		d.expect(p, "table public.outbox: exists", "table public.outbox2: exists", exists, "slot "+d.name+": exists")
		if got := d.text("SELECT string_agg(tablename, ' ' ORDER BY tablename) FROM pg_publication_tables WHERE pubname = $1", d.name); got != "other outbox outbox2" {
			t.Errorf("the publication has %s", got)
		}
	})
}

func TestPartitionedTables(t *testing.T) {
	const table = "CREATE TABLE outbox (event_id uuid, aggregate_id text) PARTITION BY LIST (aggregate_id)"
	const leaves = "CREATE TABLE p1 PARTITION OF outbox FOR VALUES IN ('1'); CREATE TABLE p2 PARTITION OF outbox FOR VALUES IN ('2')"
	for name, c := range map[string]struct {
		statements []string
		want       []string // of the publication
	}{
		"created via the root":        {[]string{table, leaves}, []string{"created"}},
		"there already, via the root": {[]string{table, leaves, "CREATE PUBLICATION %s FOR TABLE outbox WITH (publish = 'insert', publish_via_partition_root = true)"}, []string{"exists"}},
		"there already, through the leaves": {[]string{table, leaves, "CREATE PUBLICATION %s FOR TABLE p1, p2 WITH (publish = 'insert')"},
			[]string{"exists (it publishes partitions of public.outbox under their own names, which cdcpub follows)"}},
		"one leaf is missing": {[]string{table, leaves, "CREATE PUBLICATION %s FOR TABLE p1 WITH (publish = 'insert', publish_via_partition_root = true)"},
			[]string{"exists", "table public.outbox added"}},
		"no leaf yet, the root is there": {[]string{table, "CREATE PUBLICATION %s FOR TABLE outbox WITH (publish = 'insert', publish_via_partition_root = true)"}, []string{"exists"}},
		"all tables":                     {[]string{table, "CREATE PUBLICATION %s FOR ALL TABLES WITH (publish = 'insert', publish_via_partition_root = true)"}, []string{"exists"}},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, d *database) {
				for _, sql := range c.statements {
					d.exec(strings.ReplaceAll(sql, "%s", d.name))
				}
				p := d.plan(outbox)
				p.Required = []string{"event_id", "aggregate_id"}
				want := []string{"table public.outbox: exists"}
				for _, done := range c.want {
					want = append(want, "publication "+d.name+": "+done)
				}
				d.expect(p, append(want, "slot "+d.name+": created")...)
			})
		})
	}
}

func TestSaysHowManyOlderRowsAreNotPublished(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		p := d.plan(outbox, Table{"public", "empty"}, Table{"public", "fresh"})
		p.Required = nil
		d.exec("CREATE TABLE outbox AS SELECT 1 AS id FROM generate_series(1, 300000)", "CREATE TABLE empty (id int)")
		done := func(number string) []string {
			return []string{"table public.outbox: exists", "table public.empty: exists", "table public.fresh: exists", "publication " + d.name + ": exists", "slot " + d.name + ": created",
				"table public.outbox: contains " + number + "; those written before the slot was created will not be published"}
		}
		first := done("300,000 rows")
		first[2], first[3] = "table public.fresh: created", "publication "+d.name+": created"
		d.expect(p, first...)

		again := func(number string) {
			t.Helper()
			d.exec("SELECT pg_drop_replication_slot('" + d.name + "')")
			all := done(number)
			d.expect(p, all[0], all[3], all[4], all[5])
		}
		// No server counts that fast, and a busy one not even an empty table.
		p.CountTimeout = time.Millisecond
		p.Tables = p.Tables[:1]
		d.exec("ALTER TABLE outbox SET (autovacuum_enabled = off)", "UPDATE pg_class SET reltuples = -1 WHERE oid = 'outbox'::regclass")
		again("an unknown number of rows")
		d.exec("ANALYZE outbox")
		again("about 300,000 rows")
	})
}

func TestNamesTheWritersThatASlotWaitsForAndLeavesNoHalfMadeSlot(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		d.exec("CREATE TABLE busy (id int)")
		writer := d.connect("")
		writer.exec("SET application_name = 'slow job'", "BEGIN", "INSERT INTO busy VALUES (1)")
		p := d.plan(outbox)
		p.SlotTimeout = 300 * time.Millisecond
		_, err := d.run(p)
		if err == nil {
			t.Fatal("a slot was created beside an open write transaction")
		}
		for _, part := range []string{"slot " + d.name, "300ms", "'slow job'", writer.text("SELECT pg_backend_pid()::text"), "--timeout"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("does not say %q: %v", part, err)
			}
		}
		if n := d.text("SELECT count(*)::text FROM pg_replication_slots WHERE slot_name = $1", d.name); n != "0" {
			t.Error("a slot is left")
		}
		writer.exec("PREPARE TRANSACTION 'forgotten'")
		if _, err = d.run(p); err == nil || !strings.Contains(err.Error(), "prepared transaction 'forgotten'") {
			t.Errorf("%v", err)
		}
		writer.exec("COMMIT PREPARED 'forgotten'")
		p.SlotTimeout = 0
		d.expect(p, "table public.outbox: exists", "publication "+d.name+": exists", "slot "+d.name+": created")
	})
}

func TestASlotThatIsBeingCreatedDoesNotExistYet(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		d.exec("CREATE TABLE busy (id int)")
		writer := d.connect("")
		writer.exec("BEGIN", "INSERT INTO busy VALUES (1)")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		other := d.connect("")
		done := make(chan error, 1)
		go func() {
			p := d.plan(outbox)
			p.SlotTimeout = time.Minute
			done <- Run(ctx, other.conn, p, func(Step) {})
		}()
		for d.text("SELECT count(*)::text FROM pg_replication_slots WHERE slot_name = $1", d.name) == "0" {
			select {
			case err := <-done:
				t.Fatalf("ended with %v", err)
			case <-time.After(5 * time.Millisecond):
			}
		}
		if _, err := d.run(d.plan(outbox)); err == nil || !strings.Contains(err.Error(), "is creating it at this moment") {
			t.Errorf("%v", err)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
}

func TestFailover(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		p := d.plan(outbox)
		p.Failover = true
		version := d.text("SELECT split_part(current_setting('server_version'), ' ', 1)")
		if d.server.Installation().Major < 17 {
			d.refuses(p, Problem{"slot " + d.name, "cannot be a failover slot: this server is PostgreSQL " + version + ", and they exist since 17",
				"leave out --failover, and create the slot again after each failover, or use the slot management of your cluster manager"})
			return
		}
		steps := d.expect(p, "table public.outbox: created", "publication "+d.name+": created", "slot "+d.name+": created as a failover slot")
		if next := steps[2].Next; !strings.Contains(next, "cdcpub slot create --failover") {
			t.Errorf("does not point to where a standby is waited for: %s", next)
		}
		if got := d.text("SELECT failover::text FROM pg_replication_slots WHERE slot_name = $1", d.name); got != "true" {
			t.Errorf("failover is %s", got)
		}
		d.expect(p, "table public.outbox: exists", "publication "+d.name+": exists", "slot "+d.name+": exists")
		d.exec("SELECT pg_drop_replication_slot('"+d.name+"')", "SELECT pg_create_logical_replication_slot('"+d.name+"', 'pgoutput')")
		d.refuses(p, Problem{"slot " + d.name, "exists and is not a failover slot",
			`while nobody reads it: psql "dbname=` + d.name + ` replication=database" -c 'ALTER_REPLICATION_SLOT ` + d.name + ` (FAILOVER true)'`})
		d.psql("dbname="+d.name+" replication=database", "-c", "ALTER_REPLICATION_SLOT "+d.name+" (FAILOVER true)")
		d.expect(p, "table public.outbox: exists", "publication "+d.name+": exists", "slot "+d.name+": exists")
	})
}
