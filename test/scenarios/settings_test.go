package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cdcpub/cdcpub/internal/verify"
)

// hostile settings of a role: some change what a session prints, some end it,
// some lead it to functions and to a mode that are not what it expects.
var hostile = []string{
	"DateStyle = 'German, DMY'", "TimeZone = 'Asia/Kathmandu'", "IntervalStyle = 'iso_8601'", "extra_float_digits = -15", "bytea_output = 'escape'",
	"client_encoding = 'LATIN1'", "client_min_messages = 'error'", "quote_all_identifiers = on", "xmlbinary = 'hex'", "standard_conforming_strings = off",
	"search_path = evil, pg_catalog", "statement_timeout = 1", "lock_timeout = 1", "idle_in_transaction_session_timeout = 1", "idle_session_timeout = 1",
	"default_transaction_read_only = on", "default_transaction_isolation = 'serializable'", "default_transaction_deferrable = on",
	"session_replication_role = 'replica'", "row_security = off", "wal_sender_timeout = '1h'", "synchronous_commit = off", "logical_decoding_work_mem = '64kB'",
}

// hostileRole logs cdcpub in as a role with all of these, for itself and in the
// database.
func (s *stand) hostileRole(more ...string) {
	s.t.Helper()
	role := s.slot + "_role"
	s.exec("CREATE ROLE " + role + " LOGIN REPLICATION IN ROLE pg_monitor")
	s.t.Cleanup(func() {
		if _, err := s.sql.Exec(context.Background(), "DROP OWNED BY "+role+"; DROP ROLE "+role); err != nil {
			s.t.Logf("the role %s stays: %v", role, err)
		}
	})
	for _, setting := range slices.Concat(hostile, more) {
		s.exec("ALTER ROLE " + role + " SET " + setting)
		s.exec(fmt.Sprintf("ALTER ROLE %s IN DATABASE %s SET %s", role, s.slot, setting))
	}
	s.exec("CREATE SCHEMA evil")
	s.exec("GRANT USAGE ON SCHEMA evil TO PUBLIC")
	for _, function := range []string{"row_to_json(record) RETURNS json", "to_json(text) RETURNS json", "json_build_object(VARIADIC text[]) RETURNS json",
		"to_regclass(text) RETURNS regclass", "pg_backend_pid() RETURNS int", "set_config(text, text, boolean) RETURNS text", "pg_partition_tree(regclass) RETURNS int"} {
		s.exec("CREATE FUNCTION evil." + function + " LANGUAGE plpgsql AS $$ BEGIN RAISE 'called a function that stands before that of pg_catalog'; END $$")
	}
	s.options.login = strings.Replace(s.url, "postgres://postgres", "postgres://"+role, 1)
}

func TestSettingsOfTheRoleChangeNothing(t *testing.T) {
	parallel(t)
	roleSettings(newStand(t, options{sections: map[string]string{
		"outbox": "  headers: {id: event_id, aggregateVersion: aggregate_version, eventType: event_type, at: at, f: f, i: i, b: b, r: r, m: m, d: d}\n",
	}}))
}

func roleSettings(s *stand) {
	s.exec(`ALTER TABLE outbox DROP at, DROP f, DROP i, DROP b, DROP r, DROP m, DROP d,
		ADD at timestamptz, ADD f float8, ADD i interval, ADD b bytea, ADD r regclass, ADD m money, ADD d date`)
	s.hostileRole()
	p := s.run()
	for version := range 10 {
		s.exec(`INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type, payload, at, f, i, b, r, m, d)
			VALUES ('order', 'ü€', $1, 'T', '{"ü": "€"}', '2026-02-03 04:05:06.789+00', 0.1::float8 + 0.2, '1 year 2 days 03:04:05', '\x00ff41', 'outbox', 1234.5, '2026-02-03')`, version)
	}
	s.load(5, 100)
	s.delivered()
	s.stop(p)
	want := []verify.Header{{Key: "at"}, {Key: "f"}, {Key: "i"}, {Key: "b"}, {Key: "r"}, {Key: "m"}, {Key: "d"}}
	for i, value := range []string{"2026-02-03 04:05:06.789+00", "0.30000000000000004", "1 year 2 days 03:04:05", "\x00\xffA", "public.outbox", "$1,234.50", "2026-02-03"} {
		want[i].Value = []byte(value)
	}
	s.check(func(o *verify.Options) {
		o.Expect.Headers = func(r verify.Row) []verify.Header {
			headers := verify.DefaultHeaders(r)
			if r.AggregateID == "ü€" {
				return append(headers, want...)
			}
			for _, h := range want {
				headers = append(headers, verify.Header{Key: h.Key})
			}
			return headers
		}
	})
	if s.sessions() != 1 {
		s.t.Errorf("%d sessions, want one", s.sessions())
	}
}

// Decoding is a transaction of its own. A role's transaction_timeout, which came
// with 17, must not end it while Kafka lets the publisher wait: the next session would begin the
// transaction anew, for ever.
func TestTransactionTimeoutDoesNotEndTheStream(t *testing.T) {
	parallel(t)
	s := newStand(t, options{topic: rejectingTopic, sections: map[string]string{
		"kafka": rejectingSections["kafka"], "": rejectingSections[""] + "window: {records: 100}\n",
	}})
	s.hostileRole("transaction_timeout = '1s'")
	p := s.run()
	// The first record stands still, and the rest does not fit into what lies
	// between PostgreSQL and the window.
	s.exec(`INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type, payload)
		SELECT 'order', 'one', n, 'T', to_jsonb(repeat('x', CASE n WHEN 0 THEN 50000 ELSE 10000 END)) FROM generate_series(0, 4000) n`)
	s.awaitLog(p, "rejected")
	s.awaitOldWalsender("4s")
	s.deliverToALargerTopic(p)
	if report := s.check(nil); report.Events != 4001 || s.sessions() != 2 {
		t.Errorf("%d events, %d sessions; want 4001 and 2", report.Events, s.sessions())
	}
}
