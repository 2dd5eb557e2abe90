package scenarios

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

func TestSlotDroppedWhileRunning(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			parallel(t)
			slotDropped(newStand(t, options{postgres: shared.Postgres(t, version, "max_prepared_transactions=10"), http: true}))
		})
	}
}

// slotDropped: the publisher names the LSN up to which all is published. To
// create the slot is the operator's answer; it goes on by itself then, and says
// what the new slot does not have.
func slotDropped(s *stand) {
	p := s.run()
	written := s.underLoad()
	s.load(2, 10)
	s.delivered()
	s.dropSlot()
	s.load(2, 10)
	line := s.blockedProcess(p)
	text := fmt.Sprint(line["error"])
	s.says(text, "slot "+s.slot+" does not exist on this server", "cdcpub init", "will not contain")
	up := s.lsnIn(text, `everything committed up to LSN ([0-9A-F]+/[0-9A-F]+) is published, and rows committed after it are in no slot`)
	written()
	s.succeeds("slot", "create", s.slot, "--yes", "-c", "{config}")
	created := s.confirmed()
	line = s.awaitLog(p, "slot_moved")
	if line["from_lsn"] != up.String() || line["lsn"] != created.String() {
		s.t.Errorf("the log says from %v to %v; the slot was dropped at %s and created at %s", line["from_lsn"], line["lsn"], up, created)
	}
	s.load(2, 10)
	s.delivered()
	s.stop(p)
	given := map[string]bool{}
	for _, row := range s.missing() {
		given[row.EventID] = true
		if row.CommitEnd <= up || row.CommitEnd > created {
			s.t.Errorf("a row that was committed at %s is missing, outside of what the publisher named: from %s to %s", row.CommitEnd, up, created)
		}
	}
	if len(given) == 0 {
		s.t.Error("no row is missing: the scenario is not what it says")
	}
	s.check(func(o *verify.Options) { o.Quarantined = given; o.Rewinds = -1 })
}

// dropSlot ends the walsender and drops the slot before another comes.
func (s *stand) dropSlot() {
	s.t.Helper()
	s.until("the slot is dropped", func() bool {
		s.exec("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = $1 AND active", s.slot)
		_, err := s.sql.Exec(s.ctx, "SELECT pg_drop_replication_slot($1)", s.slot)
		return err == nil
	})
}

func TestSlotMovedByAnotherWhileRunning(t *testing.T) {
	ways := map[string]struct {
		moves func(*stand)
		lost  int
	}{
		"dropped and created again": {func(s *stand) {
			s.does([]string{"SELECT pg_drop_replication_slot('{p}')", "rows", "SELECT pg_create_logical_replication_slot('{p}', 'pgoutput')"})
		}, 10},
		"advanced": {func(s *stand) {
			s.does([]string{"rows", "SELECT pg_replication_slot_advance('{p}', pg_current_wal_lsn())"})
		}, 10},
		"consumed": {func(s *stand) {
			s.does([]string{"rows", "SELECT count(*) FROM pg_logical_slot_get_binary_changes('{p}', NULL, NULL, 'proto_version', '1', 'publication_names', '{p}')"})
		}, 10},
		"read by another publisher that has ended": {(*stand).publishedByAnother, 0},
	}
	for _, version := range versions {
		for name, way := range ways {
			t.Run(version+"/"+name, func(t *testing.T) {
				parallel(t)
				slotMoved(newStand(t, options{postgres: shared.Postgres(t, version, "max_prepared_transactions=10"), http: true}), way.moves, way.lost)
			})
		}
	}
}

// publishedByAnother is the whole life of a second publisher.
func (s *stand) publishedByAnother() {
	s.t.Helper()
	listen := s.listen
	s.listen = s.freeAddress()
	other := s.run()
	s.load(2, 10)
	s.delivered()
	s.stop(other)
	s.listen = listen
}

// slotMoved: between two sessions of a process the slot goes on without it.
// PostgreSQL gives slots no identity; that this one stands where the process
// has not confirmed anything is all that tells. Who moved it does not show.
func slotMoved(s *stand, moves func(*stand), lost int) {
	p := s.run()
	s.load(2, 10)
	s.delivered()
	s.no(p.Signal(syscall.SIGSTOP)) // it would be back within seconds
	s.exec("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = $1 AND active", s.slot)
	s.until("nobody holds the slot", func() bool {
		var active bool
		s.no(s.sql.QueryRow(s.ctx, "SELECT active FROM pg_replication_slots WHERE slot_name = $1", s.slot).Scan(&active))
		return !active
	})
	before := s.written() // it follows the WAL of other databases until it is stopped
	moves(s)
	after := s.confirmed()
	s.load(2, 10) // these are in the slot
	s.no(p.Signal(syscall.SIGCONT))

	line := s.blockedProcess(p)
	text := fmt.Sprint(line["error"])
	s.says(text, "another cdcpub published", "nothing is missing: restart this one",
		"somebody has advanced the slot, or dropped it and created it again", "restart cdcpub to go on from "+after.String())
	from := s.lsnIn(text, `rows committed between ([0-9A-F]+/[0-9A-F]+) and`)
	if to := s.lsnIn(text, `stands at LSN ([0-9A-F]+/[0-9A-F]+)`); from > before || to != after {
		s.t.Errorf("the publisher names %s to %s; the slot went from no more than %s to %s", from, to, before, after)
	}
	if confirmed := s.confirmed(); confirmed != after {
		s.t.Errorf("the slot went on to %s while the publisher is blocked", confirmed)
	}
	if code := s.stopBlocked(p); code != 4 {
		s.t.Errorf("exit %d, want 4\n%s", code, p.Stderr())
	}
	p = s.run()
	s.delivered()
	s.stop(p)
	s.lostBetween(lost, before.String(), after.String())
}

