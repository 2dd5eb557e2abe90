package pgserver_test

import (
	"context"
	"errors"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/pgserver"
)

func start(t *testing.T, o pgserver.Options) *pgserver.Server {
	t.Helper()
	s, err := pgserver.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func connect(t *testing.T, s *pgserver.Server) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), s.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func query(t *testing.T, s *pgserver.Server, sql string) string {
	t.Helper()
	c := connect(t, s)
	defer c.Close(t.Context())
	var answer string
	if err := c.QueryRow(t.Context(), sql).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return answer
}

func exec(t *testing.T, s *pgserver.Server, statements ...string) {
	t.Helper()
	c := connect(t, s)
	defer c.Close(t.Context())
	for _, sql := range statements {
		if _, err := c.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

func expect(t *testing.T, s *pgserver.Server, sql, want string) {
	t.Helper()
	if got := query(t, s, sql); got != want {
		t.Errorf("%s = %q, want %q", sql, got, want)
	}
}

func TestServerKeepsDataAndPortOverEveryWayToEnd(t *testing.T) {
	s := start(t, pgserver.Options{Settings: map[string]string{"work_mem": "7MB"}})
	port := s.Port()
	expect(t, s, "SHOW wal_level", "logical")
	expect(t, s, "SHOW fsync", "off")
	expect(t, s, "SHOW work_mem", "7MB")
	expect(t, s, "SHOW server_encoding", "UTF8")
	exec(t, s, "CREATE TABLE kept (n int)")

	ends := []struct {
		name string
		end  func() error
	}{
		{"smart", func() error { return s.Stop(pgserver.Smart, 20*time.Second) }},
		{"fast", func() error { return s.Stop(pgserver.Fast, 20*time.Second) }},
		{"immediate", func() error { return s.Stop(pgserver.Immediate, 20*time.Second) }},
		{"kill", s.Kill},
	}
	for _, e := range ends {
		exec(t, s, "INSERT INTO kept VALUES (1)")
		if err := e.end(); err != nil {
			t.Fatalf("%s: %v", e.name, err)
		}
		if c, err := pgx.Connect(t.Context(), s.URL("postgres")); err == nil {
			c.Close(t.Context())
			t.Fatalf("%s: the server still answers", e.name)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatalf("start after %s: %v", e.name, err)
		}
	}
	expect(t, s, "SELECT count(*)::text FROM kept", "4")
	if s.Port() != port {
		t.Errorf("port changed from %d to %d", port, s.Port())
	}
	if err := s.Restart(t.Context(), 20*time.Second); err != nil {
		t.Fatal(err)
	}
	expect(t, s, "SELECT count(*)::text FROM kept", "4")
}

func TestAlterSystemOverridesSettings(t *testing.T) {
	s := start(t, pgserver.Options{Settings: map[string]string{"max_slot_wal_keep_size": "64MB"}})
	expect(t, s, "SHOW max_slot_wal_keep_size", "64MB")
	exec(t, s, "ALTER SYSTEM SET max_slot_wal_keep_size = '96MB'")
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new setting", func() bool {
		return query(t, s, "SHOW max_slot_wal_keep_size") == "96MB"
	})
}

func TestStopThatDoesNotEndIsAnErrorAndCanBeFollowedByAStricterOne(t *testing.T) {
	s := start(t, pgserver.Options{})
	connect(t, s) // smart shutdown waits for this client
	err := s.Stop(pgserver.Smart, 300*time.Millisecond)
	if !errors.Is(err, pgserver.ErrTimeout) {
		t.Fatalf("smart shutdown with a client: %v, want ErrTimeout", err)
	}
	if !strings.Contains(err.Error(), "received smart shutdown request") {
		t.Errorf("the error does not show the server's log: %v", err)
	}
	if err := s.Stop(pgserver.Fast, 20*time.Second); err != nil {
		t.Fatal(err)
	}
}

func TestPasswordIsNeededWhenSet(t *testing.T) {
	s := start(t, pgserver.Options{Password: "it's a secret"})
	expect(t, s, "SELECT 1::text", "1")
	wrong := strings.Replace(s.URL("postgres"), "secret", "guess", 1)
	if _, err := pgx.Connect(t.Context(), wrong); err == nil {
		t.Error("a wrong password was accepted")
	}
	if log, err := os.ReadFile(s.LogFile()); err != nil || strings.Contains(string(log), "secret") {
		t.Errorf("the log has the password, or cannot be read: %v", err)
	}
}

func TestGivenDirectoryIsKeptAndUsedAgain(t *testing.T) {
	dir, err := os.MkdirTemp("", "cdcpub-test-") // t.TempDir may be closed to the server's account
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	first := start(t, pgserver.Options{Dir: dir, Durable: true})
	expect(t, first, "SHOW fsync", "on")
	exec(t, first, "CREATE TABLE kept AS SELECT 'here' AS word")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := start(t, pgserver.Options{Dir: dir})
	expect(t, second, "SELECT word FROM kept", "here")
}

func TestTemporaryDirectoryIsRemovedByClose(t *testing.T) {
	s := start(t, pgserver.Options{})
	if _, err := os.Stat(s.LogFile()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stat after Close: %v, want that it does not exist", err)
	}
}

func TestKilledServerLeavesNothingAfterClose(t *testing.T) {
	s := start(t, pgserver.Options{})
	// A backend that is busy, not waiting, when its postmaster dies.
	c := connect(t, s)
	busy := make(chan error, 1)
	go func() {
		_, err := c.Exec(context.Background(), "SELECT count(*) FROM generate_series(1, 1000000000)")
		busy <- err
	}()
	eventually(t, "the backend is busy", func() bool {
		return query(t, s, "SELECT count(*)::text FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%generate_series(1, 1000000000)' AND pid <> pg_backend_pid()") == "1"
	})
	before, err := os.ReadFile(filepath.Join(s.Dir(), "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-busy; err == nil {
		t.Error("the query of a killed server succeeded")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	segment := strings.Fields(strings.Split(string(before), "\n")[6])[1]
	segments, err := osexec.Command("ipcs", "-m").Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(segments), " "+segment+" ") {
		t.Errorf("segment %s is left:\n%s", segment, segments)
	}
}

func TestStartWithABadSettingShowsTheServersWords(t *testing.T) {
	_, err := pgserver.Start(t.Context(), pgserver.Options{Settings: map[string]string{"no_such_setting": "1"}})
	if err == nil || !strings.Contains(err.Error(), "unrecognized configuration parameter") {
		t.Errorf("Start = %v, want the server's complaint", err)
	}
}

// eventually looks until the condition holds; it is for states of processes
// that nobody announces.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	deadline := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-poll.C:
		case <-deadline:
			t.Fatalf("not in time: %s", what)
		}
	}
}
