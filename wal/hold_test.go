package wal

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// refused writes CopyData payloads and, in the same piece, the error of a text
// that cannot be converted, as a server does that reads ahead.
func (r *running) refused(payloads ...[]byte) {
	var all []pgproto3.BackendMessage
	for _, p := range payloads {
		all = append(all, &pgproto3.CopyData{Data: p})
	}
	go r.sender.write(append(all, refusal("22P05"), &pgproto3.ReadyForQuery{TxStatus: 'I'})...)
}

// slotThen changes the slot's row once the first stream has seen it.
func slotThen(change map[string]string) func(*fakeServer) {
	return func(s *fakeServer) {
		s.answers["pg_stat_activity a"] = answer{}
		first := s.answers["pg_replication_slots s"]
		s.setSlot(change)
		s.then = map[string]answer{"pg_replication_slots s": s.answers["pg_replication_slots s"]}
		s.answers["pg_replication_slots s"] = first
	}
}

// The server reads ahead, so the error comes with the rows before it.
func TestWhatLiesBeforeATextThatCannotBeConvertedIsDeliveredUnderTheSlot(t *testing.T) {
	inFakeTime(t, func(r *running) {
		// The transaction of the text has a row that could be read.
		bad := transaction(0x3000, "first")
		r.refused(append(transaction(0x2000, "good"), bad[:3]...)...)
		if got := kinds(r.events(3)); got != "BIC" {
			t.Errorf("events %s", got)
		}
		<-r.server.again
		<-r.sender.gone // not two connections at once
		if b := r.take(); b != nil {
			t.Errorf("events %s of the transaction that cannot be read are handed over", kinds(b.Events))
		}
		if sql := r.server.lastQuery(); !strings.HasPrefix(sql, "START_REPLICATION SLOT "+fakeSlot+" LOGICAL FFFFFFFF/FFFFFFFF (") {
			t.Errorf("%s decodes the row again", sql)
		}
		r.sleep(20 * time.Second) // the pipeline drains
		if silence := r.stream.Silence(); silence > 12*time.Second {
			t.Errorf("the lease is %s old while the slot is held", silence)
		}
		for _, status := range r.server.held.seen() {
			wantFlush(t, status, slotConfirmed)
		}
		r.stream.Confirm(0x2030)
		r.stream.Finish()
		wantReason(RowUnreadable)(t, r.end())
		wantFlush(t, r.server.held.last(), 0x2030)
		if r.server.held.ended().IsZero() {
			t.Error("no CopyDone")
		}
		if n := r.server.open.Load(); n != 0 {
			t.Errorf("%d connections are open after Run", n)
		}
	})
}

// The rows that such a transaction has before the text are not sent with every
// attempt.
func TestAStreamEndsBeforeATransactionThatIsKnownToBeUnreadable(t *testing.T) {
	for name, c := range map[string]struct {
		timeline string
		want     string
	}{"the same timeline": {"1", "BIC"}, "another transaction's LSN": {"2", "BICBIIC"}} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(r *running) {
				r.send(append(transaction(0x2000, "good"), transaction(0x3000, "first", "second")...)...)
				if got := kinds(r.events(len(c.want))); got != c.want {
					t.Errorf("events %s, want %s", got, c.want)
				}
				r.stream.Finish()
				if b := r.take(); b != nil {
					t.Errorf("more events: %s", kinds(b.Events))
				}
				if err := r.end(); (c.timeline == "1") != rowUnreadable(err) {
					t.Errorf("ended with %v", err)
				}
			}, func(s *fakeServer) {
				s.answers["IDENTIFY_SYSTEM"] = answer{rows: [][]string{{"7000000000000000001", c.timeline, "0/9000", "shop"}}}
				s.previous = &Identity{SystemID: "7000000000000000001", Timeline: 1, Publication: "500:700 600:701"}
				s.unreadable = &StopError{Reason: RowUnreadable, Slot: fakeSlot, CommitLSN: 0x3000}
			})
		})
	}
}

// What is still read from the old connection is no proof of the slot.
func TestNothingIsHandedOverUntilTheSlotIsTakenAgain(t *testing.T) {
	inFakeTime(t, func(r *running) {
		resume := make(chan struct{})
		r.server.looksAre(func() lookResult {
			<-resume
			return lookAlive
		})
		r.refused(transaction(0x2000, "good")...)
		synctest.Wait()
		if silence := r.stream.Silence(); silence < 24*time.Hour {
			t.Errorf("the lease is %s old although nobody holds the slot", silence)
		}
		select {
		case b := <-r.out:
			t.Fatalf("events %s", kinds(b.Events))
		default:
		}
		close(resume)
		if got := kinds(r.events(3)); got != "BIC" {
			t.Errorf("events %s", got)
		}
		if silence := r.stream.Silence(); silence > time.Second {
			t.Errorf("the lease is %s old when the slot is held", silence)
		}
		r.stream.Finish()
		wantReason(RowUnreadable)(t, r.end())
	})
}

