package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/router"
	"github.com/cdcpub/cdcpub/test/harness"
	"github.com/cdcpub/cdcpub/wal"
)

// initStand is a database that is to be set up, on a server of its own.
type initStand struct {
	*pgserver.Server
	database string
	file     string // the configuration, with the service's URL
}

func (s *initStand) url(user string) string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s", user, s.Port(), s.database)
}

func newInitStand(t *testing.T, server *pgserver.Server, more string) *initStand {
	t.Helper()
	s := &initStand{Server: server, database: harness.Database(t, server)}
	if !strings.Contains(more, "kafka:") {
		more += "\nkafka: {brokers: [127.0.0.1:1]}"
	}
	s.file = file(t, fmt.Sprintf("postgres: {url: '%s', slot: shop, publication: shop}\noutbox: {tables: [public.outbox]}\n%s\n", s.url("service"), more))
	return s
}

func (s *initStand) init(t *testing.T, args ...string) outcome {
	t.Helper()
	got := execute(t, nil, append([]string{"init", "-c", s.file}, args...)...)
	for _, c := range changing {
		got.stdout, got.stderr = c.pattern.ReplaceAllString(got.stdout, c.name), c.pattern.ReplaceAllString(got.stderr, c.name)
	}
	return got
}

func (o outcome) is(t *testing.T, code int, stdout, stderr string) {
	t.Helper()
	if o.code != code || o.stdout != stdout || o.stderr != stderr {
		t.Errorf("exit %d, stdout\n%sstderr\n%swant exit %d, stdout\n%sstderr\n%s", o.code, o.stdout, o.stderr, code, stdout, stderr)
	}
}

// From nothing, by an administrator, to a service that has no right but to read
// the slot, and does.
func TestInitByAnAdministratorLeavesTheServiceLeastPrivileged(t *testing.T) {
	for _, version := range []string{"14", "15", "18"} {
		t.Run(version, func(t *testing.T) {
			s := newInitStand(t, harness.Postgres(t, version), "")
			admin := "--admin-url=" + s.url("postgres")
			s.init(t, admin).is(t, exitDone, `table public.outbox                      created
    next: let your application write to it: GRANT INSERT ON public.outbox TO <its role>
publication shop                         created
slot shop                                created at LSN LSN
`, "warning: role service cannot publish by postgres.url yet: it does not exist (CREATE ROLE service LOGIN REPLICATION); init --create-roles creates a missing role\n")
			s.init(t, admin, "--create-roles").is(t, exitDone, `role service                             created, without a password
    next: set one: \password service in psql; or let it in by certificate or cloud token (pg_hba.conf); so that alerts name who holds the slot and its WAL: GRANT pg_monitor TO service
role cdcpub_monitor                      created, without a password
    next: set one: \password cdcpub_monitor in psql; or let it in by certificate or cloud token (pg_hba.conf)
table public.outbox                      exists
publication shop                         exists
slot shop                                exists
role service                             can connect by postgres.url and read slots
`, "")
			s.init(t, admin, "--create-roles").is(t, exitDone, `role service                             exists
role cdcpub_monitor                      exists
table public.outbox                      exists
publication shop                         exists
slot shop                                exists
role service                             can connect by postgres.url and read slots
`, "")
			s.streamsToTheService(t)
			s.hidesTablesFrom(t, "service")
			s.hidesTablesFrom(t, "cdcpub_monitor")
		})
	}
}

// streamsToTheService inserts a row and reads it as run does.
func (s *initStand) streamsToTheService(t *testing.T) {
	t.Helper()
	(&outbox{server: s.Server, database: s.database}).exec(t,
		"INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type, payload) VALUES ('order', '7', 1, 'OrderPlaced', '{}')")
	loaded, err := config.Load(s.file, nil)
	if err != nil {
		t.Fatal(err)
	}
	from, err := source(loaded)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stream, err := wal.Open(ctx, from)
	if err != nil {
		t.Fatal(err)
	}
	route, err := router.New(routing(loaded))
	if err != nil {
		t.Fatal(err)
	}
	out, ended := make(chan *wal.Batch), make(chan error, 1)
	go func() { ended <- stream.Run(ctx, out) }()
	var topics []string
	var committed time.Time
	for batch := range out {
		for _, event := range batch.Events {
			switch event.Kind {
			case wal.Begin:
				committed = event.CommitTime
			case wal.Insert:
				record, err := route.Route(committed, event.Row)
				if err != nil {
					t.Error(err)
				}
				topics = append(topics, record.Topic)
				cancel()
			}
		}
	}
	if err := <-ended; len(topics) != 1 || topics[0] != "outbox.event.order" {
		t.Errorf("got %v, and then %v", topics, err)
	}
}

