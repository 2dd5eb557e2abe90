package slotctl

import (
	"strings"
	"testing"
)

func TestDropRefusesAnActiveSlotAndSaysWhoHoldsIt(t *testing.T) {
	on(t, everyone, func(s *stand) {
		name := s.slot()
		_, unread, err := CheckDrop(s.Context(), s.conn, name)
		if err != nil {
			s.Fatal(err)
		}
		pid, release := s.hold(name, "some reader", false)
		for _, err := range []error{func() error { _, _, err := CheckDrop(s.Context(), s.conn, name); return err }(), Drop(s.Context(), s.conn, unread)} {
			refused[*RefusedError](s.T, err, pidText(pid), `"some reader"`, "127.0.0.1", "connected since", "takeover")
		}
		release()
		s.free(name, pid)
		_, slot, err := CheckDrop(s.Context(), s.conn, name)
		if err != nil || slot.RetainedBytes == nil {
			s.Fatal(slot, err)
		}
		if err := Drop(s.Context(), s.conn, slot); err != nil {
			s.Fatal(err)
		}
		_, _, err = CheckDrop(s.Context(), s.conn, name)
		refused[*UnknownSlotError](s.T, err, name)
	})
}

func TestDropOfAPhysicalSlot(t *testing.T) {
	on(t, usual, func(s *stand) {
		name := "physical_" + strings.TrimPrefix(s.database, "db_")
		s.exec("SELECT pg_create_physical_replication_slot('" + name + "', true)")
		_, slot, err := CheckDrop(s.Context(), s.conn, name)
		if err != nil || Kind(slot) != "physical" {
			s.Fatal(slot, err)
		}
		if err := Drop(s.Context(), s.conn, slot); err != nil {
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
		_, slot, err := CheckDrop(s.Context(), s.conn, s.slot())
		if err != nil {
			s.Fatal(err)
		}
		refused[*RightsError](s.T, Drop(s.Context(), s.role(""), slot), "drop slot", "ALTER ROLE", "REPLICATION")
	})
}

// A human may think for an hour before the answer is given.
func TestDropLeavesASlotThatIsNotTheOneThatWasShown(t *testing.T) {
	on(t, everyone, func(s *stand) {
		name := s.slot()
		_, shown, err := CheckDrop(s.Context(), s.conn, name)
		if err != nil {
			s.Fatal(err)
		}
		was := shown.ConfirmedFlushLSN.String()
		s.exec("INSERT INTO outbox VALUES (1)", "SELECT pg_replication_slot_advance('"+name+"', pg_current_wal_lsn())")
		refused[*RefusedError](s.T, Drop(s.Context(), s.conn, shown), "was not dropped", "somebody has read it meanwhile", was)
		s.exec("SELECT pg_drop_replication_slot('"+name+"')", "SELECT pg_create_logical_replication_slot('"+name+"', 'test_decoding')")
		refused[*RefusedError](s.T, Drop(s.Context(), s.conn, shown), "made it anew", "test_decoding", was)
		_, present, err := CheckDrop(s.Context(), s.conn, name)
		if err != nil {
			s.Fatal("the slot was dropped: ", err)
		}
		if err := Drop(s.Context(), s.conn, present); err != nil {
			s.Fatal(err)
		}
		refused[*UnknownSlotError](s.T, Drop(s.Context(), s.conn, shown), name)
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
