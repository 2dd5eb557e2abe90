package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/slotmon"
)

// common is an outbox table by the common convention.
const common = `CREATE TABLE outbox (event_id uuid PRIMARY KEY, aggregate_type text NOT NULL, aggregate_id text NOT NULL, aggregate_version bigint NOT NULL,
	event_type text NOT NULL, payload jsonb, UNIQUE (aggregate_type, aggregate_id, aggregate_version))`

const (
	published = `CREATE PUBLICATION shop FOR TABLE outbox WITH (publish = 'insert', publish_via_partition_root = true)`
	slotted   = `SELECT pg_create_logical_replication_slot('shop', 'pgoutput')`
)

// situations are databases, each with what the checks say of it besides OK.
var situations = map[string]struct {
	since int // PostgreSQL version
	make  []string
	user  string // empty: the superuser
	setup func(*Setup)
	want  []string
	says  []string
}{
	"ready":        {make: []string{common, published, slotted}},
	"nothing made": {want: []string{"fail publication.exists", "fail slot.exists", "fail outbox.exists", "skip"}},
	"a view": {make: []string{`CREATE VIEW outbox AS SELECT 1 AS event_id`},
		want: []string{"fail publication.exists", "fail slot.exists", "fail outbox.exists", "skip"}, says: []string{"is a view"}},
	"partitioned, published by leaf": {
		make: []string{
			`CREATE TABLE outbox (event_id uuid NOT NULL, aggregate_type text NOT NULL, aggregate_id text NOT NULL, aggregate_version bigint, event_type text, payload jsonb) PARTITION BY LIST (aggregate_type)`,
			`CREATE TABLE outbox_a PARTITION OF outbox FOR VALUES IN ('a')`, `CREATE UNLOGGED TABLE outbox_b PARTITION OF outbox FOR VALUES IN ('b')`,
			`CREATE PUBLICATION shop FOR TABLE outbox_a WITH (publish = 'insert')`, slotted},
		want: []string{"fail publication.tables", "warn publication.via_root", "warn outbox.unique", "fail outbox.logged"},
		says: []string{"public.outbox_b", "partitioned, 2 partitions", `ADD UNIQUE ("aggregate_type", "aggregate_id", "aggregate_version");`, "ALTER TABLE public.outbox_b SET LOGGED;", `ALTER PUBLICATION "shop" ADD TABLE "public"."outbox"; ALTER PUBLICATION "shop" DROP TABLE public.outbox_a;`},
	},
	"partitioned, each partition published": {
		make: []string{
			`CREATE TABLE outbox (event_id uuid NOT NULL, aggregate_type text NOT NULL, aggregate_id text NOT NULL, aggregate_version bigint, event_type text, payload jsonb) PARTITION BY LIST (aggregate_type)`,
			`CREATE TABLE outbox_a PARTITION OF outbox FOR VALUES IN ('a')`,
			`CREATE PUBLICATION shop FOR TABLE outbox_a WITH (publish = 'insert', publish_via_partition_root = true)`, slotted},
		want: []string{"warn publication.tables", "warn outbox.unique"},
		says: []string{"lists its partitions and not the table itself", `ALTER PUBLICATION "shop" ADD TABLE "public"."outbox"; ALTER PUBLICATION "shop" DROP TABLE public.outbox_a; ALTER PUBLICATION "shop" SET (publish_via_partition_root = true); COMMIT;`},
	},
	"partitioned by what the key lacks": {
		make: []string{
			`CREATE TABLE outbox (event_id uuid NOT NULL, aggregate_type text NOT NULL, aggregate_id text NOT NULL, aggregate_version bigint, event_type text, payload jsonb, dropped int, made timestamptz, shard int) PARTITION BY RANGE (made)`,
			`ALTER TABLE outbox DROP COLUMN dropped`,
			`CREATE TABLE outbox_a PARTITION OF outbox DEFAULT PARTITION BY HASH (shard)`, `CREATE TABLE outbox_b PARTITION OF outbox_a FOR VALUES WITH (MODULUS 1, REMAINDER 0)`, published, slotted},
		want: []string{"warn outbox.unique"}, says: []string{"while the partition key has made, shard"},
	},
	"partitioned by an expression": {
		make: []string{
			`CREATE TABLE outbox (event_id uuid NOT NULL, aggregate_type text NOT NULL, aggregate_id text NOT NULL, aggregate_version bigint, event_type text, payload jsonb) PARTITION BY LIST (lower(aggregate_type))`,
			`CREATE TABLE outbox_a PARTITION OF outbox DEFAULT`, published, slotted},
		want: []string{"warn outbox.unique"}, says: []string{"where the partition key has an expression"},
	},
	"row filter and column list": {since: 15,
		make: []string{common, `CREATE TABLE other (LIKE outbox INCLUDING ALL)`,
			`CREATE PUBLICATION shop FOR TABLE outbox WHERE (aggregate_version > 1), other (event_id, payload) WITH (publish = 'insert')`, slotted},
		setup: func(s *Setup) { s.Tables = append(s.Tables, slotmon.Table{Schema: "public", Name: "other"}) },
		want:  []string{"fail publication.filters"}, says: []string{"only its rows with (aggregate_version > 1)", "not its columns aggregate_id, aggregate_type, aggregate_version, event_type"},
	},
	"column list that has all": {since: 15,
		make: []string{common, `CREATE PUBLICATION shop FOR TABLE outbox (event_id, aggregate_type, aggregate_id, aggregate_version, event_type, payload) WITH (publish = 'insert')`, slotted},
	},
	"all tables of a schema": {since: 15, make: []string{common, `CREATE PUBLICATION shop FOR TABLES IN SCHEMA public WITH (publish = 'insert')`, slotted}},
	"all tables":             {make: []string{common, `CREATE PUBLICATION shop FOR ALL TABLES WITH (publish = 'insert')`, slotted}},
	"generated column": {
		make: []string{strings.Replace(common, "event_type text NOT NULL", "event_type text NOT NULL GENERATED ALWAYS AS ('T') STORED", 1), published, slotted},
		want: []string{"fail outbox.columns"}, says: []string{"event_type is generated"},
	},
	"generated column that is published": {since: 18,
		make: []string{strings.Replace(common, "event_type text NOT NULL", "event_type text NOT NULL GENERATED ALWAYS AS ('T') STORED", 1),
			`CREATE PUBLICATION shop FOR TABLE outbox WITH (publish = 'insert', publish_generated_columns = stored)`, slotted},
	},
	"types that are no good": {
		make: []string{`CREATE DOMAIN blob AS bytea`, `CREATE DOMAIN twice AS blob`,
			`CREATE TABLE outbox (event_id uuid, aggregate_type text, aggregate_id char(10), aggregate_version bigint, event_type text, payload twice, headers int)`, published, slotted},
		want: []string{"fail outbox.types", "warn outbox.not_null", "warn outbox.unique"}, says: []string{"column headers of the headers is integer"},
	},
	"domain over bytea": {
		make: []string{`CREATE DOMAIN blob AS bytea`, `CREATE DOMAIN twice AS blob`, strings.Replace(common, "payload jsonb", "payload twice", 1), published, slotted},
	},
	"quoted names": {
		make: []string{`CREATE SCHEMA "My Shop"`, strings.Replace(common, "TABLE outbox", `TABLE "My Shop"."Out""box"`, 1),
			`INSERT INTO "My Shop"."Out""box" VALUES (gen_random_uuid(), 'order', '1', 1, 'T', '{}')`, `CREATE PUBLICATION "Shop" FOR TABLE "My Shop"."Out""box" WITH (publish = 'insert')`, slotted},
		setup: func(s *Setup) {
			s.Tables, s.Publication = []slotmon.Table{{Schema: "My Shop", Name: `Out"box`}}, "Shop"
		},
	},
	"slot older than the publication": {make: []string{common, slotted, published}, want: []string{"warn slot.publication_age"}},
	"two-phase slot with another plugin": {make: []string{common, published, `SELECT pg_create_logical_replication_slot('shop', 'test_decoding', false, true)`},
		want: []string{"fail slot.plugin", "skip"}},
	"physical slot": {make: []string{common, published, `SELECT pg_create_physical_replication_slot('shop', true)`},
		want: []string{"fail slot.plugin", "skip"}},
	"the least privileges": {make: []string{common, published, slotted}, user: "least",
		want: []string{"warn postgres.monitor", "skip"}, says: []string{"least may not SELECT from public.outbox"}},
	"may read the outbox alone": {make: []string{common, published, slotted, `GRANT SELECT ON outbox TO least`}, user: "least",
		want: []string{"warn postgres.monitor"}},
	"no REPLICATION": {make: []string{common, published, slotted, `GRANT SELECT ON outbox TO plain`}, user: "plain",
		want: []string{"fail postgres.role", "warn postgres.monitor", "skip postgres.replication", "skip postgres.session"}, says: []string{`ALTER ROLE "plain" REPLICATION;`}},
}

