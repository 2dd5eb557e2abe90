package slots

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/admin"
	"github.com/cdcpub/cdcpub/internal/monitor"
	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/slotmon"
	"github.com/cdcpub/cdcpub/test/harness"
)

var shared harness.Shared

func TestMain(m *testing.M) {
	shared.AtEnd(func() error { printTimes(); return nil })
	harness.Main(m, &shared)
}

// patience bounds every wait. It is long: a slow machine is no failure.
const patience = 60 * time.Second

// What the watch process is configured with. The limits are small, so that
// faults need not last.
const (
	interval     = time.Second
	raiseAfter   = 2 * time.Second
	resolveAfter = 2 * time.Second
)

const watchConfig = `
postgres:
  url: %s
  slot: ours
  publication: cdcpub
outbox:
  tables: [public.outbox]
slot_monitor:
  interval: 1s
  raise_after: 2s
  resolve_after: 2s
  webhook:
    url: %s
  limits:
    inactive: {warning: 3s, critical: 8s}
    failover_not_ready: {warning: 3s}
    long_transaction: 2s
%shttp:
  listen: 127.0.0.1:%d
`

// stand is one server, the process that watches it, and the alerts it sent.
type stand struct {
	t    *testing.T
	ctx  context.Context
	pg   *pgserver.Server
	sql  *pgx.Conn
	hook *harness.Webhook
	base string // of the process's HTTP server
}

// newStand starts a process that watches the server's database postgres, in
// which the slot ours, its publication and its outbox exist. more are further
// lines of slot_monitor.
func newStand(t *testing.T, pg *pgserver.Server, more string) *stand {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	t.Cleanup(cancel)
	s := &stand{t: t, ctx: ctx, pg: pg, hook: harness.NewWebhook(t)}
	s.connect()
	s.exec("CREATE TABLE outbox (event_id uuid PRIMARY KEY, aggregate_type text, aggregate_id text, aggregate_version bigint, event_type text, payload jsonb)",
		"CREATE PUBLICATION cdcpub FOR TABLE outbox WITH (publish = 'insert')",
		"SELECT pg_create_logical_replication_slot('ours', 'pgoutput')")
	ports, err := pgserver.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	s.base = fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	p := harness.StartProcess(t, harness.ProcessOptions{
		Binary: shared.Binary(t, harness.BuildOptions{Race: true}),
		Args:   []string{"slot", "watch", "-c", "{config}"},
		Config: fmt.Sprintf(watchConfig, pg.URL("postgres"), s.hook.URL, more, ports[0]),
	})
	if _, err := p.WaitForLog(ctx, "watching"); err != nil {
		t.Fatal(err)
	}
	s.until("the server was sampled", func() bool { return s.server().Up })
	return s
}

// connect opens the connection that faults are made on. It is closed and opened
// again around what ends it.
func (s *stand) connect() {
	s.t.Helper()
	conn, err := pgx.Connect(s.ctx, s.pg.URL("postgres"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.sql = conn
	s.t.Cleanup(func() { _ = conn.Close(context.Background()) })
}

func (s *stand) exec(statements ...string) {
	s.t.Helper()
	for _, statement := range statements {
		if _, err := s.sql.Exec(s.ctx, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			s.t.Fatalf("%s: %v", statement, err)
		}
	}
}

func (s *stand) until(what string, done func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	for !done() {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			s.t.Fatalf("waited in vain until %s; alerts so far:\n%s", what, s.hook)
		}
	}
}

func (s *stand) get(path string) string {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, s.base+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %d, %v", path, response.StatusCode, err)
	}
	return string(body)
}

// server is what /status says of the watched server.
func (s *stand) server() monitor.Server {
	s.t.Helper()
	var status admin.Status
	if err := json.Unmarshal([]byte(s.get("/status")), &status); err != nil {
		s.t.Fatal(err)
	}
	return status.Monitor.Servers[0]
}

// slot is what /status says of a slot, nil if it is not there.
func (s *stand) slot(name string) *monitor.Slot {
	s.t.Helper()
	for _, slot := range s.server().Slots {
		if slot.Name == name {
			return &slot
		}
	}
	return nil
}

// finding is one that /status has for the slot, nil if it has none.
func (s *stand) finding(slot string, id slotmon.FindingID) *slotmon.Finding {
	s.t.Helper()
	found := s.slot(slot)
	if found == nil {
		return nil
	}
	for i := range found.Report.Findings {
		if found.Report.Findings[i].ID == id {
			return &found.Report.Findings[i]
		}
	}
	return nil
}

// metric tells if /metrics has the line, given without the server's label.
func (s *stand) metric(name, labels, value string) bool {
	for line := range strings.Lines(s.get("/metrics")) {
		rest, is := strings.CutPrefix(line, name+"{")
		if is && strings.Contains(rest, labels) && strings.HasSuffix(strings.TrimSpace(line), "} "+value) {
			return true
		}
	}
	return false
}