// lostBetween expects so many rows to be missing in the topics, all of them
// committed in that range, and every guarantee to hold for the others.
func (s *stand) lostBetween(n int, from, to string) {
	s.t.Helper()
	low, high := s.lsnIn(from, "(.*)"), s.lsnIn(to, "(.*)")
	given := map[string]bool{}
	for _, row := range s.missing() {
		given[row.EventID] = true
		if row.CommitEnd <= low || row.CommitEnd > high {
			s.t.Errorf("a row that was committed at %s is missing; only those from %s to %s may be", row.CommitEnd, from, to)
		}
	}
	if len(given) != n {
		s.t.Errorf("%d rows are missing, want %d", len(given), n)
	}
	s.check(func(o *verify.Options) { o.Quarantined = given })
}

// A new process knows nothing but the slot. That somebody moved it shows
// nowhere.
func TestSlotAdvancedWhileDownLeavesAGapThatNobodyCanSee(t *testing.T) {
	parallel(t)
	s := newStand(t, options{})
	p := s.run()
	s.load(2, 10)
	s.delivered()
	s.stop(p)
	before := s.written()
	s.load(1, 10)
	s.exec("SELECT pg_replication_slot_advance($1, pg_current_wal_lsn())", s.slot)
	after := s.written()
	p = s.run()
	s.load(2, 10)
	s.delivered()
	s.stop(p)
	s.lostBetween(10, before.String(), after.String())
}

// A database cannot be dropped from under a publisher, not even by force; the
// attempt leaves the stream alone.
func TestDatabaseOfARunningPublisherCannotBeDropped(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			parallel(t)
			s := newStand(t, options{postgres: shared.Postgres(t, version, "max_prepared_transactions=10")})
			p := s.run()
			s.load(2, 10)
			other, err := pgx.Connect(s.ctx, s.pg.URL("postgres"))
			s.no(err)
			t.Cleanup(func() { _ = other.Close(context.Background()) })
			for _, how := range []string{"", " WITH (FORCE)"} {
				_, err := other.Exec(s.ctx, "DROP DATABASE "+s.slot+how)
				if err == nil || !strings.Contains(err.Error(), "logical replication slot") {
					t.Fatalf("DROP DATABASE%s: %v", how, err)
				}
			}
			s.load(2, 10)
			s.delivered()
			s.stop(p)
			if report := s.check(nil); s.sessions() != 1 || report.Repeated != 0 {
				t.Errorf("%d sessions, %d records repeated", s.sessions(), report.Repeated)
			}
		})
	}
}

// The server ends the walsender with the words of pg_terminate_backend; only a
// look at the slot tells that it is lost.
func TestSlotInvalidatedWhileRunning(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			parallel(t)
			s := newStand(t, options{http: true, postgres: harness.Postgres(t, version, "max_slot_wal_keep_size=16MB", "max_wal_size=32MB", "min_wal_size=32MB")})
			slotInvalidated(s)
		})
	}
}

func slotInvalidated(s *stand) {
	p := s.run()
	s.load(2, 10)
	s.delivered()
	s.history()
	s.no(p.Signal(syscall.SIGSTOP)) // a publisher that does not keep up
	s.until("the slot is lost", func() bool {
		s.exec("CREATE TABLE noise AS SELECT repeat('x', 1000) AS text FROM generate_series(1, 20000)")
		s.exec("DROP TABLE noise")
		s.exec("SELECT pg_switch_wal()")
		s.exec("CHECKPOINT")
		var status string
		s.no(s.sql.QueryRow(s.ctx, "SELECT wal_status FROM pg_replication_slots WHERE slot_name = $1", s.slot).Scan(&status))
		return status == "lost"
	})
	s.no(p.Signal(syscall.SIGCONT))
	confirmed := s.confirmed()
	text := fmt.Sprint(s.blockedProcess(p)["error"])
	s.says(text, "slot "+s.slot+" is lost", "the WAL from "+confirmed.String(), "cdcpub slot drop", "cdcpub slot create")

	// The oracle's slot was lost as well, and is made anew with ours.
	s.succeeds("slot", "drop", s.slot, "--yes", "-c", "{config}")
	s.oracle = harness.NewOracle(s.t, s.url, s.options.oracle)
	s.succeeds("slot", "create", s.slot, "--yes", "-c", "{config}")
	created := s.confirmed()
	if line := s.awaitLog(p, "slot_moved"); line["lsn"] != created.String() {
		s.t.Errorf("the log says that it goes on at %v, the slot was created at %s", line["lsn"], created)
	}
	s.load(2, 10)
	s.delivered()
	s.stop(p)
	s.check(func(o *verify.Options) { o.Rewinds = -1 })
}
