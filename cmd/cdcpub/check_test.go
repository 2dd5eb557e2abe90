package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/cdcpub/cdcpub/internal/check"
	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/test/harness"
)

// checked is a database to be checked, and the role that publishes from it.
type checked struct {
	server         *pgserver.Server
	database, role string
}

func newChecked(t *testing.T, server *pgserver.Server, statements ...string) *checked {
	t.Helper()
	c := &checked{server: server, database: harness.Database(t, server), role: "publisher"}
	(&outbox{server: server, database: c.database}).exec(t, statements...)
	return c
}

// config is a configuration file for it.
func (c *checked) config(t *testing.T, brokers []string, more string) string {
	t.Helper()
	u, err := url.Parse(c.server.URL(c.database))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(c.role)
	return file(t, fmt.Sprintf("postgres: {url: '%s', slot: shop, publication: shop}\nhttp: {listen: off}\nkafka: {brokers: [%s]}\n%s\n", u, strings.Join(brokers, ", "), more))
}

// report is what check says as JSON, which holds nothing unknown.
func (o outcome) report(t *testing.T) *check.Report {
	t.Helper()
	var report check.Report
	decoder := json.NewDecoder(strings.NewReader(o.stdout))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&report); err != nil || decoder.More() {
		t.Fatalf("not one JSON object: %v\n%s%s", err, o.stdout, o.stderr)
	}
	return &report
}

// with are the ids of the results with a status, each once.
func with(report *check.Report, status check.Status) []string {
	var ids []string
	for _, r := range report.Checks {
		if r.Status == status && !slices.Contains(ids, r.ID) {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// healthy is what a database needs, made by its owner.
var healthy = []string{
	`CREATE TABLE outbox (event_id uuid PRIMARY KEY, aggregate_type text NOT NULL, aggregate_id text NOT NULL, aggregate_version bigint NOT NULL,
		event_type text NOT NULL, payload jsonb, headers jsonb, occurred_at timestamptz, UNIQUE (aggregate_type, aggregate_id, aggregate_version))`,
	`INSERT INTO outbox SELECT gen_random_uuid(), 'order', '1', n, 'T', '{"a": 1}' FROM generate_series(1, 3) n`,
	`CREATE PUBLICATION shop FOR TABLE outbox WITH (publish = 'insert', publish_via_partition_root = true)`,
	`SELECT pg_create_logical_replication_slot('shop', 'pgoutput')`,
	`CREATE ROLE publisher LOGIN REPLICATION`, `GRANT SELECT ON outbox TO publisher`, `GRANT pg_monitor TO publisher`,
}

func TestCheckOfServersThatAreReady(t *testing.T) {
	kafka := harness.Kafka(t, harness.KafkaOptions{Brokers: 3})
	if err := kafka.CreateTopic(t.Context(), "outbox.event.order", 6, 3, map[string]string{"min.insync.replicas": "2"}); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"15", "18"} {
		t.Run("PostgreSQL "+version, func(t *testing.T) {
			c := newChecked(t, harness.Postgres(t, version, "max_slot_wal_keep_size=1GB"), healthy...)
			config := c.config(t, kafka.Brokers(), "outbox: {tables: [public.outbox]}")
			got := execute(t, nil, "check", "-c", config)
			got.expect(t, exitDone, []string{"Ready: ", "outbox.event.order"}, nil)
			t.Logf("\n%s", got.stdout)

			got = execute(t, nil, "check", "-c", config, "-o", "json")
			report := got.report(t)
			if report.Verdict != check.OK || got.code != exitDone {
				t.Errorf("exit %d, %s: %+v", got.code, report.Verdict, report.Counts)
			}
			for _, status := range []check.Status{check.Warn, check.Fail, check.Skip} {
				if ids := with(report, status); len(ids) > 0 {
					t.Errorf("%s: %s", status, ids)
				}
			}
			if ids := with(report, check.OK); !slices.Equal(ids, check.IDs()) {
				t.Errorf("the checks are %q, want %q", ids, check.IDs())
			}
		})
	}
}

func TestWhatInitCreatesPassesEveryCheckOfPostgreSQL(t *testing.T) {
	o := newOutbox(t, harness.Postgres(t, "", "max_slot_wal_keep_size=1GB"), "shop")
	o.hold(t)
	report := execute(t, nil, "check", "-c", o.config(t, ""), "-o", "json").report(t)
	for _, r := range report.Checks {
		if of, _, _ := strings.Cut(r.ID, "."); of != "kafka" && of != "topic" && r.Status != check.OK {
			t.Errorf("%+v", r)
		}
		if r.ID == "slot.holder" && !strings.Contains(r.Found, `"cdcpub" (pid `) {
			t.Errorf("does not tell who publishes: %s", r.Found)
		}
	}
	if ids := with(report, check.Fail); !slices.Equal(ids, []string{"kafka.reachable"}) {
		t.Errorf("%q failed", ids)
	}
}

// nineFaults are the checks that fail for what faulty does, and nothing else.
var nineFaults = []string{
	"postgres.role", "publication.inserts", "publication.tables", "publication.filters", "slot.plugin",
	"outbox.columns", "outbox.logged", "kafka.brokers", "topic.exists",
}

func TestCheckTellsNineFaultsAtOnce(t *testing.T) {
	kafka := harness.Kafka(t, harness.KafkaOptions{Advertised: "kafka:9092"})
	if err := kafka.CreateTopic(t.Context(), "outbox.event.order", 3, 1, map[string]string{"min.insync.replicas": "2"}); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"15", "18"} {
		t.Run("PostgreSQL "+version, func(t *testing.T) {
			c := newChecked(t, harness.Postgres(t, version, "max_slot_wal_keep_size=1GB"), append(slices.Clone(healthy[:2]),
				`CREATE UNLOGGED TABLE returns (LIKE outbox INCLUDING ALL)`,
				`ALTER TABLE returns RENAME event_type TO kind`,
				`CREATE PUBLICATION shop FOR TABLE outbox WHERE (aggregate_version > 0) WITH (publish = 'truncate')`,
				`SELECT pg_create_logical_replication_slot('shop', 'test_decoding')`,
				`CREATE ROLE publisher LOGIN`, `GRANT SELECT ON outbox, returns TO publisher`, `GRANT pg_monitor TO publisher`)...)
			config := c.config(t, kafka.Listeners(), "outbox: {tables: [public.outbox, public.returns]}")
			before := c.state(t)
			got := execute(t, nil, "check", "-c", config, "--types", "order,customer")
			got.expect(t, exitRefused, []string{"Not ready: ", "9 failures"}, nil)
			t.Logf("\n%s", got.stdout)

			got = execute(t, nil, "check", "-c", config, "--types", "order,customer", "-o", "json")
			report := got.report(t)
			if ids := with(report, check.Fail); !slices.Equal(ids, nineFaults) || report.Counts.Fail != len(nineFaults) || got.code != exitRefused {
				t.Errorf("exit %d with %q (%d), want %q", got.code, ids, report.Counts.Fail, nineFaults)
			}
			if after := c.state(t); after != before {
				t.Errorf("the server was changed:\n%s\n%s", before, after)
			}
		})
	}
}

// state is what check must leave as it is.
func (c *checked) state(t *testing.T) string {
	t.Helper()
	return (&outbox{server: c.server, database: c.database}).text(t, `SELECT json_build_object(
		'slots', (SELECT json_agg(json_build_array(slot_name, plugin, restart_lsn, confirmed_flush_lsn)) FROM pg_replication_slots),
		'rows', (SELECT count(*) FROM outbox),
		'objects', (SELECT count(*) FROM pg_class), 'roles', (SELECT json_agg(r) FROM pg_roles r), 'publications', (SELECT json_agg(p) FROM pg_publication p))::text`)
}

// What is taken would end run at its start, unless the publisher itself has it.
func TestCheckTriesTheAddressOfHTTP(t *testing.T) {
	answers := func(status string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, status) }))
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	for name, c := range map[string]struct {
		listen string
		status check.Status
		says   string
	}{
		"off":              {"off", check.OK, "off: "},
		"free":             {free.Addr().String(), check.OK, "nothing listens at "},
		"our publisher":    {answers(`{"state": "streaming", "slot": "shop"}`), check.OK, "the publisher of this slot answers at "},
		"another's":        {answers(`{"state": "streaming", "slot": "other"}`), check.Warn, "another process listens at "},
		"no cdcpub at all": {answers("hello"), check.Warn, "another process listens at "},
	} {
		t.Run(name, func(t *testing.T) {
			config := file(t, "postgres: {slot: shop, publication: shop, url: 'postgres://publisher@127.0.0.1:1/shop'}\nhttp: {listen: '"+c.listen+"'}\noutbox: {tables: [public.outbox]}\nkafka: {brokers: [127.0.0.1:1]}\n")
			report := execute(t, nil, "check", "-c", config, "-o", "json").report(t)
			last := report.Checks[len(report.Checks)-1]
			if last.ID != "http.listen" || last.Status != c.status || !strings.Contains(last.Found, c.says) {
				t.Errorf("%+v", last)
			}
		})
	}
}

