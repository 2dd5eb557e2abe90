package wal

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgproto3"
)

var shuttingDown = lookResult{refused: &pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "57P03", Message: "the database system is shutting down"}}

func always(result lookResult) func(*fakeServer) {
	return func(s *fakeServer) { s.look = func() lookResult { return result } }
}

// Older minors send nothing while they decode a huge foreign transaction.
func TestASilentServerWhoseWalsenderIsAliveIsKept(t *testing.T) {
	inFakeTime(t, func(r *running) {
		for range 60 {
			r.sleep(time.Minute)
			if silence := r.stream.Silence(); silence > 12*time.Second {
				t.Fatalf("the lease is %s old", silence)
			}
		}
		r.send(transaction(0x2000, "a")...)
		if got := kinds(r.events(3)); got != "BIC" {
			t.Errorf("events %s", got)
		}
		if n := len(r.server.lookTimes()); n > 600 {
			t.Errorf("%d looks in an hour", n)
		}
	})
}

// The publisher's lease is four fifths of wal_sender_timeout or less.
func TestLooksKeepTheLeaseYoung(t *testing.T) {
	inFakeTime(t, func(r *running) {
		oldest := time.Duration(0)
		for range 3000 {
			r.sleep(100 * time.Millisecond)
			oldest = max(oldest, r.stream.Silence())
		}
		if oldest > 7700*time.Millisecond {
			t.Errorf("the lease was %s old", oldest)
		}
	})
}

func TestNobodyLooksWhileConfirmingMovesOn(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.discard()
		r.sender.answerAsks(0x8000)
		r.send(keepalive(0x8000, false))
		for i := range 60 {
			r.sleep(time.Second)
			r.stream.Confirm(pglogrepl.LSN(0x2000 + i))
		}
		if looks := r.server.lookTimes(); len(looks) > 0 {
			t.Errorf("%d looks in a minute", len(looks))
		}
	})
}

func TestASilentServerThatCannotBeReachedEndsTheStream(t *testing.T) {
	inFakeTime(t, func(r *running) {
		err := r.end()
		if !errors.Is(err, ErrSilent) {
			t.Error(err)
		}
		if after := time.Since(r.began); after < 15*time.Second || after > 20*time.Second {
			t.Errorf("after %s with wal_sender_timeout 15 s", after)
		}
		for _, s := range r.sender.seen() {
			wantFlush(t, s, slotConfirmed)
		}
	}, always(unreachable))
}

func TestAFailedLookDoesNotEndAStreamThatIsHeard(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.discard()
		r.sender.answerAsks(0x2000) // never confirmed: it looks every few seconds
		r.sleep(10 * time.Minute)
		select {
		case err := <-r.done:
			t.Fatal(err)
		default:
		}
		if n := len(r.server.lookTimes()); n < 200 {
			t.Errorf("%d looks in 10 minutes of holding back", n)
		}
	}, always(unreachable))
}

func TestASlotThatIsNotOursAnyMoreEndsTheStream(t *testing.T) {
	for name, look := range lostSlots {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(r *running) {
				if err := r.end(); !errors.Is(err, ErrSlotTaken) {
					t.Error(err)
				}
				if after := time.Since(r.began); after > 12*time.Second {
					t.Errorf("found after %s, beyond the lease", after)
				}
			}, always(look))
		})
	}
}

func TestAServerThatStopsWhileWeHoldBackIsLetGoAfterABoundedDrain(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.send(transaction(0x2000, "a")...)
		r.send(transaction(0x3000, "b")...)
		r.events(3) // the window is full now: nothing more is taken
		for len(r.server.lookTimes()) == 0 {
			r.sleep(100 * time.Millisecond)
		}
		if b := r.take(); b != nil {
			t.Fatalf("batch %s although the server stops", kinds(b.Events))
		}
		closed := time.Now()
		if after := closed.Sub(r.began); after > 5*time.Second {
			t.Errorf("noticed after %s", after)
		}
		r.sleep(time.Second)
		r.stream.Confirm(0x2030) // what was in flight is acknowledged
		err := r.end()
		if !errors.Is(err, ErrServerStopping) {
			t.Error(err)
		}
		if drained := r.sender.ended().Sub(closed); drained != serverStopLimit {
			t.Errorf("drained for %s", drained)
		}
		wantFlush(t, r.sender.last(), 0x2030)
	}, always(shuttingDown))
}

