package scenarios

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

// Only the active publisher remembers the topic. It stops and keeps the slot,
// so that its standby does not go on into the new one until a human has
// restarted it.
func TestATopicCreatedAgainStopsThePair(t *testing.T) {
	parallel(t)
	s := newStand(t, options{http: true, postgres: harness.Postgres(t, "", "log_connections=on")})
	active, blocked := s.run(), s.listen
	s.listen = s.freeAddress()
	standby := s.launch()
	s.awaitLog(standby, "standby")
	s.recreateTopic(func() { s.awaitLog(active, "stalled") })
	line := s.awaitLog(active, "blocked")
	s.says(fmt.Sprint(line["error"]), s.topic, "was deleted and created again", "restart the publisher", "keeps slot "+s.slot)
	rows := s.history()
	s.load(5, 10)
	s.looks(5)
	s.status().expect("standby", "state")
	s.says(s.status().text("stall", "cause"), "in use by pid")
	s.codes(http.StatusOK, http.StatusOK)

	s.listen = blocked
	status := s.status()
	status.expect("blocked", "state")
	status.expect("active", "role")
	status.expect("blocked", "stall", "kind")
	s.codes(http.StatusOK, http.StatusServiceUnavailable)
	s.says(s.get("/readyz").body, "blocked", "role: active", s.topic)
	if !s.metric(`cdcpub_publisher_state{state="blocked"}`, " 1") || !s.metric(`cdcpub_publisher_role{role="active"}`, " 1") || !s.metric("cdcpub_publisher_ready", " 0") {
		t.Error("the metrics do not say that it is blocked and holds the slot")
	}
	s.options.sections = map[string]string{"": "  advertise: http://" + blocked + "\n"}
	view := s.command("slot", "status", "-c", "{config}")
	if code := s.exit(view); code != 2 {
		t.Errorf("cdcpub slot status: exit %d, want 2 (critical)", code)
	}
	s.says(view.Stdout(), "blocked", s.topic)
	report := s.judge(func(o *verify.Options) { o.Incomplete = true })
	if !report.OK() || report.Records != 0 || report.Pending != len(rows)+50 {
		t.Fatalf("while the pair waits for a human:\n%s", report.Table())
	}
	if lsn := s.confirmed(); lsn >= rows[0].CommitEnd {
		t.Errorf("%s is confirmed, but the transaction that ends at %s is not delivered", lsn, rows[0].CommitEnd)
	}

	// The decision counts for the pair.
	if code := s.stopBlocked(active); code != 4 {
		t.Errorf("exit %d, want 4\n%s", code, active.Stderr())
	}
	s.awaitLog(standby, "resumed")
	s.delivered()
	s.stop(standby)
	s.check(nil)
}

// PostgreSQL restarts while the pair waits for a human: the blocked one has the
// slot back, and goes on waiting.
func TestAPairThatWaitsForAHumanOutlivesARestartOfTheServer(t *testing.T) {
	parallel(t)
	s := newStand(t, options{postgres: harness.Postgres(t, "", "log_connections=on")})
	active, standby := s.pair()
	s.recreateTopic(func() { s.awaitLog(active, "stalled") })
	s.awaitLog(active, "blocked")
	s.no(standby.Freeze()) // who is first is not left to chance
	s.no(s.pg.Stop(pgserver.Fast, fastStopLimit))
	s.no(s.pg.Start(s.ctx))
	s.sql = s.connect()
	s.until("the slot is held again", func() (held bool) {
		s.no(s.sql.QueryRow(s.ctx, "SELECT active FROM pg_replication_slots WHERE slot_name = $1", s.slot).Scan(&held))
		return held
	})
	s.no(standby.Thaw())
	rows := s.history()
	s.load(5, 10)
	s.looks(5)
	report := s.judge(func(o *verify.Options) { o.Incomplete = true })
	if !report.OK() || report.Records != 0 || report.Pending != len(rows)+50 {
		t.Fatalf("while the pair waits for a human:\n%s", report.Table())
	}
	s.stopBlocked(active)
	s.awaitLog(standby, "resumed")
	s.delivered()
	s.stop(standby)
	s.check(nil)
}

// looks waits until cdcpub has made so many more replication connections to the
// server, which must log them and have no other user. While the slot is held
// these are looks of a standby.
func (s *stand) looks(n int) {
	s.t.Helper()
	count := func() int {
		log, err := os.ReadFile(s.pg.LogFile())
		s.no(err)
		return strings.Count(string(log), "replication connection authorized: user=postgres application_name=cdcpub\n")
	}
	before := count()
	s.until(fmt.Sprintf("a standby has looked %d times", n), func() bool { return count() >= before+n })
}

// Another server behind the same address, with a slot of the same name: neither
// publishes from it. The standby has never had the slot, but has seen a server.
func TestAnotherServerStopsThePair(t *testing.T) {
	parallel(t)
	s := newStand(t, options{})
	proxy, err := harness.NewProxy(fmt.Sprintf("127.0.0.1:%d", s.pg.Port()))
	s.no(err)
	t.Cleanup(func() { _ = proxy.Close() })
	s.options.address = proxy.Addr()
	active, standby := s.pair()
	s.load(10, 10)
	s.delivered()

	other := s.elsewhere(harness.Postgres(t, ""))
	other.load(5, 10)
	proxy.Retarget(fmt.Sprintf("127.0.0.1:%d", other.pg.Port()))
	for _, p := range []*harness.Process{active, standby} {
		line := s.awaitLog(p, "blocked")
		s.says(fmt.Sprint(line["error"]), "another server answers", "restart cdcpub, standbys too")
		if code := s.stopBlocked(p); code != 4 {
			t.Errorf("exit %d, want 4\n%s", code, p.Stderr())
		}
	}
	if report := s.check(nil); report.Records != 100 {
		t.Errorf("%d records, want those of the first server, 100", report.Records)
	}

	// A restart accepts it.
	p := other.run()
	other.delivered()
	other.stop(p)
	ends, err := harness.EndOffsets(s.ctx, s.brokers.Direct(), s.topic)
	s.no(err)
	total := int64(0)
	for _, end := range ends {
		total += end
	}
	if total != 150 {
		t.Errorf("%d records, want those of both servers, 150", total)
	}
}

// elsewhere is the same world on another server: a database, a slot and a
// publication of the same names, and the same topics.
func (s *stand) elsewhere(server *pgserver.Server) *stand {
	s.t.Helper()
	other := &stand{
		t: s.t, ctx: s.ctx, options: s.options, began: s.began, pg: server, url: server.URL(s.slot),
		kafka: s.kafka, brokers: s.brokers, slot: s.slot, topic: s.topic, topics: s.topics, prefix: "elsewhere", listen: "off",
	}
	other.options.address = ""
	conn, err := pgx.Connect(s.ctx, server.URL("postgres"))
	s.no(err)
	defer conn.Close(s.ctx)
	_, err = conn.Exec(s.ctx, "CREATE DATABASE "+s.slot)
	s.no(err)
	other.prepare()
	return other
}
