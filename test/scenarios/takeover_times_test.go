package scenarios

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/test/harness"
)

// How long a takeover takes with the settings that nobody has changed, in the
// release's build and in the tests'. The figures are for people: a slow machine
// is no failure.
func TestTakeoverTimes(t *testing.T) {
	for build, race := range map[string]bool{"release": false, "race": true} {
		for death, end := range map[string]func(*harness.Process) error{
			"kill -9": (*harness.Process).Kill9,
			"SIGSTOP": (*harness.Process).Freeze,
		} {
			t.Run(strings.ReplaceAll(build+" "+death, " ", "_"), func(t *testing.T) {
				parallel(t)
				s := newStand(t, options{binary: shared.Binary(t, harness.BuildOptions{Race: race})})
				takeoverTimes(s, death, end)
			})
		}
	}
}

// takeoverTimes has three takeovers while a row is written now and then: a
// publisher under load is heard all the time, so that PostgreSQL waits for all
// of wal_sender_timeout.
func takeoverTimes(s *stand, death string, end func(*harness.Process) error) {
	active, standby := s.pair()
	consumer := harness.NewConsumer(s.t, s.brokers.Direct(), s.topics...)
	stop := s.trickle()
	for range 3 {
		s.arrived(consumer, len(consumer.Records())+20)
		ended := time.Now()
		s.no(end(active))
		resumed := s.awaitLog(standby, "resumed")
		s.arrived(consumer, len(consumer.Records())+1)
		s.t.Logf("%s: published again after %.1f s (%v)", death, time.Since(ended).Seconds(), resumed["ts"])
		s.no(active.Kill9())
		active, standby = standby, s.launch()
		s.awaitLog(standby, "standby")
	}
	stop()
	s.delivered()
	s.stop(standby)
	s.stop(active)
	s.check(nil)
}

// trickle writes a row every few milliseconds until it is ended.
func (s *stand) trickle() (end func()) {
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() { done <- s.trickleUntil(ctx) }()
	return func() {
		s.t.Helper()
		cancel()
		s.no(<-done)
	}
}

func (s *stand) trickleUntil(ctx context.Context) error {
	conn, err := pgx.Connect(s.ctx, s.url)
	if err != nil {
		return err
	}
	defer conn.Close(s.ctx)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		_, err := conn.Exec(s.ctx, `INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type)
			VALUES ('order', $1, $2, 'T')`, fmt.Sprintf("t-%d", i%aggregates), i/aggregates)
		if err != nil {
			return err
		}
	}
}

// A standby may wait for months: it asks often enough to take over in time, and
// costs the server and the log next to nothing.
func TestAStandbyIsCheapAndQuiet(t *testing.T) {
	parallel(t)
	s := newStand(t, options{postgres: harness.Postgres(t, "", "log_connections=on", "log_statement=all", "log_replication_commands=on")})
	active, standby := s.pair()
	s.load(10, 10)
	s.delivered()
	s.looks(1)
	before, began := readLooks(s), time.Now()
	s.looks(25)
	looks, took := readLooks(s), time.Since(began)
	statements := 0
	for pid, n := range looks {
		if _, known := before[pid]; known || n == 0 {
			continue // begun before, or the newest, which has not asked yet
		}
		if statements = max(statements, n); n > 5 {
			t.Errorf("a look made %d statements, want 5 at most", n)
		}
	}
	if n := len(looks) - len(before); took < time.Duration(n-2)*2*time.Second {
		t.Errorf("%d looks within %s: a busy loop", n, took)
	}
	if statements == 0 {
		t.Error("no statement of a look was seen")
	}
	t.Logf("%d looks in %.1f s, a connection and at most %d statements each", len(looks)-len(before), took.Seconds(), statements)
	lines := map[string]int{}
	for _, line := range standby.Log() {
		lines[line.Event()]++
	}
	for event, n := range lines {
		switch most := map[string]int{"starting": 1, "standby": 1, "summary": 1 + int(time.Since(s.began)/time.Minute)}[event]; {
		case event == "alert": // about the slot, each once
		case n > most:
			t.Errorf("%d lines of event %q, want %d at most\n%s", n, event, most, standby.Stderr())
		}
	}
	s.stop(standby)
	t.Logf("the standby used %s of a processor in %.0f s", standby.CPU().Round(time.Millisecond), time.Since(s.began).Seconds())
	s.stop(active)
	s.check(nil)
}

// readLooks counts the statements of each replication connection but those that
// read a slot, by the pid of its walsender.
func readLooks(s *stand) map[string]int {
	s.t.Helper()
	log, err := os.ReadFile(s.pg.LogFile())
	s.no(err)
	looks := map[string]int{}
	for line := range strings.Lines(string(log)) {
		found := logLine.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		pid, text := found[1], found[2]
		switch _, look := looks[pid]; {
		case strings.HasPrefix(text, "replication connection authorized"):
			looks[pid] = 0
		case !look:
		case strings.HasPrefix(text, "received replication command: START_REPLICATION"):
			delete(looks, pid)
		case strings.HasPrefix(text, "statement: "), strings.HasPrefix(text, "received replication command: IDENTIFY_SYSTEM"):
			looks[pid]++
		}
	}
	return looks
}

// logLine is one of PostgreSQL with the usual log_line_prefix.
var logLine = regexp.MustCompile(`^\S+ \S+ \S+ \[(\d+)\] LOG:  (.*)`)
