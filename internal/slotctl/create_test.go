package slotctl

import (
	"testing"
	"time"
)

func TestCreateMakesASlotThatBeginsNow(t *testing.T) {
	on(t, everyone, func(s *stand) {
		s.exec("INSERT INTO outbox VALUES (1)", "SET statement_timeout = '17s'")
		before := s.lsn("pg_current_wal_lsn()")
		name := s.slot()
		if got := s.text("SELECT plugin || ' ' || database FROM pg_replication_slots WHERE slot_name = $1", name); got != "pgoutput "+s.database {
			s.Errorf("the slot is %s", got)
		}
		if got := s.text("SHOW statement_timeout"); got != "17s" {
			s.Errorf("leaves statement_timeout at %s", got)
		}
		s.exec("INSERT INTO outbox VALUES (2)")
		if begins := s.confirmed(name); begins < before {
			s.Errorf("begins at %s, before %s", begins, before)
		}
		if count := s.count(name, nil, CountLimits{100, patience}); count.Rows != 1 || !count.Exact() {
			s.Errorf("has %+v, not the row written after it was created", count)
		}
	})
}

func TestCreateBehindAnOpenTransactionNamesItAndLeavesNothing(t *testing.T) {
	on(t, usual, func(s *stand) {
		writer := connectTo(s.T, s.server.URL(s.database))
		if _, err := writer.Exec(s.Context(), "SET application_name = 'slow job'; BEGIN; INSERT INTO other VALUES (1)"); err != nil {
			s.Fatal(err)
		}
		_, err := Create(s.Context(), s.conn, New{Name: "behind", Timeout: 200 * time.Millisecond})
		refused[*BlockedError](s.T, err, "200ms", "'slow job'", pidText(int(writer.PgConn().PID())), "--timeout")
		if n := s.text("SELECT count(*)::text FROM pg_replication_slots WHERE slot_name = 'behind'"); n != "0" {
			s.Error("a slot is left")
		}
	})
}

func TestCreateIsRefused(t *testing.T) {
	on(t, usual, func(s *stand) {
		name := s.slot()
		_, err := CheckCreate(s.Context(), s.conn, New{Name: name}, nil)
		refused[*RefusedError](s.T, err, "slot "+name+" exists", "plugin pgoutput", "database "+s.database, "slot status")

		_, err = CheckCreate(s.Context(), s.conn, New{Name: "fresh"}, []string{"pub", "nopub"})
		refused[*RefusedError](s.T, err, "publication nopub does not exist in database "+s.database, "cdcpub init")

		_, err = CheckCreate(s.Context(), s.conn, New{Name: "fresh", Failover: true}, []string{"pub"})
		refused[*RefusedError](s.T, err, "PostgreSQL 15.", "since 17")

		_, err = Create(s.Context(), s.conn, New{Name: "No-Good", Timeout: patience})
		refused[*RefusedError](s.T, err, "slot No-Good", "lower-case")

		_, err = Create(s.Context(), s.role(""), New{Name: "rights", Timeout: patience})
		refused[*RightsError](s.T, err, "create slot rights", "ALTER ROLE", "REPLICATION")

		if _, err = CheckCreate(s.Context(), s.conn, New{Name: "fresh"}, []string{"pub"}); err != nil {
			s.Error(err)
		}
	})
}
