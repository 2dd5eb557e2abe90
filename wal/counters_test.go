package wal

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pglogrepl"
)

func TestCountersCountWhatWasHandedOver(t *testing.T) {
	inFakeTime(t, func(r *running) {
		if got, want := r.stream.Counters(), (Counters{Received: slotConfirmed}); got != want {
			t.Errorf("at the start %+v, want %+v", got, want)
		}
		r.send(transaction(0x2000, "one", "three")...)
		r.send(transaction(0x3000)...) // of tables that are no outbox
		r.sleep(maxBatchInterval)
		if got := r.stream.Counters(); got.Rows != 0 || got.Transactions != 0 || got.Bytes != 0 {
			t.Errorf("%+v, although nobody has taken anything", got)
		}
		r.events(6)
		r.send(keepalive(0x4000, false))
		r.events(1)
		synctest.Wait()
		// The event id "e" of each row is 1 byte.
		want := Counters{Received: 0x4000, Transactions: 2, Rows: 2, Bytes: 2 + 3 + 5}
		if got := r.stream.Counters(); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

func TestCountersTellWhenConfirmAdvanced(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.send(transaction(0x2000, "a")...)
		r.events(3)
		r.stream.Confirm(slotConfirmed)
		if at := r.stream.Counters().Confirmed; !at.IsZero() {
			t.Errorf("advanced at %s, by the position it had", at)
		}
		r.sleep(time.Minute)
		r.stream.Confirm(0x2030)
		advanced := time.Now()
		r.sleep(time.Minute)
		r.stream.Confirm(0x2030)
		if at := r.stream.Counters().Confirmed; !at.Equal(advanced) {
			t.Errorf("advanced at %s, want %s", at, advanced)
		}
	})
}

// The lease is kept by looks at the server; only the replication connection
// itself tells that its walsender stands still.
func TestQuietNamesAWalsenderThatStandsStillWhileTheLeaseHolds(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.sleep(time.Minute)
		if quiet, silence := r.stream.Quiet(), r.stream.Silence(); quiet < 50*time.Second || silence > 12*time.Second {
			t.Errorf("quiet for %s, silence %s", quiet, silence)
		}
		r.send(keepalive(0x2000, false))
		if quiet := r.stream.Quiet(); quiet != 0 {
			t.Errorf("quiet for %s after a message", quiet)
		}
	})
}

// A connection that nobody reads is not quiet: the receiver is slow.
func TestAStreamThatDoesNotListenIsNotQuiet(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.send(transaction(0x2000, "a")...)
		for range 120 {
			r.sleep(time.Second)
			if quiet := r.stream.Quiet(); quiet >= 10*time.Second {
				t.Fatalf("quiet for %s while the receiver takes nothing", quiet)
			}
		}
		taken := time.Now()
		r.events(3)
		r.sleep(5 * time.Second)
		if quiet := r.stream.Quiet(); quiet > time.Since(taken) {
			t.Errorf("quiet for %s, and listening for %s only", quiet, time.Since(taken))
		}
	})
}

// The server is idle, and looks at it, which go on while confirming is behind,
// keep the lease young. Then too it is asked, or it could not be told from one
// that stands still.
func TestAnIdleServerIsNotQuietWhileConfirmingIsBehind(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.discard()
		r.sender.answerAsks(0x2000)
		r.send(transaction(0x2000, "a")...) // never confirmed
		for range 600 {
			r.sleep(time.Second)
			if quiet := r.stream.Quiet(); quiet > 10*time.Second {
				t.Fatalf("quiet for %s with a server that answers", quiet)
			}
		}
	})
}

func TestTheEndOfAStreamIsNotQuietWhileItDrains(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.send(transaction(0x2000, "a")...)
		r.events(3)
		r.stream.Stop()
		if b := r.take(); b != nil {
			t.Fatalf("batch %s", kinds(b.Events))
		}
		for range 60 {
			r.sleep(time.Second)
			if quiet := r.stream.Quiet(); quiet >= 10*time.Second {
				t.Fatalf("quiet for %s while nobody listens", quiet)
			}
		}
		r.stream.Confirm(pglogrepl.LSN(0x2030))
		r.stream.Finish()
		if err := r.end(); err != nil {
			t.Error(err)
		}
	})
}
