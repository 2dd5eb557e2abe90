package scenarios

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/cdcpub/cdcpub/test/harness"
)

// refusal is a start that must end with an exit code and plain words.
type refusal struct {
	name    string
	from    int    // first version of PostgreSQL that lets it happen
	prepare string // SQL, %[1]s is the slot, publication and database
	config  func(config string) string
	code    int
	says    []string
}

func replace(old, new string) func(string) string {
	return func(config string) string { return strings.ReplaceAll(config, old, new) }
}

func as(user, password string) func(string) string {
	return func(config string) string {
		return strings.Replace(config, "postgres://postgres", "postgres://"+url.UserPassword(user, password).String(), 1)
	}
}

var refusals = []refusal{
	{name: "slot missing", prepare: "SELECT pg_drop_replication_slot('%[1]s')", code: 3,
		says: []string{"does not exist", "cdcpub init", "will not contain"}},
	{name: "publication missing", prepare: "DROP PUBLICATION %[1]s", code: 3, says: []string{"publication", "does not exist", "cdcpub init"}},
	{name: "table missing", prepare: "DROP TABLE outbox", code: 3, says: []string{"public.outbox", "does not exist"}},
	{name: "table not published", prepare: "ALTER PUBLICATION %[1]s DROP TABLE outbox", code: 3, says: []string{"does not contain", "ALTER PUBLICATION"}},
	{name: "inserts not published", prepare: "ALTER PUBLICATION %[1]s SET (publish = 'update')", code: 3, says: []string{"does not publish inserts", "ALTER PUBLICATION"}},
	{name: "row filter", from: 15, prepare: "ALTER PUBLICATION %[1]s SET TABLE outbox WHERE (aggregate_version > 1)", code: 3, says: []string{"row filter"}},
	{name: "column list", from: 15, prepare: "ALTER PUBLICATION %[1]s SET TABLE outbox (event_id, aggregate_type, aggregate_id, aggregate_version, event_type)", code: 3, says: []string{"payload"}},
	{name: "unlogged table", prepare: "DROP TABLE outbox; CREATE UNLOGGED TABLE outbox (event_id uuid, aggregate_type text, aggregate_id text, aggregate_version int, event_type text, payload jsonb)", code: 3, says: []string{"UNLOGGED", "SET LOGGED"}},
	{name: "two-phase slot", prepare: "SELECT pg_drop_replication_slot('%[1]s'); SELECT pg_create_logical_replication_slot('%[1]s', 'pgoutput', false, true)", code: 3, says: []string{"two_phase"}},
	{name: "another plugin", prepare: "SELECT pg_drop_replication_slot('%[1]s'); SELECT pg_create_logical_replication_slot('%[1]s', 'test_decoding')", code: 3, says: []string{"test_decoding", "pgoutput"}},
	{name: "physical slot", prepare: "SELECT pg_drop_replication_slot('%[1]s'); SELECT pg_create_physical_replication_slot('%[1]s')", code: 3, says: []string{"physical"}},
	{name: "no REPLICATION", prepare: "CREATE ROLE %[1]s_plain LOGIN", code: 3,
		config: func(c string) string { return strings.Replace(c, "postgres://postgres", "postgres://plain_role", 1) }, says: []string{"REPLICATION"}},
}

func TestRefusalsSayWhatAndWhatToDo(t *testing.T) {
	for _, r := range refusals {
		if r.from > major(t) {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			parallel(t)
			s := newStand(t, options{})
			for _, sql := range strings.Split(r.prepare, "; ") {
				s.exec(strings.ReplaceAll(sql, "%[1]s", s.slot))
			}
			config := s.config()
			if r.config != nil {
				config = strings.ReplaceAll(r.config(config), "plain_role", s.slot+"_plain")
			}
			s.refused(config, r.code, r.says)
			t.Cleanup(func() { s.sql.Exec(s.ctx, "DROP ROLE IF EXISTS "+s.slot+"_plain") })
		})
	}
}

// refused starts the publisher and expects it to end with the code and to say
// all of what is expected.
func (s *stand) refused(config string, code int, says []string) {
	s.t.Helper()
	p := harness.StartProcess(s.t, harness.ProcessOptions{Binary: s.options.binary, Args: []string{"run", "-c", "{config}"}, Config: config})
	if got := s.exit(p); got != code {
		s.t.Errorf("exit %d, want %d\n%s", got, code, p.Stderr())
	}
	s.says(p.Stderr(), says...)
}

func TestAnotherDatabaseIsRefused(t *testing.T) {
	parallel(t)
	s := newStand(t, options{})
	other := harness.Database(t, s.pg)
	s.refused(replace("/"+s.slot, "/"+other)(s.config()), 3, []string{"belongs to database " + s.slot, other})
}

func TestWrongUserOrPasswordIsRefused(t *testing.T) {
	parallel(t)
	s := newStand(t, options{})
	s.refused(as("nobody_at_all", "wrong-horse")(s.config()), 3, []string{"does not let user nobody_at_all in"})
}

func TestLostSlotNeedsADecision(t *testing.T) {
	parallel(t)
	s := newStand(t, options{postgres: harness.Postgres(t, "", "max_slot_wal_keep_size=16MB", "max_wal_size=32MB", "min_wal_size=32MB")})
	s.load(1, 10)
	// The oracle's slot is lost with it: nothing is judged here.
	for range 10 {
		s.exec("CREATE TABLE noise AS SELECT repeat('x', 1000) AS text FROM generate_series(1, 20000)")
		s.exec("DROP TABLE noise")
		s.exec("SELECT pg_switch_wal()")
	}
	s.exec("CHECKPOINT")
	var confirmed, status string
	s.no(s.sql.QueryRow(s.ctx, "SELECT confirmed_flush_lsn::text, wal_status FROM pg_replication_slots WHERE slot_name = $1", s.slot).Scan(&confirmed, &status))
	if status != "lost" {
		t.Fatalf("the slot is %s, the scenario wants it lost", status)
	}
	s.refused(s.config(), 4, []string{"is lost", "the WAL from " + confirmed, "cdcpub slot drop"})
}

func TestSlotInUseStandsByAndTakesOver(t *testing.T) {
	parallel(t)
	s := newStand(t, options{})
	active := s.run()
	s.load(10, 10)
	standby := s.launch()
	line := s.awaitLog(standby, "standby")
	if reason := fmt.Sprint(line["reason"]); !strings.Contains(reason, "pid") || !strings.Contains(reason, "cdcpub") {
		t.Errorf("does not name the holder: %s", reason)
	}
	s.load(10, 10)
	s.no(active.Kill9())
	s.awaitLog(standby, "resumed")
	s.load(10, 10)
	s.delivered()
	s.stop(standby)
	s.check(nil)
}