func TestFinishEndsTheDrainOfAServerThatStops(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.send(keepalive(0x2000, false))
		r.discard()
		for r.stream.Silence() < 7*time.Second && len(r.server.lookTimes()) == 0 {
			r.sleep(100 * time.Millisecond)
		}
		r.stream.Finish()
		began := time.Now()
		if err := r.end(); !errors.Is(err, ErrServerStopping) || time.Since(began) > 0 {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	}, always(shuttingDown))
}

func TestAServerThatStopsWhileThePipelineDrainsBoundsTheDrain(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.send(transaction(0x2000, "a")...)
		r.events(3)
		r.stream.Stop()
		if b := r.take(); b != nil {
			t.Fatalf("batch %s", kinds(b.Events))
		}
		if err := r.end(); !errors.Is(err, ErrServerStopping) {
			t.Error(err)
		}
		if after := time.Since(r.began); after > 8*time.Second {
			t.Errorf("after %s", after)
		}
	}, always(shuttingDown))
}

// While this process stood still, another one may have taken over. Bytes that
// waited in the socket must not renew the lease.
func TestOldBytesDoNotRenewTheLeaseAfterAStandstill(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.follow()
		resume := r.standStill(func() { go r.sender.send(transaction(0x2000, "old")...) })
		r.sleep(time.Minute)
		resume()
		r.sleep(2 * batchInterval)
		if got := r.stream.Confirmed(); got != 0x2030 {
			t.Fatalf("confirmed %s: the old bytes were not read", got)
		}
		if silence := r.stream.Silence(); silence < time.Minute {
			t.Errorf("the lease was renewed by old bytes: silence %s", silence)
		}
		if err := r.end(); !errors.Is(err, ErrSilent) {
			t.Error(err)
		}
	}, always(lookResult{hangs: true}))
}

func TestALookEndsTheDoubtAfterAStandstill(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.follow()
		resume := r.standStill(func() {})
		r.sleep(time.Minute)
		resume()
		r.sender.answerAsks(slotConfirmed)
		r.sleep(30 * time.Second)
		if silence := r.stream.Silence(); silence > 6*time.Second {
			t.Errorf("silence %s", silence)
		}
		looks := len(r.server.lookTimes())
		r.sleep(10 * time.Minute)
		if more := len(r.server.lookTimes()) - looks; more > 0 {
			t.Errorf("%d looks although the server is heard again", more)
		}
	})
}

// standStill blocks Run's goroutine in a write, as far as it can tell without
// end. What arrives meanwhile waits in the socket.
func (r *running) standStill(meanwhile func()) (resume func()) {
	r.sleep(time.Second)
	resume = r.sender.pause()
	r.send(keepalive(slotConfirmed, true)) // the listener still takes one status
	r.sleep(time.Second)
	r.send(keepalive(slotConfirmed, true)) // and Run blocks in the next
	meanwhile()
	synctest.Wait()
	return resume
}

func TestALookIsBoundedAndKeepsNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer(t)
		server.dialed = 1 // what comes is a look
		config := server.config()
		look := config.lookAtSlot(place{"tcp", "192.0.2.1:5432"}, backend{walsenderPID, walsenderBegan})
		ctx, cancel := context.WithTimeout(context.Background(), probeLimit)
		defer cancel()
		if err := look(ctx); err != nil {
			t.Error(err)
		}
		server.closed.Wait()
		server.look = func() lookResult { return lookResult{hangs: true} }
		began := time.Now()
		if err := look(ctx); err == nil || errors.Is(err, ErrServerStopping) || errors.Is(err, ErrSlotTaken) {
			t.Errorf("a server that does not answer gives %v", err)
		}
		if time.Since(began) != probeLimit {
			t.Errorf("waited %s", time.Since(began))
		}
		server.closed.Wait()
	})
}