func TestASlotThatIsNotOursAnyMoreEndsTheDelivery(t *testing.T) {
	inUse := func(t *testing.T, err error) {
		var inUse *SlotInUseError
		if !errors.As(err, &inUse) {
			t.Errorf("%v is not a SlotInUseError", err)
		}
	}
	for name, c := range map[string]struct {
		prepare func(*fakeServer)
		check   func(*testing.T, error)
	}{
		"a standby has it":       {slotThen(map[string]string{"active": "true", "active_pid": "99"}), inUse},
		"a standby has moved it": {slotThen(map[string]string{"confirmed_flush_lsn": `"0/1001"`}), wantError(ErrSlotTaken)},
		"it is gone":             {slotThen(map[string]string{"wal_status": `"lost"`}), wantReason(RowUnreadable)},
		"nobody lets us in":      {func(s *fakeServer) { s.look = func() lookResult { return lookResult{refused: fatal("53300")} } }, wantReason(RowUnreadable)},
		"nobody answers":         {func(s *fakeServer) { s.look = func() lookResult { return lookResult{hangs: true} } }, wantReason(RowUnreadable)},
		"nobody is there":        {func(s *fakeServer) { s.look = func() lookResult { return unreachable } }, wantReason(RowUnreadable)},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(r *running) {
				began := time.Now()
				r.refused(transaction(0x2000, "good")...)
				if b := r.take(); b != nil {
					t.Errorf("events %s are handed over without the slot", kinds(b.Events))
				}
				err := r.end()
				c.check(t, err)
				wantReason(RowUnreadable)(t, err)
				if took := time.Since(began); took > holdLimit+2*time.Second {
					t.Errorf("took %s", took)
				}
				if silence := r.stream.Silence(); silence < 24*time.Hour {
					t.Errorf("the lease is %s old", silence)
				}
				if n := r.server.open.Load(); n != 0 {
					t.Errorf("%d connections are open after Run", n)
				}
			}, c.prepare)
		})
	}
}

// A look that found the old walsender gone says nothing about the new one.
func TestALookForTheOldWalsenderDoesNotEndTheHold(t *testing.T) {
	inFakeTime(t, func(r *running) {
		now := time.Now()
		p := &prober{timeout: time.Minute, last: now, results: make(chan probeResult, 1), running: true}
		p.again(nil, now)
		for began, want := range map[time.Time]error{now.Add(-time.Second): nil, now: ErrSlotTaken} {
			p.results <- probeResult{began: began, err: ErrSlotTaken}
			if err := p.judge(r.stream, now); !errors.Is(err, want) {
				t.Errorf("a look from %s after: %v, want %v", began.Sub(now), err, want)
			}
		}
	})
}

func TestTheDeliveryBeforeAnUnreadableTextIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		look  lookResult
		limit time.Duration
		check func(*testing.T, error)
	}{
		"Kafka is slow":              {lookAlive, unreadableLimit, wantReason(RowUnreadable)},
		"the server shuts down, too": {lookResult{refused: fatal("57P03")}, withheldLimit + probeInterval + serverStopLimit, wantError(ErrServerStopping)},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(r *running) {
				r.discard()
				r.refused(transaction(0x2000, "good")...)
				<-r.server.again
				r.server.looksAre(func() lookResult { return c.look })
				began := time.Now()
				c.check(t, r.end())
				if took := time.Since(began); took > c.limit+finishLimit {
					t.Errorf("took %s", took)
				}
				wantFlush(t, r.server.held.last(), slotConfirmed)
			})
		})
	}
}

func TestWhatIsCutFromABatchIsNotCounted(t *testing.T) {
	whole := &Batch{}
	decoder := NewDecoder(classes{})
	for _, p := range transaction(0x2000, "a", "b") {
		if err := decoder.Decode(0x2000, p[25:], whole); err != nil {
			t.Fatal(err)
		}
	}
	want, events := whole.tally(), len(whole.Events)
	whole.cut()
	if whole.tally() != want || len(whole.Events) != events {
		t.Error("a transaction that has ended was cut")
	}
	for _, p := range transaction(0x3000, "c", "d")[:4] {
		if err := decoder.Decode(0x3000, p[25:], whole); err != nil {
			t.Fatal(err)
		}
	}
	whole.cut()
	if whole.tally() != want || len(whole.Events) != events {
		t.Errorf("%s, %+v; want the first transaction, %+v", kinds(whole.Events), whole.tally(), want)
	}
}

func TestACancelledContextEndsTakingTheSlotAgain(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.server.looksAre(func() lookResult { return lookResult{hangs: true} })
		r.refused(transaction(0x2000, "good")...)
		r.sleep(time.Second)
		began := time.Now()
		r.cancel(errTestCancelled)
		if err := r.end(); err == nil || time.Since(began) > time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if b := r.take(); b != nil {
			t.Errorf("events %s", kinds(b.Events))
		}
	})
}