func (s *initStand) hidesTablesFrom(t *testing.T, role string) {
	t.Helper()
	(&outbox{server: s.Server, database: s.database}).exec(t, "CREATE TABLE IF NOT EXISTS secrets AS SELECT 1 AS id")
	conn, err := pgx.Connect(t.Context(), s.url(role))
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(conn)
	for _, sql := range []string{"SELECT FROM outbox", "SELECT FROM secrets", "INSERT INTO outbox (aggregate_type) VALUES ('x')", "ALTER PUBLICATION shop SET (publish = 'update')", "CREATE ROLE another"} {
		var refused *pgconn.PgError
		if _, err := conn.Exec(t.Context(), sql); !errors.As(err, &refused) || refused.Code != "42501" {
			t.Errorf("role %s may %s: %v", role, sql, err)
		}
	}
}

func TestInitSaysWhyTheServiceCannotConnectYet(t *testing.T) {
	server, err := pgserver.Start(t.Context(), pgserver.Options{Password: "of the superuser"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &initStand{Server: server, database: "postgres"}
	s.file = file(t, fmt.Sprintf("postgres: {url: '%s', slot: shop, publication: shop}\noutbox: {tables: [public.outbox]}\nkafka: {brokers: [127.0.0.1:1]}\n", s.url("service")))
	got := s.init(t, "--admin-url="+server.URL("postgres"), "--create-roles", "--monitor-role=none")
	got.expect(t, exitDone, []string{"role service                             created, without a password", "slot shop"},
		[]string{"warning: role service cannot publish by postgres.url yet: PostgreSQL at SERVER: ", "correct the user in postgres.url, or its password"})
	if all := got.stdout + got.stderr; strings.Contains(all, "of the superuser") || strings.Contains(all, "cdcpub_monitor") {
		t.Errorf("says %s", all)
	}
}

func TestInitRefusals(t *testing.T) {
	server := harness.Postgres(t, "15")
	s := newInitStand(t, server, "")
	o := &outbox{server: server, database: s.database}
	o.exec(t, "CREATE ROLE service LOGIN", "CREATE ROLE owner LOGIN REPLICATION", "GRANT CREATE ON DATABASE "+s.database+" TO owner")
	for name, c := range map[string]struct {
		args   []string
		code   int
		stderr string
	}{
		"the rights of the service are not enough": {nil, exitRefused, "cdcpub: create table public.outbox: ERROR: permission denied for schema public (SQLSTATE 42501); init needs the rights of the tables' owner and REPLICATION, the service itself only the latter: give the owner's connection with --admin-url, or have the output of --print run by whoever has the rights\n"},
		"nor those of an owner, for roles": {[]string{"--admin-url=" + s.url("owner"), "--create-roles"}, exitRefused, "cdcpub: nothing was created, because this is in the way:\n" +
			"  role service exists and may not read slots\n    ALTER ROLE service REPLICATION\n"},
		"another database":     {[]string{"--admin-url=" + server.URL("postgres")}, exitUsage, "cdcpub: --admin-url goes to database postgres and postgres.url to DATABASE: what is created in one is not seen in the other; name the same database in both\n"},
		"no connection string": {[]string{"--admin-url=postgres://a:secret@db:port/shop"}, exitUsage, "cdcpub: --admin-url: "},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.init(t, c.args...)
			if got.code != c.code || got.stdout != "" || !strings.HasPrefix(got.stderr, c.stderr) || strings.Contains(got.stderr, "secret") {
				t.Errorf("exit %d: %s%s", got.code, got.stdout, got.stderr)
			}
		})
	}
}

