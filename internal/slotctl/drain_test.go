package slotctl

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/slotmon"
)

func (s *stand) find(slot string) *slotmon.Slot {
	s.Helper()
	_, found, err := Find(s.Context(), s.conn, slot)
	if err != nil {
		s.Fatal(err)
	}
	return found
}

func (s *stand) mark() Mark {
	s.Helper()
	mark, err := MarkEnd(s.Context(), s.conn)
	if err != nil {
		s.Fatal(err)
	}
	return mark
}

// drain runs until done or too long.
func (s *stand) drain(d *Drain, limit time.Duration) (Progress, error) {
	s.Helper()
	if d.Report == nil {
		d.Report = func(Progress) {}
	}
	ctx, cancel := context.WithTimeoutCause(s.Context(), limit, errors.New("time is over"))
	defer cancel()
	conn := connectTo(s.T, s.server.URL(s.database)) // a limit that is over closes it
	return d.Run(ctx, conn)
}

func TestDrainEndsWhenAllThatWasCommittedIsConfirmed(t *testing.T) {
	on(t, everyone, func(s *stand) {
		name := s.slot()
		pid, _ := s.hold(name, "cdcpub", true)
		s.exec("SET synchronous_commit = off", "INSERT INTO outbox SELECT generate_series(1, 20000)")
		written := s.lsn("pg_current_wal_insert_lsn()")
		mark := s.mark()
		if mark.LSN < written {
			s.Errorf("the mark %s lies before the commit at %s", mark.LSN, written)
		}
		last, err := s.drain(&Drain{Slot: name, Mark: mark}, patience)
		if err != nil {
			s.Fatal(err)
		}
		if last.Confirmed < mark.LSN || s.confirmed(name) < mark.LSN || last.Holder == nil || last.Holder.PID != pid {
			s.Errorf("ended at %+v", last)
		}
	})
}

// After a switch of segments the insert position lies behind the header of a
// page to which nothing is written: no reader gets there by itself.
func TestDrainEndsOnAServerThatWritesNothing(t *testing.T) {
	on(t, everyone, func(s *stand) {
		name := s.slot()
		s.hold(name, "cdcpub", true)
		s.exec("INSERT INTO outbox VALUES (1)", "SELECT pg_switch_wal()")
		began := time.Now()
		if _, err := s.drain(&Drain{Slot: name, Mark: s.mark()}, patience); err != nil {
			s.Fatal(err)
		}
		// The background writer writes something every 15 s.
		if took := time.Since(began); took > 10*time.Second {
			s.Errorf("took %s", took)
		}
	})
}

func TestDrainWithoutAReaderFailsAtOnceOrWaits(t *testing.T) {
	on(t, usual, func(s *stand) {
		name := s.slot()
		s.exec("INSERT INTO outbox VALUES (1)")
		mark := s.mark()
		last, err := s.drain(&Drain{Slot: name, Mark: mark}, patience)
		refused[*NobodyError](s.T, err, "nobody is connected to slot "+name, mark.LSN.String(), "--wait")
		if last.Remaining <= 0 {
			s.Errorf("%+v remains", last)
		}

		limits := CountLimits{100, patience}
		idle := &Drain{Slot: name, Mark: mark}
		if count, err := idle.Unconfirmed(s.Context(), s.conn, s.config(), []string{"pub"}, limits); err != nil || count.Rows != 1 || !count.Exact() {
			s.Errorf("not confirmed is %+v, want the one row: %v", count, err)
		}
		elsewhere := newStand(s.T, s.server)
		if count, err := idle.Unconfirmed(s.Context(), elsewhere.conn, elsewhere.config(), []string{"pub"}, limits); err != nil || count.Exact() {
			s.Errorf("counted over another database: %+v, %v", count, err)
		}

		_, err = s.drain(&Drain{Slot: name, Mark: mark, Wait: true}, time.Second)
		refused[*NotDrainedError](s.T, err, "time is over", "nobody is connected", mark.LSN.String())

		came := false
		drain := &Drain{Slot: name, Mark: mark, Wait: true}
		drain.Report = func(now Progress) {
			if !came {
				came = true
				s.hold(name, "cdcpub", true)
			}
		}
		if _, err := s.drain(drain, patience); err != nil {
			s.Errorf("a reader came later: %v", err)
		}
		if count, err := idle.Unconfirmed(s.Context(), s.conn, s.config(), []string{"pub"}, limits); err != nil || count.Rows != 0 || !count.Exact() {
			s.Errorf("not confirmed is %+v, %v", count, err)
		}
		// Nobody has to be connected when everything is confirmed.
		if _, err := s.drain(&Drain{Slot: name, Mark: mark}, patience); err != nil {
			s.Error(err)
		}
	})
}

func TestDrainNamesAReaderThatConfirmsNothing(t *testing.T) {
	on(t, usual, func(s *stand) {
		name := s.slot()
		s.exec("INSERT INTO outbox VALUES (1)")
		pid, _ := s.hold(name, "cdcpub", false)
		_, err := s.drain(&Drain{Slot: name, Mark: s.mark()}, time.Second)
		refused[*NotDrainedError](s.T, err, pidText(pid), `"cdcpub"`, "confirms nothing or too slowly", "slot status "+name)
	})
}

func TestDrainOfASlotThatProvesNothingIsRefused(t *testing.T) {
	on(t, usual, func(s *stand) {
		name := s.slot()
		stream, err := openStream(s.Context(), s.config(), name, []string{"pub"})
		if err != nil {
			s.Fatal(err)
		}
		if err := stream.status(0xFFFF_0000_0000); err != nil { // the server believes it
			s.Fatal(err)
		}
		if _, err := stream.next(s.Context(), 0xFFFF_0000_0000); err != nil {
			s.Fatal(err)
		}
		stream.close()
		s.free(name, stream.pid())
		_, err = s.drain(&Drain{Slot: name, Mark: s.mark()}, patience)
		refused[*RefusedError](s.T, err, "proves nothing", "FFFF/0")
		_, err = CheckAdvance(s.Context(), s.conn, name, nil)
		refused[*RefusedError](s.T, err, "stands at FFFF/0", "beyond the end")
		_, err = s.drain(&Drain{Slot: "nothing", Mark: s.mark()}, patience)
		refused[*UnknownSlotError](s.T, err, name)
	})
}