func TestCheckSaysOfBothSidesThatTheyCannotBeReached(t *testing.T) {
	for name, c := range map[string]struct{ postgres, says string }{
		"nobody listens": {"url: 'postgres://publisher@127.0.0.1:1/shop?sslmode=disable'", "connection refused"},
		"no password":    {"url: 'postgres://publisher@127.0.0.1:1/shop?sslmode=disable', password_command: [cdcpub-no-such-command]", "cdcpub-no-such-command"},
	} {
		t.Run(name, func(t *testing.T) {
			config := file(t, "postgres: {slot: shop, publication: shop, "+c.postgres+"}\nhttp: {listen: off}\noutbox: {tables: [public.outbox]}\nkafka: {brokers: [127.0.0.1:1]}\n")
			got := execute(t, nil, "check", "-c", config, "-o", "json")
			report := got.report(t)
			if want := []string{"postgres.reachable", "kafka.reachable"}; !slices.Equal(with(report, check.Fail), want) || got.code != exitRefused || got.stderr != "" {
				t.Errorf("exit %d with %q, want %q; stderr %q", got.code, with(report, check.Fail), want, got.stderr)
			}
			if first := report.Checks[0]; !strings.Contains(first.Found, c.says) || !strings.Contains(first.Found, "publisher") {
				t.Errorf("does not say %q: %+v", c.says, first)
			}
			execute(t, nil, "check", "-c", config).expect(t, exitRefused, []string{"Not ready: 1 ok", "Failed: postgres.reachable, kafka.reachable"}, nil)
		})
	}
}

func TestCheckOfAWrongConfigurationLooksAtNothing(t *testing.T) {
	config := file(t, "postgres: {url: 'postgres://u@127.0.0.1:1/d'}\n")
	execute(t, nil, "check", "-c", config).expect(t, exitUsage, nil, []string{"postgres.slot", "outbox.tables", "kafka.brokers"})
	execute(t, nil, "check", "-c", config, "-o", "yaml").expect(t, exitUsage, nil, []string{"--output"})
}
