package provision

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/test/harness"
)

func TestSaysAllThatIsInTheWayAndChangesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		p := d.withRoles(d.plan(outbox, Table{"public", "looks"}, Table{"nowhere", "outbox"}, Table{"public", "fresh"}))
		p.Required = append(p.Required, "region", "at")
		p.Columns.Timestamp = "at"
		publisher, monitor := p.Roles[0].Name, p.Roles[1].Name
		d.exec("CREATE UNLOGGED TABLE outbox (event_id uuid, aggregate_type text, aggregate_id text, event_type text, payload jsonb)",
			"CREATE VIEW looks AS SELECT 1 AS id", "CREATE TABLE other (id int)",
			"CREATE PUBLICATION "+d.name+" FOR TABLE other WITH (publish = 'update')",
			"SELECT pg_create_logical_replication_slot('"+d.name+"', 'test_decoding')",
			"CREATE ROLE "+publisher, "CREATE ROLE "+monitor+" LOGIN", "REVOKE CONNECT ON DATABASE "+d.name+" FROM public")
		object := "table public.outbox"
		d.refuses(p,
			Problem{"role " + publisher, "exists and may not log in", "ALTER ROLE " + publisher + " LOGIN"},
			Problem{"role " + publisher, "exists and may not read slots", "ALTER ROLE " + publisher + " REPLICATION"},
			Problem{"role " + publisher, "exists and may not connect to database " + d.name, "GRANT CONNECT ON DATABASE " + d.name + " TO " + publisher},
			Problem{"role " + monitor, "exists and is no member of pg_monitor", "GRANT pg_monitor TO " + monitor},
			Problem{"role " + monitor, "exists and may not connect to database " + d.name, "GRANT CONNECT ON DATABASE " + d.name + " TO " + monitor},
			Problem{object, "is UNLOGGED, so its rows never reach the WAL", "ALTER TABLE outbox SET LOGGED"},
			Problem{object, "lacks what the configuration names: aggregate_version, region, at",
				"ALTER TABLE public.outbox ADD COLUMN aggregate_version bigint, ADD COLUMN region text, ADD COLUMN at timestamptz; or name the right columns in outbox.columns, outbox.headers and kafka.topic"},
			Problem{"table public.looks", "is a view, and only the rows of tables are in the WAL", "name the table itself in outbox.tables"},
			Problem{"table nowhere.outbox", "has no schema: nowhere does not exist in database " + d.name, "CREATE SCHEMA nowhere, or correct outbox.tables"},
			Problem{"publication " + d.name, "exists and does not publish inserts",
				"ALTER PUBLICATION " + d.name + " SET (publish = 'insert'), if no other reader needs what it publishes now; else name another in postgres.publication"},
			Problem{"slot " + d.name, "exists and cannot be used: it is lost, belongs to another database, is two-phase or has another plugin than pgoutput",
				"look: `cdcpub slot status " + d.name + "`; if nobody needs it, `cdcpub slot drop " + d.name + "` and run init again; what it should have held must be published by other means"},
		)
		// The statements are the cure.
		d.exec("ALTER ROLE "+publisher+" LOGIN", "ALTER ROLE "+publisher+" REPLICATION", "GRANT CONNECT ON DATABASE "+d.name+" TO "+publisher,
			"GRANT pg_monitor TO "+monitor, "GRANT CONNECT ON DATABASE "+d.name+" TO "+monitor, "ALTER TABLE outbox SET LOGGED",
			"ALTER TABLE public.outbox ADD COLUMN aggregate_version bigint, ADD COLUMN region text, ADD COLUMN at timestamptz",
			"CREATE SCHEMA nowhere", "ALTER PUBLICATION "+d.name+" SET (publish = 'insert')", "SELECT pg_drop_replication_slot('"+d.name+"')")
		p.Tables = []Table{outbox, {"nowhere", "outbox"}}
		d.expect(p, "role "+publisher+": exists", "role "+monitor+": exists", "table public.outbox: exists", "table nowhere.outbox: created",
			"publication "+d.name+": exists", "publication "+d.name+": table public.outbox added", "publication "+d.name+": table nowhere.outbox added", "slot "+d.name+": created")
	})
}

func TestRowFiltersAndColumnListsAreInTheWay(t *testing.T) {
	for _, version := range []string{"15", "18"} {
		t.Run(version, func(t *testing.T) {
			d := newDatabase(t, shared.Postgres(t, version, "max_prepared_transactions=5"))
			p := d.plan(outbox)
			d.exec(p.TableSQL(outbox), "CREATE PUBLICATION "+d.name+" FOR TABLE outbox (event_id, aggregate_id, payload, event_type, aggregate_type) WHERE (aggregate_type = 'order') WITH (publish = 'insert')")
			cure := ": ALTER PUBLICATION ... SET TABLE, with all tables of the publication"
			d.refuses(p,
				Problem{"table public.outbox", "has a row filter in publication " + d.name + ", (aggregate_type = 'order'::text): rows that it excludes would be lost", "remove the filter" + cure},
				Problem{"table public.outbox", "has a column list in publication " + d.name + " without aggregate_version", "add them to the list" + cure})
			d.exec("ALTER PUBLICATION " + d.name + " SET TABLE outbox (event_id, aggregate_id, payload, event_type, aggregate_type, aggregate_version)")
			d.expect(p, "table public.outbox: exists", "publication "+d.name+": exists", "slot "+d.name+": created")
		})
	}
}