func TestRead(t *testing.T) {
	for _, version := range []int{14, 15, 18} {
		t.Run(fmt.Sprintf("PostgreSQL %d", version), func(t *testing.T) {
			server, err := pgserver.Start(t.Context(), pgserver.Options{Version: fmt.Sprint(version), Settings: map[string]string{"max_slot_wal_keep_size": "1GB"}})
			if err != nil {
				t.Fatalf("no PostgreSQL for the test: %v\nto install one: apt-get install -y postgresql", err)
			}
			t.Cleanup(func() {
				if err := server.Close(); err != nil {
					t.Error(err)
				}
			})
			s := &stand{server: server}
			s.exec(t, "CREATE ROLE least LOGIN REPLICATION", "CREATE ROLE plain LOGIN")
			for name, situation := range situations {
				if version < situation.since {
					continue
				}
				t.Run(name, func(t *testing.T) {
					facts := s.facts(t, situation.make, situation.user, situation.setup)
					results := Judge(facts)
					got, want := notOK(results, situation.want), slices.Clone(situation.want)
					slices.Sort(got)
					slices.Sort(want)
					if !slices.Equal(got, want) {
						t.Errorf("found %q, want %q\n%+v", got, want, results)
					}
					all := fmt.Sprintf("%+v", results)
					for _, words := range situation.says {
						if !strings.Contains(all, words) {
							t.Errorf("does not say %q: %s", words, all)
						}
					}
				})
			}
			t.Run("rows", s.rows)
		})
	}
}

