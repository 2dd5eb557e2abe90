package publisher

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/internal/pipeline"
	"github.com/cdcpub/cdcpub/wal"
)

func TestSessions(t *testing.T) {
	w := startWorld(t)
	t.Run("publish, standby, take over, stop", w.takeOver)
	t.Run("a terminated walsender is followed by another session", w.terminated)
	t.Run("a publication that is said to have changed is looked at", w.rechecked)
	t.Run("a walsender that stands still is named", w.frozen)
	t.Run("blocked until the cause is gone", w.blocked)
	t.Run("blocked at a row, until the slot is moved past it", w.poisoned)
	t.Run("on_stop: exit ends", w.exits)
	t.Run("a second signal ends at once", w.killed)
	t.Run("stopped while nothing is open", w.stoppedIdle)
	t.Run("what no catalog explains is tried again quickly, then blocks", w.unexplained)
	t.Run("a slot that moved while nobody was seen, looked into, and taken over", w.movedUnseen)
	t.Run("our own walsender of before is not another publisher", w.ghost)
}

func (w *world) takeOver(t *testing.T) {
	t.Parallel()
	w.database(t, "takeover")
	first := w.run(t, "takeover", nil)
	first.until("it streams", in(Streaming))
	first.insert("1", "x")
	first.until("it is acknowledged", acked(1))
	if status := first.Status(); !status.Ready || status.Role != "active" || status.Stall != nil || status.Kafka == nil {
		t.Errorf("while publishing: %+v", status)
	}
	second := w.run(t, "takeover", nil)
	second.until("it stands by", in(Standby))
	if status := second.Status(); !status.Ready || status.Role != "standby" || status.Stall == nil || status.Stall.Kind != StallStandby || status.Sessions != 0 {
		t.Errorf("while standing by: %+v", status)
	}
	if err := first.shutdown(); err != nil {
		t.Errorf("stopped: %v", err)
	}
	second.until("it has taken over", in(Streaming))
	second.insert("2", "x")
	second.until("the row after the takeover is acknowledged, and no other", acked(1))
	if err := second.shutdown(); err != nil {
		t.Errorf("stopped: %v", err)
	}
	if names := events(second.logs); count(names, "standby") != 1 || count(names, "resumed") != 1 || names[len(names)-1] != "stopped" {
		t.Errorf("logged %q", names)
	}
	if status := second.Status(); status.State != Stopped || status.Ready {
		t.Errorf("after the end: %+v", status)
	}
}

func count(names []string, name string) (n int) {
	for _, other := range names {
		if other == name {
			n++
		}
	}
	return n
}

func (w *world) terminated(t *testing.T) {
	t.Parallel()
	w.database(t, "terminated")
	s := w.run(t, "terminated", nil)
	for i := range 3 {
		s.until("it streams", func(status Status) bool { return status.State == Streaming && status.Sessions == i+1 })
		s.insert(fmt.Sprint(i), "x")
		s.until("it is acknowledged", acked(i+1))
		lsn := s.now()
		s.until("it is confirmed", func(Status) bool { return s.confirmedBeyond(lsn) })
		execute(t, s.url, "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = 'terminated'")
	}
	s.until("it streams again", func(status Status) bool { return status.State == Streaming && status.Sessions == 4 })
	if err := s.shutdown(); err != nil {
		t.Errorf("stopped: %v", err)
	}
	s.countedOverSessions(t)
}

// Nothing in the stream tells that the table is no longer published.
func (w *world) rechecked(t *testing.T) {
	t.Parallel()
	url := w.database(t, "rechecked")
	s := w.run(t, "rechecked", nil)
	s.until("it streams", in(Streaming))
	s.Recheck(Doubt{})
	s.until("another session has looked and reads on", func(status Status) bool {
		return status.State == Streaming && status.Sessions == 2 && status.SessionEnds[EndRecheck] == 1
	})
	execute(t, url, "ALTER PUBLICATION rechecked DROP TABLE outbox")
	s.Recheck(Doubt{})
	s.until("it is blocked", in(Blocked))
	if err := s.shutdown(); err == nil {
		t.Error("a blocked publisher ends without an error")
	}
}