func TestAServerWithoutLogicalDecodingIsInTheWay(t *testing.T) {
	d := newDatabase(t, harness.Postgres(t, "15", "wal_level=replica"))
	d.refuses(d.plan(outbox), Problem{"server", "has wal_level = replica, with which there is no logical decoding",
		"ALTER SYSTEM SET wal_level = logical; then restart PostgreSQL (RDS and Aurora: parameter rds.logical_replication, Cloud SQL: flag cloudsql.logical_decoding)"})
}

func TestAStandbyIsInTheWay(t *testing.T) {
	standby := harness.Standby(t, harness.Postgres(t, "15"))
	conn, err := pgx.Connect(t.Context(), standby.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	d := &database{t: t, server: standby, name: "postgres", conn: conn}
	d.refuses(d.plan(outbox), Problem{"server", "is a standby, on which nothing can be created", "connect to the primary"})
}

// On Amazon RDS nobody has REPLICATION to give, and membership in
// rds_replication stands for it.
func TestRDS(t *testing.T) {
	d := newDatabase(t, harness.Postgres(t, "15"))
	d.exec("CREATE ROLE rds_replication")
	p := d.withRoles(d.plan(outbox))
	publisher := p.Roles[0].Name
	if _, err := d.run(p); err != nil {
		t.Fatal(err)
	}
	if got := d.text("SELECT rolreplication || ' ' || pg_has_role($1::name, 'rds_replication', 'MEMBER') FROM pg_roles WHERE rolname = $1", publisher); got != "false true" {
		t.Errorf("the publisher has REPLICATION, rds_replication: %s", got)
	}
	d.exec("REVOKE rds_replication FROM " + publisher)
	d.refuses(p, Problem{"role " + publisher, "exists and may not read slots", "GRANT rds_replication TO " + publisher})
}

func TestWhoLacksARightIsTold(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		plain := d.role("plain")
		d.exec("CREATE ROLE "+plain+" LOGIN CREATEROLE", "GRANT CREATE ON DATABASE "+d.name+" TO "+plain, "GRANT CREATE ON SCHEMA public TO "+plain)
		as := d.connect(plain)
		if _, err := as.run(d.plan(outbox)); err == nil || !strings.Contains(err.Error(), "ALTER ROLE") || !strings.Contains(err.Error(), "REPLICATION") {
			t.Errorf("%v", err)
		}
		p := d.plan(outbox)
		p.Roles = []Role{{d.role("monitor"), Monitor}}
		before := d.catalogs(p)
		_, err := as.run(p)
		var refused *pgconn.PgError
		var problems *ProblemsError
		if !errors.As(err, &refused) && !errors.As(err, &problems) {
			t.Errorf("%v", err)
		}
		if after := d.catalogs(p); after != before {
			t.Errorf("half a role is left: %s", after)
		}
	})
}

// A GRANT that has no effect is only a warning of the server.
func TestAGrantWithoutEffectIsAnError(t *testing.T) {
	d := newDatabase(t, shared.Postgres(t, "14", "max_prepared_transactions=5"))
	plain := d.role("plain")
	d.exec("CREATE ROLE "+plain+" LOGIN CREATEROLE", "GRANT pg_monitor TO "+plain+" WITH ADMIN OPTION", "REVOKE CONNECT ON DATABASE "+d.name+" FROM public", "GRANT CONNECT ON DATABASE "+d.name+" TO "+plain)
	p := d.plan(outbox)
	p.Roles = []Role{{d.role("monitor"), Monitor}}
	_, err := d.connect(plain).run(p)
	if err == nil || !strings.Contains(err.Error(), "could not be given CONNECT on database "+d.name) {
		t.Errorf("%v", err)
	}
	if n := d.text("SELECT count(*)::text FROM pg_roles WHERE rolname = $1", p.Roles[0].Name); n != "0" {
		t.Error("half a role is left")
	}
}

func TestLacksSaysWhatARoleIsMissing(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		r := Role{d.role("publisher"), Publish}
		for _, c := range []struct{ sql, want string }{
			{"SELECT", "does not exist: CREATE ROLE " + r.Name + " LOGIN REPLICATION"},
			{"CREATE ROLE " + r.Name + " LOGIN", "exists and may not read slots: ALTER ROLE " + r.Name + " REPLICATION"},
			{"ALTER ROLE " + r.Name + " REPLICATION", ""},
			{"ALTER ROLE " + r.Name + " SUPERUSER NOREPLICATION", ""},
		} {
			d.exec(c.sql)
			problems, err := r.Lacks(t.Context(), d.conn)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, problem := range problems {
				got += problem.What + ": " + problem.Cure
			}
			if got != c.want {
				t.Errorf("after %s: %q, want %q", c.sql, got, c.want)
			}
		}
	})
}