// stand is a server whose database postgres holds one situation after another.
type stand struct{ server *pgserver.Server }

func (s *stand) connect(t *testing.T, user string) *pgx.Conn {
	t.Helper()
	settings, err := pgx.ParseConfig(s.server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if user != "" {
		settings.User = user
	}
	conn, err := pgx.ConnectConfig(t.Context(), settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (s *stand) exec(t *testing.T, statements ...string) {
	t.Helper()
	conn := s.connect(t, "")
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// remake empties the database and makes the situation in it.
func (s *stand) remake(t *testing.T, statements []string) {
	t.Helper()
	s.exec(t, append([]string{
		`SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots`, `DROP PUBLICATION IF EXISTS shop`, `DROP PUBLICATION IF EXISTS "Shop"`,
		`DROP SCHEMA IF EXISTS public, "My Shop" CASCADE`, `CREATE SCHEMA public`, `GRANT USAGE ON SCHEMA public TO PUBLIC`}, statements...)...)
}

// facts are those of a server with the situation; Kafka is ready.
func (s *stand) facts(t *testing.T, statements []string, user string, change func(*Setup)) *Facts {
	t.Helper()
	facts := ready()
	s.remake(t, statements)
	if change != nil {
		change(&facts.Setup)
	}
	facts.Postgres = Postgres{Server: "SERVER", User: user, Database: "postgres"}
	if user == "" {
		facts.Postgres.User = "postgres"
	}
	if user != "plain" {
		facts.Postgres.Replication = s.replication(t, user)
	} else {
		facts.Postgres.Replication.Refused = &Failure{Text: "permission denied", SQLState: noPrivilege}
	}
	Read(t.Context(), s.connect(t, user), &facts.Setup, 0, &facts.Postgres)
	if len(facts.types()) == 0 {
		facts.Postgres.addType("order")
	}
	return facts
}

// addType stands for a row, so that topics are known.
func (pg *Postgres) addType(name string) {
	if t := &pg.Tables[0]; t.Readable {
		t.Types = []string{name}
	}
}

func (s *stand) replication(t *testing.T, user string) Replication {
	t.Helper()
	settings, err := pgx.ParseConfig(s.server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if user != "" {
		settings.User = user
	}
	settings.RuntimeParams["replication"] = "database"
	for _, setting := range SessionSettings() {
		settings.RuntimeParams[setting[0]] = setting[1]
	}
	settings.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(t.Context(), settings)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	r, err := ReplicationFacts(t.Context(), conn.PgConn())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (s *stand) rows(t *testing.T) {
	plainTable := strings.Replace(common, ", UNIQUE (aggregate_type, aggregate_id, aggregate_version)", "", 1)
	many := `INSERT INTO outbox SELECT gen_random_uuid(), 'type' || n %% 3, n::text, 1, 'T', to_jsonb(repeat('x', n %% 100 + 1)) FROM generate_series(1, %d) n`
	for name, c := range map[string]struct {
		make    []string
		types   []string
		all     bool
		largest int64
		rows    int64
	}{
		"empty":                      {[]string{common}, nil, true, 0, 0},
		"through an index":           {[]string{common, fmt.Sprintf(many, 12_000)}, []string{"type0", "type1", "type2"}, true, 102, 1000},
		"few rows, without an index": {[]string{plainTable, fmt.Sprintf(many, 100)}, []string{"type0", "type1", "type2"}, true, 102, 100},
		"many, without an index":     {[]string{plainTable, fmt.Sprintf(many, 12_000)}, []string{"type0", "type1", "type2"}, false, 102, 1000},
		"bytea and NULL": {[]string{strings.Replace(common, "payload jsonb", "payload bytea", 1),
			`INSERT INTO outbox VALUES (gen_random_uuid(), 'a', '1', 1, 'T', NULL), (gen_random_uuid(), 'b', '1', 1, 'T', '\x0102')`}, []string{"a", "b"}, true, 2, 2},
		"partitioned, and an enum": {[]string{`CREATE TYPE kind AS ENUM ('z', 'a')`,
			`CREATE TABLE outbox (event_id uuid, aggregate_type kind, aggregate_id text, payload jsonb) PARTITION BY LIST (aggregate_type)`,
			`CREATE TABLE o1 PARTITION OF outbox FOR VALUES IN ('z')`, `CREATE TABLE o2 PARTITION OF outbox FOR VALUES IN ('a')`, `CREATE INDEX ON outbox (aggregate_type)`,
			`INSERT INTO outbox VALUES (NULL, 'a', '1', '1'), (NULL, 'z', '1', '22')`}, []string{"a", "z"}, true, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s.remake(t, c.make)
			facts := ready()
			facts.Postgres = Postgres{Database: "postgres"}
			Read(t.Context(), s.connect(t, ""), &facts.Setup, 0, &facts.Postgres)
			table := facts.outbox()
			slices.Sort(table.Types)
			if !slices.Equal(table.Types, c.types) || table.TypesAll != c.all || table.LargestPayload != c.largest || table.PayloadRows != c.rows || table.RowsUnread != "" {
				t.Errorf("types %q, all %t, largest %d of %d, unread %q; want %+v", table.Types, table.TypesAll, table.LargestPayload, table.PayloadRows, table.RowsUnread, c)
			}
		})
	}
	t.Run("behind a lock", func(t *testing.T) {
		s.remake(t, []string{common})
		holder := s.connect(t, "")
		if _, err := holder.Exec(t.Context(), "BEGIN; LOCK TABLE outbox"); err != nil {
			t.Fatal(err)
		}
		facts := ready()
		facts.Postgres = Postgres{Database: "postgres"}
		Read(t.Context(), s.connect(t, ""), &facts.Setup, 0, &facts.Postgres)
		if table := facts.outbox(); !table.Exists || len(table.Columns) != 6 || !strings.Contains(table.RowsUnread, "lock timeout") {
			t.Errorf("%+v", table)
		}
	})
}