// countedOverSessions: three sessions read a row each, and a fourth was stopped.
func (s *service) countedOverSessions(t *testing.T) {
	status := s.Status()
	want := Status{RowsRead: 3, BytesRead: 3 * int64(len("0orderonex")), SessionEnds: map[EndCause]int{}}
	for _, cause := range EndCauses() {
		want.SessionEnds[cause] = 0
	}
	want.SessionEnds[EndTerminated], want.SessionEnds[EndStop] = 3, 1
	if status.RowsRead != want.RowsRead || status.BytesRead != want.BytesRead || status.Transactions < 3 || !maps.Equal(status.SessionEnds, want.SessionEnds) {
		t.Errorf("%+v", status)
	}
	if status.LastConfirmed.IsZero() || status.LastAcknowledged.IsZero() || status.ReceivedLSN == "" {
		t.Errorf("confirmed %s, acknowledged %s, received %q", status.LastConfirmed, status.LastAcknowledged, status.ReceivedLSN)
	}
}

// Looks find the walsender alive, so that the session goes on.
func (w *world) frozen(t *testing.T) {
	t.Parallel()
	url := w.database(t, "frozen")
	s := w.run(t, "frozen", func(c *Config) { c.WAL.WALSenderTimeout = 6 * time.Second })
	s.until("it streams", in(Streaming))
	s.insert("1", "x")
	s.until("it is acknowledged", acked(1))
	result := execute(t, url, "SELECT active_pid FROM pg_replication_slots WHERE slot_name = 'frozen'")
	pid, err := strconv.Atoi(string(result[0].Rows[0][0]))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	resume := sync.OnceValue(func() error { return syscall.Kill(pid, syscall.SIGCONT) })
	defer func() { _ = resume() }()
	s.until("it is named", func(status Status) bool { return status.Stall != nil && status.Stall.Kind == StallPostgresSilent })
	if status := s.Status(); status.State != Streaming || status.Sessions != 1 {
		t.Errorf("%+v", status)
	}
	if err := resume(); err != nil {
		t.Fatal(err)
	}
	s.until("it is over", func(status Status) bool { return status.Ready && status.Stall == nil })
	s.insert("2", "x")
	s.until("it publishes", acked(2))
	if err := s.shutdown(); err != nil {
		t.Errorf("stopped: %v", err)
	}
}

func (w *world) blocked(t *testing.T) {
	t.Parallel()
	url := w.database(t, "blocked")
	s := w.run(t, "blocked", nil)
	s.until("it streams", in(Streaming))
	execute(t, url, "ALTER TABLE outbox RENAME TO hidden")
	execute(t, url, "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = 'blocked'")
	s.until("it is blocked", in(Blocked))
	if status := s.Status(); status.Ready || status.Role != "standby" || status.Stall == nil || status.Stall.Kind != StallBlocked {
		t.Errorf("while blocked: %+v", status)
	}
	execute(t, url, "ALTER TABLE hidden RENAME TO outbox")
	s.insert("1", "x")
	s.until("it goes on by itself", acked(1))
	s.until("it is ready", func(status Status) bool { return status.Ready && status.Stall == nil })
	if err := s.shutdown(); err != nil {
		t.Errorf("stopped: %v", err)
	}
	if names := events(s.logs); count(names, "blocked") > 2 || count(names, "resumed") != 2 {
		t.Errorf("logged %q", names)
	}
}

func (w *world) poisoned(t *testing.T) {
	t.Parallel()
	url := w.database(t, "poisoned")
	s := w.publisher(t, "poisoned", nil)
	before := s.insert("1", "x")
	execute(t, url, "BEGIN; INSERT INTO outbox VALUES ('2', 'order', 'one', 'x'), ('3', 'order', 'one', 'poison'), ('4', 'order', 'one', 'x'); COMMIT")
	behind := s.now()
	s.insert("5", "x")
	for range 3 {
		err, pause := s.once()
		var row *pipeline.UnpublishableError
		if !errors.As(err, &row) || row.Position.Ordinal != 1 || pause != decisionInterval {
			t.Fatalf("ended with %v, pause %s", err, pause)
		}
		// The rows of the transaction are sent once, not with every attempt.
		if status := s.Status(); status.State != Blocked || status.Ready || status.Acked != 2 {
			t.Errorf("while blocked: %+v", status)
		}
		if !s.confirmedBeyond(before) || s.confirmedBeyond(behind) {
			t.Error("what lies before the transaction must be confirmed, and nothing else")
		}
	}
	execute(t, url, "SELECT pg_replication_slot_advance('poisoned', '"+behind+"')")
	s.start()
	s.until("it goes on behind the transaction", acked(3))
	if err := s.shutdown(); err != nil {
		t.Errorf("stopped: %v", err)
	}
}

