package slotctl

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
)

// count counts what an advance would skip, and checks that counting leaves the
// slot where it is and free.
func (s *stand) count(slot string, to *pglogrepl.LSN, limits CountLimits) Count {
	s.Helper()
	plan, err := CheckAdvance(s.Context(), s.conn, slot, to)
	if err != nil {
		s.Fatal(err)
	}
	count, err := plan.Count(s.Context(), s.conn, s.config(), []string{"pub"}, limits)
	if err != nil {
		s.Fatal(err)
	}
	if now := s.confirmed(slot); now != plan.From {
		s.Fatalf("counting moved confirmed_flush_lsn from %s to %s", plan.From, now)
	}
	if active := s.text("SELECT active::text FROM pg_replication_slots WHERE slot_name = $1", slot); active != "false" {
		s.Fatal("the slot is still held after counting")
	}
	return count
}

func TestAdvanceCountsExactlyWhatItSkips(t *testing.T) {
	on(t, everyone, func(s *stand) {
		name := s.slot()
		straddling := connectTo(s.T, s.server.URL(s.database))
		if _, err := straddling.Exec(s.Context(), "BEGIN; INSERT INTO outbox SELECT generate_series(1, 7)"); err != nil {
			s.Fatal(err)
		}
		s.exec("INSERT INTO outbox SELECT generate_series(1, 10)",
			"BEGIN", "INSERT INTO outbox VALUES (1)", "INSERT INTO other VALUES (1), (2)", "COMMIT",
			"BEGIN", "INSERT INTO outbox VALUES (1), (2), (3)", "ROLLBACK",
			"BEGIN", "INSERT INTO outbox VALUES (1)", "SAVEPOINT s", "INSERT INTO outbox VALUES (2)", "ROLLBACK TO s", "COMMIT",
			"CREATE TABLE unpublished (id int)", "INSERT INTO unpublished VALUES (1)")
		target := s.lsn("pg_current_wal_lsn()")
		if _, err := straddling.Exec(s.Context(), "COMMIT"); err != nil {
			s.Fatal(err)
		}
		s.exec("INSERT INTO other VALUES (3)")

		want := []TableCount{{"public.outbox", 12}, {"public.other", 2}}
		got := s.count(name, &target, CountLimits{100, patience})
		if got.Rows != 14 || got.Transactions != 3 || !slices.Equal(got.Tables, want) || !got.Exact() {
			s.Fatalf("counts %+v", got)
		}
		plan, err := CheckAdvance(s.Context(), s.conn, name, &target)
		if err != nil {
			s.Fatal(err)
		}
		if end, err := plan.Run(s.Context(), s.conn); err != nil || end != target || s.confirmed(name) != target {
			s.Fatalf("advanced to %s, want %s: %v", end, target, err)
		}
		// The transaction that began before the target and ended after it is
		// whole, whatever was skipped.
		want = []TableCount{{"public.outbox", 7}, {"public.other", 1}}
		if rest := s.count(name, nil, CountLimits{100, patience}); rest.Rows != 8 || rest.Transactions != 2 || !slices.Equal(rest.Tables, want) {
			s.Errorf("the slot has %+v left", rest)
		}
	})
}

// Every position is right, not only one between two records: what is counted
// before it and what is left after it make the whole.
func TestAdvanceCountsExactlyAtEveryPosition(t *testing.T) {
	on(t, usual, func(s *stand) {
		name := s.slot()
		from := s.confirmed(name)
		for i := range 4 {
			s.exec(fmt.Sprintf("INSERT INTO outbox SELECT generate_series(1, %d)", i+1))
		}
		end := s.lsn("pg_current_wal_flush_lsn()")
		step := (end - from) / 16
		for to := from + step; to < end; to += step {
			copied := fmt.Sprintf("copy_%d_%s", to, strings.TrimPrefix(s.database, "db_"))
			s.exec("SELECT pg_copy_logical_replication_slot('" + name + "', '" + copied + "')")
			before := s.count(copied, &to, CountLimits{100, patience})
			plan := &Advance{From: from, To: to}
			plan.Slot = s.find(copied)
			if _, err := plan.Run(s.Context(), s.conn); err != nil {
				s.Fatal(err)
			}
			after := s.count(copied, &end, CountLimits{100, patience})
			if before.Rows+after.Rows != 10 || before.Transactions+after.Transactions != 4 {
				s.Errorf("at %s: skipped %+v, left %+v", to, before, after)
			}
			s.exec("SELECT pg_drop_replication_slot('" + copied + "')")
		}
	})
}

