package provision

import (
	"context"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/test/harness"
)

var (
	shared harness.Shared
	update = flag.Bool("update", false, "write the files in testdata anew")
)

func TestMain(m *testing.M) { harness.Main(m, &shared) }

// versions: the oldest, the first with row filters and column lists, the newest.
var versions = []string{"14", "15", "18"}

// onEach runs the test on a database of its own on a server of each version.
func onEach(t *testing.T, f func(*testing.T, *database)) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			f(t, newDatabase(t, shared.Postgres(t, version, "max_prepared_transactions=5")))
		})
	}
}

// database is one on a real server, and a superuser's connection to it.
type database struct {
	t      *testing.T
	server *pgserver.Server
	name   string
	conn   *pgx.Conn
}

func newDatabase(t *testing.T, server *pgserver.Server) *database {
	t.Helper()
	d := &database{t: t, server: server, name: harness.Database(t, server)}
	d.conn = d.connect("").conn
	return d
}

// connect opens one more connection, for a role if one is named.
func (d *database) connect(role string) *database {
	d.t.Helper()
	settings, err := pgx.ParseConfig(d.server.URL(d.name))
	if err != nil {
		d.t.Fatal(err)
	}
	if role != "" {
		settings.User = role
	}
	conn, err := pgx.ConnectConfig(d.t.Context(), settings)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return &database{d.t, d.server, d.name, conn}
}

// role is the name of a role that is dropped at the test's end.
func (d *database) role(name string) string {
	name = d.name + "_" + name
	d.t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), d.server.URL("postgres"))
		if err != nil {
			return
		}
		defer conn.Close(context.Background())
		quoted := identifier(name)
		for _, sql := range []string{"REVOKE ALL ON DATABASE " + d.name + " FROM " + quoted, "DROP OWNED BY " + quoted, "DROP ROLE " + quoted} {
			_, _ = conn.Exec(context.Background(), sql) // what a test did not make is not there
		}
	})
	return name
}

func (d *database) exec(statements ...string) {
	d.t.Helper()
	for _, sql := range statements {
		if _, err := d.conn.Exec(d.t.Context(), sql); err != nil {
			d.t.Fatalf("%s: %v", sql, err)
		}
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

// expect runs the plan, which reports these steps: "slot x: created". LSNs and
// what is left to humans are not compared.
func (d *database) expect(p Plan, want ...string) []Step {
	d.t.Helper()
	steps, err := d.run(p)
	if err != nil {
		d.t.Fatal(err)
	}
	var got []string
	for _, step := range steps {
		done, _, _ := strings.Cut(step.Done, " at LSN")
		got = append(got, step.Object+": "+done)
	}
	if !slices.Equal(got, want) {
		d.t.Errorf("did\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	return steps
}

// refuses runs the plan, which says that all of this is in the way, and finds
// nothing changed.
func (d *database) refuses(p Plan, want ...Problem) {
	d.t.Helper()
	before := d.catalogs(p)
	steps, err := d.run(p)
	var problems *ProblemsError
	if !errors.As(err, &problems) {
		d.t.Fatalf("did %v, and says %v", steps, err)
	}
	if !slices.Equal(problems.Problems, want) {
		d.t.Errorf("says\n%v\nwant\n%v", err, &ProblemsError{want})
	}
	if len(steps) > 0 {
		d.t.Errorf("did %v", steps)
	}
	if after := d.catalogs(p); after != before {
		d.t.Errorf("changed\n%s\nto\n%s", before, after)
	}
}

// catalogs is what there is of a plan on the server, as text that is the same
// on each database where it was made from the same plan.
func (d *database) catalogs(p Plan) string {
	d.t.Helper()
	var names []string
	for _, table := range p.Tables {
		names = append(names, table.sql())
	}
	var roles []string
	for _, role := range p.Roles {
		roles = append(roles, role.Name)
	}
	return d.text(`SELECT concat_ws(E'\n',
		(SELECT string_agg(format('%s %s %s %s', a.attrelid::regclass, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull)
			|| coalesce(' ' || pg_get_expr(ad.adbin, ad.adrelid), ''), E'\n' ORDER BY a.attrelid::regclass::text, a.attnum)
			FROM pg_attribute a LEFT JOIN pg_attrdef ad ON ad.adrelid = a.attrelid AND ad.adnum = a.attnum
			WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attrelid IN (SELECT to_regclass(n) FROM unnest($1::text[]) n)),
		(SELECT string_agg(conrelid::regclass || ' ' || pg_get_constraintdef(oid), E'\n' ORDER BY conrelid::regclass::text, conname COLLATE "C")
			FROM pg_constraint WHERE contype IN ('p', 'u') AND conrelid IN (SELECT to_regclass(n) FROM unnest($1::text[]) n)),
		(SELECT 'publication ' || (to_jsonb(p) - '{oid,pubname,pubowner}'::text[])::text FROM pg_publication p WHERE pubname = $2),
		(SELECT string_agg('publishes ' || schemaname || '.' || tablename, E'\n' ORDER BY schemaname, tablename) FROM pg_publication_tables WHERE pubname = $2),
		(SELECT format('slot %s %s', plugin, database = current_database()) FROM pg_replication_slots WHERE slot_name = $3),
		(SELECT string_agg(format('role %s %s %s %s %s', o, rolcanlogin, rolreplication, rolsuper,
				(SELECT string_agg(m.roleid::regrole::text, ',') FROM pg_auth_members m WHERE m.member = r.oid))
			|| (SELECT ' ' || string_agg(a.privilege_type, ',') FROM pg_database d, aclexplode(d.datacl) a WHERE d.datname = current_database() AND a.grantee = r.oid), E'\n' ORDER BY o)
			FROM unnest($4::text[]) WITH ORDINALITY AS wanted (name, o) JOIN pg_roles r ON r.rolname = wanted.name))`,
		names, p.Publication, p.Slot, roles)
}

var (
	outbox   = Table{"public", "outbox"}
	common   = Columns{EventID: "event_id", AggregateType: "aggregate_type", AggregateID: "aggregate_id", AggregateVersion: "aggregate_version", EventType: "event_type", Payload: "payload", SchemaVersion: "schema_version", Headers: "headers", OccurredAt: "occurred_at"}
	required = []string{"event_id", "aggregate_type", "aggregate_id", "aggregate_version", "event_type", "payload"}
)

// plan is that of the default configuration, with names that no other database
// of the server has.
func (d *database) plan(tables ...Table) Plan {
	return Plan{Tables: tables, Columns: common, Required: required, Publication: d.name, Slot: d.name}
}

// withRoles adds a publisher and a monitor.
func (d *database) withRoles(p Plan) Plan {
	p.Roles = []Role{{d.role("publisher"), Publish}, {d.role("monitor"), Monitor}}
	return p
}