// The owner of the database need not be a superuser, if somebody else made the
// role of the service.
func TestInitByAnOwnerOnTheWrongServerAndOnTheRightOne(t *testing.T) {
	server := harness.Postgres(t, "15")
	s := newInitStand(t, server, "")
	o := &outbox{server: server, database: s.database}
	o.exec(t, "CREATE ROLE service LOGIN REPLICATION", "CREATE ROLE owner LOGIN REPLICATION", "ALTER DATABASE "+s.database+" OWNER TO owner")
	s.init(t, "--admin-url="+s.url("owner")).expect(t, exitDone, []string{"slot shop", "role service                             can connect by postgres.url and read slots\n"}, nil)

	elsewhere := harness.Postgres(t, "14")
	admin := &initStand{Server: elsewhere, database: s.database}
	(&outbox{server: elsewhere, database: "postgres"}).exec(t, "CREATE DATABASE "+s.database, "CREATE ROLE service LOGIN REPLICATION")
	s.init(t, "--admin-url="+admin.url("postgres")).expect(t, exitDone, []string{"slot shop"}, []string{"warning: role service", "it leads to another server than --admin-url"})
}

// A connection string of an administrator without a database goes to that of
// the service.
func TestAdminURLWithoutADatabase(t *testing.T) {
	s := newInitStand(t, harness.Postgres(t, ""), "")
	got := s.init(t, fmt.Sprintf("--admin-url=host=127.0.0.1 port=%d user=postgres", s.Port()), "--create-roles", "--monitor-role=watcher")
	got.expect(t, exitDone, []string{"role watcher", "role service                             can connect by postgres.url and read slots\n"}, nil)
}

func TestInitPrintConnectsToNothing(t *testing.T) {
	print := func(more string, args ...string) outcome {
		config := file(t, "postgres: {url: 'postgres://svc@127.0.0.1:1/shop', slot: cdc, publication: cdc, password_file: /nowhere}\n"+more)
		return execute(t, nil, append([]string{"init", "--print", "-c", config}, args...)...)
	}
	plain := print("outbox: {tables: [public.outbox]}\nkafka: {brokers: [b:9092]}\n")
	plain.expect(t, exitDone, []string{"CREATE ROLE svc LOGIN REPLICATION;", "CREATE ROLE cdcpub_monitor LOGIN;", "CREATE TABLE IF NOT EXISTS public.outbox (",
		"pg_create_logical_replication_slot('cdc', 'pgoutput')\n", "SET statement_timeout = '60s'", "\n--     GRANT pg_monitor TO svc;\n"}, nil)
	if strings.Contains(plain.stdout, "kafka-topics") || strings.Contains(plain.stdout, "failover") {
		t.Errorf("prints what nobody asked for:\n%s", plain.stdout)
	}
	nameless := print("outbox: {tables: [public.outbox]}\nkafka: {brokers: [b:9092], create_topics: {partitions: 12}}\n")
	nameless.expect(t, exitDone, []string{"\n-- The topics: none is known by name.", "--types order,customer\n"}, nil)
	full := print(`outbox:
  tables: [public.outbox]
  columns: {timestamp: happened}
  headers: {id: event_id, tenant: tenant_id}
kafka:
  brokers: [b1:9092, b2:9092]
  topic: '{region}.{aggregate_type}'
  topics: {order: orders}
  tls: {enabled: true}
  create_topics: {partitions: 6, replication_factor: 3, configs: {retention.ms: 604800000, "min.insync.replicas": 2}}
`, "--failover", "--monitor-role=none", "--timeout=90s", "--types=order")
	full.expect(t, exitDone, []string{"    happened timestamptz,\n", "    tenant_id text,\n", "    region text NOT NULL,\n", "failover => true", "SET statement_timeout = '90s'",
		"\n--     kafka-topics.sh --bootstrap-server b1:9092,b2:9092 --command-config client.properties --create --if-not-exists --topic orders --partitions 6 --replication-factor 3 --config min.insync.replicas=2 --config retention.ms=604800000\n"}, nil)
	if strings.Contains(full.stdout, "cdcpub_monitor") || strings.Contains(full.stdout, "only watches") {
		t.Errorf("prints the role that was left out:\n%s", full.stdout)
	}
	debezium := print("outbox: {tables: [public.outbox], preset: debezium}\nkafka: {brokers: [b:9092]}\n")
	debezium.expect(t, exitDone, []string{"public.outbox (\n    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),\n    aggregatetype text NOT NULL,\n    aggregateid text NOT NULL,\n    type text NOT NULL,\n    payload jsonb\n);"}, nil)
}

