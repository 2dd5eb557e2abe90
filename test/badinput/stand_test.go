package badinput

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/test/harness"
)

// patience bounds the life of one program.
const patience = 45 * time.Second

// secret is every password; no sentence may have it.
const secret = "s3cret-Swordfish"

// stand is the world of one mistake: a database with everything in place, of
// which the mistake then takes something away.
type stand struct {
	t        *testing.T
	ctx      context.Context
	server   *pgserver.Server
	database string
	owner    string // URL of the owner, to the database
	kafka    *kfake.Cluster
	replace  []string // pairs for fill
	// elsewhere is a database that cdcpub is sent to instead.
	elsewhere string
}

// commit makes the mistake and returns what the golden file shows of it.
func commit(t *testing.T, m mistake, local bool) string {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s := &stand{t: t, ctx: ctx}
	config := m.config
	if m.args == nil {
		m.args = []string{"run"}
	}
	if !local {
		s.servers()
		for _, sql := range strings.Split(s.fill(m.prepare), ";\n") {
			s.execute(sql)
		}
		if m.elsewhere != "" {
			s.executeIn(s.server.URL("postgres"), s.fill(m.elsewhere))
		}
		if config == "" {
			config = usual
		}
	}
	if m.first != nil {
		m.first(s)
	}
	args := make([]string, len(m.args))
	for i := range args {
		args[i] = s.fill(m.args[i])
	}
	env := make([]string, len(m.env))
	for i := range env {
		env[i] = s.fill(m.env[i])
	}
	p := harness.StartProcess(t, harness.ProcessOptions{
		Binary: shared.Binary(t, harness.BuildOptions{}), Args: args, Config: s.fill(config), Env: env,
	})
	code, sentences := s.listen(p, m)
	for _, sentence := range whole(sentences) {
		judge(t, sentence, m)
	}
	all := strings.Join(sentences, "\n")
	for _, name := range m.names {
		if !strings.Contains(all, name) {
			t.Errorf("the sentence does not name %q:\n%s", name, all)
		}
	}
	if code != m.code {
		t.Errorf("exit code %d, want %d:\n%s", code, m.code, all)
	}
	how := fmt.Sprintf("exit code %d", code)
	if code == stays {
		how = "it waits"
	}
	return fmt.Sprintf("$ cdcpub %s   # %s\n%s\n", strings.Join(m.args, " "), how, all)
}

// usual is a configuration with which everything works.
const usual = `
postgres:
  url: postgres://publisher:SECRET@POSTGRES/DBNAME?sslmode=disable
  slot: DBNAME
  publication: DBNAME
outbox:
  tables: [public.outbox]
kafka:
  brokers: [KAFKA:9092]
http:
  listen: "off"
`

// with is usual with text in the place of other text.
func with(pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(usual, pairs[i]) {
			panic("the usual configuration has no " + pairs[i])
		}
	}
	return strings.NewReplacer(pairs...).Replace(usual)
}

func (s *stand) fill(text string) string { return strings.NewReplacer(s.replace...).Replace(text) }

// servers makes what works: roles, a database, the outbox with publication and
// slot, and a broker.
func (s *stand) servers() {
	s.t.Helper()
	s.server = postgres(s.t)
	s.database = harness.Database(s.t, s.server)
	s.owner = s.server.URL(s.database)
	s.outbox()
	s.kafka = broker(s.t)
	closed := closedPort(s.t)
	s.replace = []string{
		"SECRET", secret, "DBNAME", s.database, "CLOSED", "127.0.0.1:" + closed,
		"POSTGRES", "127.0.0.1:" + strconv.Itoa(s.server.Port()), "KAFKA:9092", s.kafka.ListenAddrs()[0],
	}
}

// outbox makes table, publication and slot.
func (s *stand) outbox() {
	s.t.Helper()
	for _, sql := range []string{
		"CREATE TABLE outbox (event_id uuid PRIMARY KEY DEFAULT gen_random_uuid(), aggregate_type text, aggregate_id text, aggregate_version bigint, event_type text, payload jsonb)",
		"CREATE PUBLICATION " + s.database + " FOR TABLE outbox WITH (publish = 'insert', publish_via_partition_root = true)",
		"SELECT pg_create_logical_replication_slot('" + s.database + "', 'pgoutput')",
	} {
		s.execute(sql)
	}
}

// point sends cdcpub to another database, perhaps of another server without
// passwords, as the owner.
func (s *stand) point(server *pgserver.Server, database string) {
	s.replace = append([]string{
		"publisher:SECRET@POSTGRES/DBNAME?", "postgres:SECRET@127.0.0.1:" + strconv.Itoa(server.Port()) + "/" + database + "?",
	}, s.replace...)
	s.elsewhere = database
}

// postgres is the server of all mistakes. Every role needs its password.
func postgres(t *testing.T) *pgserver.Server {
	t.Helper()
	server, err := serverWithPasswords()
	if err != nil {
		t.Fatal(err)
	}
	return server
}

var serverWithPasswords = sync.OnceValues(func() (*pgserver.Server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	server, err := pgserver.Start(ctx, pgserver.Options{Password: secret})
	if err != nil {
		return nil, fmt.Errorf("no PostgreSQL for the test: %w\nto install one: apt-get install -y postgresql", err)
	}
	shared.AtEnd(server.Close)
	return server, welcome(ctx, server)
})

// welcome makes the roles, and one that pg_hba.conf refuses.
func welcome(ctx context.Context, server *pgserver.Server) error {
	// The first line that fits decides.
	hba := filepath.Join(server.Dir(), "data", "pg_hba.conf")
	text, err := os.ReadFile(hba)
	if err != nil {
		return err
	}
	if err := os.WriteFile(hba, append([]byte("host all unwelcome all reject\nhost replication physical all scram-sha-256\nhost all physical all reject\n"), text...), 0o600); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, server.URL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, sql := range []string{
		"CREATE ROLE publisher LOGIN REPLICATION PASSWORD '" + secret + "'",
		"CREATE ROLE plain LOGIN PASSWORD '" + secret + "'",
		"CREATE ROLE unwelcome LOGIN REPLICATION PASSWORD '" + secret + "'",
		"CREATE ROLE physical LOGIN REPLICATION PASSWORD '" + secret + "'",
		"SELECT pg_reload_conf()",
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

func (s *stand) execute(sql string) {
	s.t.Helper()
	if strings.TrimSpace(sql) != "" {
		s.executeIn(s.owner, sql)
	}
}

func (s *stand) executeIn(database, sql string) {
	s.t.Helper()
	conn, err := pgx.Connect(s.ctx, database)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(s.ctx)
	if _, err := conn.Exec(s.ctx, sql); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

// insert writes one event.
func (s *stand) insert(columns, values string) {
	s.t.Helper()
	s.execute("INSERT INTO outbox (" + columns + ") VALUES (" + values + ")")
}

func broker(t *testing.T, o ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	cluster, err := kfake.NewCluster(append(o, kfake.NumBrokers(1), kfake.SeedTopics(1, "outbox.event.order"))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster
}

// closedPort is a port where nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	ports, err := pgserver.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(ports[0])
}

// occupy listens at a port of this machine until the test ends.
func occupy(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}