func TestAdvanceCountsNoFurtherThanItsLimits(t *testing.T) {
	on(t, usual, func(s *stand) {
		name := s.slot()
		s.exec("INSERT INTO outbox SELECT generate_series(1, 5000)")
		if got := s.count(name, nil, CountLimits{1234, patience}); got.Rows != 1234 || got.Incomplete != "stopped at the limit of 1234 rows" {
			s.Errorf("counts %+v", got)
		}
		if got := s.count(name, nil, CountLimits{5000, patience}); got.Rows != 5000 || !got.Exact() {
			s.Errorf("counts %+v, and the limit is exactly enough", got)
		}
		s.exec("SELECT pg_switch_wal()") // the end of WAL lies between two segments
		if got := s.count(name, nil, CountLimits{5000, patience}); got.Rows != 5000 || !got.Exact() {
			s.Errorf("counts %+v after a switch of segments", got)
		}
		if got := s.count(name, nil, CountLimits{5000, time.Nanosecond}); got.Incomplete != "stopped at the time limit" {
			s.Errorf("counts %+v", got)
		}
	})
}

func TestAnAdvanceThatCannotBeCountedSaysWhy(t *testing.T) {
	on(t, everyone, func(s *stand) {
		name := s.slot()
		s.exec("DROP PUBLICATION pub", "INSERT INTO outbox VALUES (1)", "CREATE PUBLICATION pub FOR TABLE outbox", "INSERT INTO outbox VALUES (2)")
		if got := s.count(name, nil, CountLimits{100, patience}); !strings.Contains(got.Incomplete, "older than the publication") {
			s.Errorf("counts %+v with a publication that is younger than the slot", got)
		}
		s.exec("DROP PUBLICATION pub")
		if got := s.count(name, nil, CountLimits{100, patience}); got.Incomplete != "publication pub does not exist" {
			s.Errorf("counts %+v", got)
		}
		other := "decoding_" + strings.TrimPrefix(s.database, "db_")
		s.exec("SELECT pg_create_logical_replication_slot('"+other+"', 'test_decoding')", "INSERT INTO outbox VALUES (1)")
		if got := s.count(other, nil, CountLimits{100, patience}); !strings.Contains(got.Incomplete, "test_decoding") {
			s.Errorf("counts %+v", got)
		}
	})
}

func TestAdvanceCountsNothingOfATwoPhaseSlot(t *testing.T) {
	on(t, []string{"15", "18"}, func(s *stand) {
		name := "two_" + strings.TrimPrefix(s.database, "db_")
		s.exec("SELECT pg_create_logical_replication_slot('"+name+"', 'pgoutput', false, true)",
			"BEGIN", "INSERT INTO outbox VALUES (1)", "PREPARE TRANSACTION '"+name+"'")
		defer s.exec("ROLLBACK PREPARED '" + name + "'")
		if got := s.count(name, nil, CountLimits{100, patience}); !strings.Contains(got.Incomplete, "two_phase") {
			s.Errorf("counts %+v", got)
		}
	})
}

func TestAdvanceIsRefused(t *testing.T) {
	on(t, usual, func(s *stand) {
		name := s.slot()
		s.exec("INSERT INTO outbox VALUES (1)")
		end, begin := s.lsn("pg_current_wal_flush_lsn()"), s.confirmed(name)
		to := func(lsn pglogrepl.LSN) error {
			_, err := CheckAdvance(s.Context(), s.conn, name, &lsn)
			return err
		}
		refused[*RefusedError](s.T, to(end+(1<<32)), "WAL ends at", "4294967296 bytes before it")
		refused[*RefusedError](s.T, to(begin-1), "confirmed_flush_lsn is "+begin.String(), "1 bytes after it", "cannot go back")
		refused[*RefusedError](s.T, to(0), "cannot go to 0/0")
		if err := to(begin); err != nil {
			s.Errorf("the slot's own position: %v", err)
		}

		pid, release := s.hold(name, "some reader", false)
		refused[*RefusedError](s.T, to(end), pidText(pid), `"some reader"`)
		plan := &Advance{Slot: s.find(name), From: begin, To: end}
		_, err := plan.Run(s.Context(), s.conn)
		refused[*RefusedError](s.T, err, pidText(pid), `"some reader"`)
		_, err = plan.Count(s.Context(), s.conn, s.config(), []string{"pub"}, CountLimits{100, patience})
		refused[*RefusedError](s.T, err, pidText(pid), `"some reader"`)
		release()
		s.free(name, pid)

		role := s.role("")
		_, err = plan.Run(s.Context(), role)
		refused[*RightsError](s.T, err, "advance slot "+name, "REPLICATION")
		config, err := pgconn.ParseConfig(role.Config().ConnString())
		if err != nil {
			s.Fatal(err)
		}
		_, err = plan.Count(s.Context(), role, config, []string{"pub"}, CountLimits{100, patience})
		refused[*RightsError](s.T, err, "read slot "+name, "REPLICATION")

		physical := "physical_" + strings.TrimPrefix(s.database, "db_")
		s.exec("SELECT pg_create_physical_replication_slot('" + physical + "', true)")
		_, err = CheckAdvance(s.Context(), s.conn, physical, nil)
		refused[*RefusedError](s.T, err, "physical")
		s.exec("SELECT pg_drop_replication_slot('" + physical + "')")

		elsewhere := newStand(s.T, s.server)
		_, err = CheckAdvance(s.Context(), elsewhere.conn, name, nil)
		refused[*RefusedError](s.T, err, "belongs to database "+s.database, "connection is to "+elsewhere.database, "--url")
	})
}
