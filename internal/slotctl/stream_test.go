package slotctl

import (
	"fmt"
	"testing"

	"github.com/jackc/pglogrepl"
)

// However much it has received and reported as written, a reader that confirms
// nothing leaves the slot where it is.
func TestAReaderThatConfirmsNothingDoesNotMoveTheSlot(t *testing.T) {
	on(t, everyone, func(s *stand) {
		name := s.slot()
		before := s.confirmed(name)
		s.exec("INSERT INTO outbox SELECT generate_series(1, 100)")
		end := s.lsn("pg_current_wal_flush_lsn()")
		stream, err := openStream(s.Context(), s.config(), name, []string{"pub"})
		if err != nil {
			s.Fatal(err)
		}
		rows := 0
		// The server answers each status update: after the second answer behind
		// the end it has taken in one that was sent from there.
		for answers := 0; answers < 2; {
			e, err := stream.next(s.Context(), 0)
			if err != nil {
				s.Fatal(err)
			}
			if e.data != nil && e.data[0] == 'I' {
				rows++
			}
			if e.end >= end {
				answers++
				if err := stream.status(0); err != nil {
					s.Fatal(err)
				}
			}
		}
		if stream.received < end || rows != 100 {
			s.Errorf("received %d rows up to %s, want 100 up to %s", rows, stream.received, end)
		}
		if written := s.lsn(fmt.Sprintf("SELECT write_lsn FROM pg_stat_replication WHERE pid = %d", stream.pid())); written < end {
			s.Errorf("reported as written is %s, not %s", written, end)
		}
		if now := s.confirmed(name); now != before {
			s.Errorf("while it read confirmed_flush_lsn went from %s to %s", before, now)
		}
		stream.close()
		s.free(name, stream.pid())
		if now := s.confirmed(name); now != before {
			s.Errorf("after it confirmed_flush_lsn went from %s to %s", before, now)
		}
		if count := s.count(name, nil, CountLimits{1000, patience}); count.Rows != 100 {
			s.Errorf("the slot has %+v left", count)
		}
	})
}

func TestParseOfAReplicationMessage(t *testing.T) {
	s := &stream{received: 7}
	for name, message := range map[string][]byte{
		"empty": {}, "unknown": {'x', 1}, "short data": {pglogrepl.XLogDataByteID, 1}, "short keepalive": {pglogrepl.PrimaryKeepaliveMessageByteID, 1},
	} {
		if e, err := s.parse(message); err == nil {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if _, err := s.parse(append([]byte{pglogrepl.XLogDataByteID}, make([]byte, 24)...)); err != nil || s.received != 7 {
		t.Errorf("data without an LSN: received %s, %v", s.received, err)
	}
}
