package publisher

import (
	"errors"
	"testing"

	"github.com/cdcpub/cdcpub/wal"
)

// PostgreSQL cannot convert the text of a row, and says so at once. What lies
// before its transaction is published and confirmed by the first session, and
// no session sends any of it again.
func TestWhatLiesBeforeAnUnreadableRowIsPublishedOnce(t *testing.T) {
	w := startWorld(t)
	execute(t, w.server.URL("postgres"), "CREATE DATABASE unreadable ENCODING 'EUC_JP' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
	url := w.server.URL("unreadable")
	execute(t, url, "CREATE TABLE outbox (event_id text, aggregate_type text, aggregate_id text, payload text)")
	execute(t, url, "CREATE PUBLICATION unreadable FOR TABLE outbox")
	execute(t, url, "SELECT pg_create_logical_replication_slot('unreadable', 'pgoutput')")
	s := w.publisher(t, "unreadable", nil)
	s.insert("1", "x")
	before := s.insert("2", "x")
	behind := s.insert("3", "x'), ('4', 'order', 'one', convert_from('\\x8fa1a1', 'EUC_JP') || '")
	end := s.now()
	s.insert("5", "x")
	sent := 0
	for range 3 {
		err, pause := s.once()
		var stop *wal.StopError
		if !errors.As(err, &stop) || stop.Reason != wal.RowUnreadable || pause != decisionInterval {
			t.Fatalf("ended with %v, pause %s", err, pause)
		}
		status := s.Status()
		if sent == 0 {
			sent = status.Acked // row 3 may have been on its way
		}
		if status.State != Blocked || status.Acked != sent || sent < 2 || sent > 3 {
			t.Errorf("%d rows acknowledged, after the first session %d; %+v", status.Acked, sent, status)
		}
		if !s.confirmedBeyond(before) || s.confirmedBeyond(behind) {
			t.Error("what lies before the transaction must be confirmed, and nothing else")
		}
	}
	execute(t, url, "SELECT pg_replication_slot_advance('unreadable', '"+end+"')")
	s.start()
	s.until("it goes on behind the transaction", acked(sent+1))
	if err := s.shutdown(); err != nil {
		t.Errorf("stopped: %v", err)
	}
}
