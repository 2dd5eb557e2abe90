package slotctl

import (
	"strings"
	"testing"
)

func TestDropRefusesAnActiveSlotAndSaysWhoHoldsIt(t *testing.T) {
	on(t, everyone, func(s *stand) {
		name := s.slot()
		pid, release := s.hold(name, "some reader", false)
		for _, err := range []error{func() error { _, _, err := CheckDrop(s.Context(), s.conn, name); return err }(), Drop(s.Context(), s.conn, name)} {
			refused[*RefusedError](s.T, err, pidText(pid), `"some reader"`, "127.0.0.1", "connected since", "takeover")
		}
		release()
		s.free(name, pid)
		if _, slot, err := CheckDrop(s.Context(), s.conn, name); err != nil || slot.RetainedBytes == nil {
			s.Fatal(slot, err)
		}
		if err := Drop(s.Context(), s.conn, name); err != nil {
			s.Fatal(err)
		}
		_, _, err := CheckDrop(s.Context(), s.conn, name)
		refused[*UnknownSlotError](s.T, err, name)
	})
}

func TestDropOfAPhysicalSlot(t *testing.T) {
	on(t, usual, func(s *stand) {
		name := "physical_" + strings.TrimPrefix(s.database, "db_")
		s.exec("SELECT pg_create_physical_replication_slot('" + name + "', true)")
		if _, slot, err := CheckDrop(s.Context(), s.conn, name); err != nil || Kind(slot) != "physical" {
			s.Fatal(slot, err)
		}
		if err := Drop(s.Context(), s.conn, name); err != nil {
			s.Error(err)
		}
	})
}

func TestDropOfATemporarySlotSaysThatItGoesByItself(t *testing.T) {
	on(t, usual, func(s *stand) {
		owner, name := connectTo(s.T, s.server.URL(s.database)), "temporary_"+strings.TrimPrefix(s.database, "db_")
		if _, err := owner.Exec(s.Context(), "SELECT pg_create_logical_replication_slot('"+name+"', 'pgoutput', true)"); err != nil {
			s.Fatal(err)
		}
		_, _, err := CheckDrop(s.Context(), s.conn, name)
		refused[*RefusedError](s.T, err, pidText(int(owner.PgConn().PID())), "temporary slot", "session ends")
	})
}

func TestDropWithoutTheRightSaysWhichOneIsMissing(t *testing.T) {
	on(t, usual, func(s *stand) {
		refused[*RightsError](s.T, Drop(s.Context(), s.role(""), s.slot()), "drop slot", "ALTER ROLE", "REPLICATION")
	})
}

func TestAnUnknownSlotIsToldWithTheNearestNames(t *testing.T) {
	on(t, usual, func(s *stand) {
		name := s.slot()
		_, _, err := Find(s.Context(), s.conn, name[:len(name)-1])
		refused[*UnknownSlotError](s.T, err, "slot "+name[:len(name)-1]+" does not exist", "nearest first: "+name)
	})
}

func TestUnknownSlotError(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  string
	}{
		{nil, "slot x does not exist: this server has no slot at all"},
		{[]string{"y"}, "slot x does not exist on this server; it has, nearest first: y"},
		{[]string{"a", "b", "c", "d", "e", "f", "g"}, "slot x does not exist on this server; it has, nearest first: a, b, c, d, e and 2 more"},
	} {
		if got := (&UnknownSlotError{Slot: "x", Names: c.names}).Error(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