func TestTopicsOfTypes(t *testing.T) {
	topics := func(kafka string, args ...string) outcome {
		config := file(t, "postgres: {url: 'postgres://svc@127.0.0.1:1/shop', slot: cdc, publication: cdc}\noutbox: {tables: [public.outbox]}\nkafka: {brokers: ['b:9092'], "+kafka+"}\n")
		got := execute(t, nil, append([]string{"init", "--print", "-c", config}, args...)...)
		_, got.stdout, _ = strings.Cut(got.stdout, "-- The topics")
		return got
	}
	got := topics("topics: {order: orders, refund: orders}", "--types=order,customer")
	if n := strings.Count(got.stdout, "--topic "); n != 2 || !strings.Contains(got.stdout, "--topic orders\n") || !strings.Contains(got.stdout, "--topic outbox.event.customer\n") {
		t.Errorf("needs %s%s", got.stdout, got.stderr)
	}
	topics("topic: '{region}.{aggregate_type}'", "--types=order").is(t, exitUsage, "",
		"cdcpub: --types: the topic of \"order\" does not follow from its type alone: kafka.topic is made of region too; name such topics in kafka.topics, or create them yourself\n")
	topics("topics: {order: orders}, topic: ''", "--types=customer").expect(t, exitUsage, nil, []string{"--types: ", `is "customer", which is not in the map of topics`})
	topics("linger: 0s", "--types=bad type").expect(t, exitUsage, nil, []string{"--types: ", `"outbox.event.bad type"`})
}

// A slot without topics would keep WAL for nobody.
func TestInitCreatesNothingWhenTheTopicsCannotBe(t *testing.T) {
	s := newInitStand(t, harness.Postgres(t, ""), "\nkafka: {brokers: ['127.0.0.1:1'], create_topics: {partitions: 6}}")
	admin := "--admin-url=" + s.url("postgres")
	got := s.init(t, admin, "--create-roles", "--types=order")
	got.expect(t, exitFailure, nil, []string{"cdcpub: nothing was created, because this is in the way:\n  Kafka cannot be reached, and topics are to be created there: 127.0.0.1:", "\n    correct kafka.brokers, "})
	if got.stdout != "" || strings.Count(got.stderr, "kafka:") > 0 {
		t.Errorf("says %s%s", got.stdout, got.stderr)
	}
	// Nor was anything: without topics all of it is new.
	s.init(t, admin, "--create-roles").expect(t, exitDone, []string{"role service                             created", "table public.outbox                      created",
		"publication shop                         created", "slot shop                                created"}, nil)
}

func TestInitCreatesTopics(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.SeedTopics(2, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	server := harness.Postgres(t, "")
	kafka := fmt.Sprintf("\nkafka:\n  brokers: [%s]\n  topics: {order: orders}\n", strings.Join(cluster.ListenAddrs(), ", "))
	s := newInitStand(t, server, kafka+"  create_topics: {partitions: 6, replication_factor: 3}")
	with := func(old, new string) {
		text, err := os.ReadFile(s.file)
		if err != nil {
			t.Fatal(err)
		}
		s.file = file(t, strings.Replace(string(text), old, new, 1))
	}
	with("service@", "postgres@")
	const postgres = `table public.outbox                      exists
publication shop                         exists
slot shop                                exists
`
	s.init(t).expect(t, exitDone, []string{"topic orders                             exists (2 partitions, kafka.create_topics says 6; nothing was changed)\n"}, nil)
	s.init(t, "--types=customer").is(t, exitDone, postgres+`topic orders                             exists (2 partitions, kafka.create_topics says 6; nothing was changed)
topic outbox.event.customer              created (6 partitions, 3 replicas)
`, "")
	s.init(t, "--types=customer").is(t, exitDone, postgres+`topic orders                             exists (2 partitions, kafka.create_topics says 6; nothing was changed)
topic outbox.event.customer              exists (6 partitions)
`, "")
	with("replication_factor: 3", "replication_factor: 1")
	s.init(t, "--types=customer,returns").is(t, exitDone, postgres+`topic orders                             exists (2 partitions, kafka.create_topics says 6; nothing was changed)
topic outbox.event.customer              exists (6 partitions)
topic outbox.event.returns               created (6 partitions, 1 replica)
    next: if the disk of its broker fails, acknowledged records are gone: where there are three brokers, delete it before its first record, set kafka.create_topics.replication_factor to 3, and run init again
`, "")
	with("replication_factor: 1", "replication_factor: 9")
	got := s.init(t, "--types=customer,refund")
	got.expect(t, exitRefused, []string{"topic outbox.event.customer              exists (6 partitions)\n", "topic outbox.event.refund                not created: "}, []string{"cdcpub: 1 of 3 topics are not ready\n"})
}
