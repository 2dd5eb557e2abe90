package publisher

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/wal"
)

// appearing gives the connections of a publisher an application_name.
func (w *world) appearing(database, application string) func(*Config) {
	return func(c *Config) {
		c.WAL.Connect = func(context.Context) (*wal.ConnConfig, error) {
			config, err := pgconn.ParseConfig(w.server.URL(database))
			if err == nil {
				config.RuntimeParams["application_name"] = application
			}
			return config, err
		}
	}
}

// movedUnseen: the slot goes on while the publisher is away. What it sees of
// others tells a takeover from a human at work.
func (w *world) movedUnseen(t *testing.T) {
	t.Parallel()
	url := w.database(t, "moved")
	a := w.publisher(t, "moved", w.appearing("moved", "cdcpub"))
	a.publishesOneAndIsCutOff(func() {})
	a.advance()
	for range 2 {
		a.free()
		if err := a.cannotOpen(); !isA[*movedError](err) || a.Status().State != Blocked {
			t.Fatalf("after the slot was advanced: %s, %v", a.Status().State, err)
		}
	}

	a.free()
	release := holdSlot(t, url, "moved", "psql")
	if err := a.cannotOpen(); !isA[*wal.SlotInUseError](err) || a.Status().State != Blocked {
		t.Errorf("while somebody reads the slot: %s, %v", a.Status().State, err)
	}
	release()
	a.free()
	if err := a.cannotOpen(); !isA[*movedError](err) {
		t.Errorf("after somebody has read the slot: %v", err)
	}

	b := w.run(t, "moved", w.appearing("moved", "cdcpub-b"))
	b.until("another cdcpub publishes", in(Streaming))
	if err := a.cannotOpen(); !isA[*wal.SlotInUseError](err) || a.Status().State != Standby {
		t.Errorf("while another cdcpub publishes: %s, %v", a.Status().State, err)
	}
	if err := b.shutdown(); err != nil {
		t.Error(err)
	}
	a.free()
	stream, err := a.open(t.Context(), a.stop)
	if err != nil {
		t.Fatalf("after another cdcpub has published: %v", err)
	}
	discard(stream)
	if n := count(events(a.logs), "slot_moved"); n != 1 {
		t.Errorf("%d lines about the slot that moved", n)
	}
}

// ghost: PostgreSQL has not noticed yet that the connection is cut, so that the
// walsender of before still holds the slot. It is no other publisher.
func (w *world) ghost(t *testing.T) {
	t.Parallel()
	url := w.database(t, "ghost")
	s := w.publisher(t, "ghost", w.appearing("ghost", "cdcpub"))
	var resume func() error
	var pid int
	s.publishesOneAndIsCutOff(func() {
		result := execute(t, url, "SELECT active_pid FROM pg_replication_slots WHERE slot_name = 'ghost'")
		var err error
		if pid, err = strconv.Atoi(string(result[0].Rows[0][0])); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		resume = sync.OnceValue(func() error { return syscall.Kill(pid, syscall.SIGCONT) })
		t.Cleanup(func() { _ = resume() })
	})
	for range 2 {
		holder, ok := errors.AsType[*wal.SlotInUseError](s.cannotOpen())
		if !ok || holder.PID != pid || holder.ApplicationName != "cdcpub" {
			t.Fatalf("the slot is held by %+v, want our own pid %d", holder, pid)
		}
	}
	if err := resume(); err != nil {
		t.Fatal(err)
	}
	s.advance()
	if err := s.cannotOpen(); !isA[*movedError](err) {
		t.Errorf("our own walsender is taken for another publisher: %v", err)
	}
}

// publishesOneAndIsCutOff lives through a session that ends without a word to
// PostgreSQL. The publisher can be used on.
func (s *service) publishesOneAndIsCutOff(before func()) {
	s.t.Helper()
	s.start()
	s.until("it streams", in(Streaming))
	s.insert("1", "x")
	s.until("it is acknowledged", acked(1))
	before()
	cut := errors.New("cut off")
	s.kill(cut)
	if err := s.ended(); !errors.Is(err, cut) {
		s.t.Fatalf("ended with %v", err)
	}
}

// cannotOpen is a try that begins no session.
func (s *service) cannotOpen() error {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	opened, err := s.session(ctx, s.stop)
	if opened || err == nil {
		s.t.Fatalf("a session was opened, and ended with %v", err)
	}
	if _, final := s.next(err, &steady{}); final != nil {
		s.t.Fatalf("the end of Run: %v", final)
	}
	return err
}

// advance moves the slot past a row that nobody publishes.
func (s *service) advance() {
	s.t.Helper()
	s.free()
	s.insert("skipped", "x")
	execute(s.t, s.url, "SELECT pg_replication_slot_advance('"+s.config.WAL.Slot+"', pg_current_wal_lsn())")
}

// free waits until PostgreSQL has noticed that nobody reads the slot.
func (s *service) free() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	for string(execute(s.t, s.url, "SELECT active FROM pg_replication_slots WHERE slot_name = '"+s.config.WAL.Slot+"'")[0].Rows[0][0]) != "f" {
		if ctx.Err() != nil {
			s.t.Fatal("the slot is still held")
		}
	}
}

// holdSlot reads a slot under an application_name until it is released.
func holdSlot(t *testing.T, url, slot, application string) (release func()) {
	t.Helper()
	config, err := pgconn.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["replication"], config.RuntimeParams["application_name"] = "database", application
	conn, err := pgconn.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // no farewell
		_ = conn.Close(ctx)
	})
	t.Cleanup(release)
	if err := pglogrepl.StartReplication(t.Context(), conn, slot, 0, pglogrepl.StartReplicationOptions{
		Mode: pglogrepl.LogicalReplication, PluginArgs: []string{"proto_version '1'", "publication_names '" + slot + "'"},
	}); err != nil {
		t.Fatal(err)
	}
	return release
}