func (w *world) exits(t *testing.T) {
	t.Parallel()
	w.database(t, "exits")
	s := w.run(t, "exits", func(c *Config) { c.ExitOnStop = true })
	s.until("it streams", in(Streaming))
	before := s.insert("1", "x")
	s.insert("2", "poison")
	var stopped *StoppedError
	if err := s.ended(); !errors.As(err, &stopped) || !stopped.Decision {
		t.Errorf("ended with %v", err)
	}
	if !s.confirmedBeyond(before) {
		t.Error("what lies before the row is not confirmed")
	}
}

func (w *world) killed(t *testing.T) {
	t.Parallel()
	url := w.database(t, "killed")
	s := w.run(t, "killed", nil)
	s.until("it streams", in(Streaming))
	s.insert("1", "x")
	s.until("it is acknowledged", acked(1))
	cause := errors.New("second signal")
	s.kill(cause)
	if err := s.ended(); !errors.Is(err, cause) {
		t.Errorf("ended with %v", err)
	}
	free := func(Status) bool {
		return string(execute(t, url, "SELECT active FROM pg_replication_slots WHERE slot_name = 'killed'")[0].Rows[0][0]) == "f"
	}
	deadline := time.Now().Add(patience)
	for !free(Status{}) {
		if time.Now().After(deadline) {
			t.Fatal("the slot is still held")
		}
	}
}

// stoppedIdle: a shutdown while standing by leaves nothing behind, at whatever
// moment it comes.
func (w *world) stoppedIdle(t *testing.T) {
	t.Parallel()
	w.database(t, "stopped")
	holder := w.run(t, "stopped", nil)
	holder.until("it streams", in(Streaming))
	for i := range 5 {
		s := w.run(t, "stopped", nil)
		if i > 0 {
			s.until("it stands by", in(Standby))
		}
		if err := s.shutdown(); err != nil {
			t.Errorf("stopped: %v", err)
		}
	}
	if err := holder.shutdown(); err != nil {
		t.Errorf("stopped: %v", err)
	}
}

// unexplained: a partition that was detached and dropped before its rows were
// read is a table that no catalog names.
func (w *world) unexplained(t *testing.T) {
	t.Parallel()
	url := w.database(t, "unexplained")
	execute(t, url, "DROP TABLE outbox")
	execute(t, url, "CREATE TABLE outbox (event_id text, aggregate_type text, aggregate_id text, payload text) PARTITION BY LIST (aggregate_id)")
	execute(t, url, "CREATE TABLE kept PARTITION OF outbox FOR VALUES IN ('two')")
	execute(t, url, "CREATE TABLE gone PARTITION OF outbox FOR VALUES IN ('one')")
	execute(t, url, "ALTER PUBLICATION unexplained ADD TABLE outbox")
	execute(t, url, "INSERT INTO outbox VALUES ('1', 'order', 'one', 'x')")
	execute(t, url, "ALTER TABLE outbox DETACH PARTITION gone")
	s := w.publisher(t, "unexplained", nil)
	for i, want := range []struct {
		state State
		pause time.Duration
	}{{Connecting, minRetry}, {Blocked, decisionInterval}, {Blocked, decisionInterval}} {
		err, pause := s.once()
		var unknown *wal.UnknownRelationError
		if status := s.Status(); !errors.As(err, &unknown) || status.State != want.state || pause != want.pause || status.Acked != 0 {
			t.Errorf("session %d: %v, pause %s, %+v", i, err, pause, status)
		}
	}
	execute(t, url, "ALTER TABLE outbox ATTACH PARTITION gone FOR VALUES IN ('one')")
	s.start()
	s.until("it is published after the cure that the message names", acked(1))
	if err := s.shutdown(); err != nil {
		t.Errorf("stopped: %v", err)
	}
}
