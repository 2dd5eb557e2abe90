package wal

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pglogrepl"
)

func TestFlushIsTheSlotsPositionUntilSomethingIsConfirmed(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.discard()
		r.send(transaction(0x2000, "a")...)
		r.send(keepalive(0x3000, true))
		r.sleep(time.Minute)
		seen := r.sender.seen()
		if len(seen) < 10 {
			t.Fatalf("%d status updates in a minute", len(seen))
		}
		for _, s := range seen {
			wantFlush(t, s, slotConfirmed)
			if s.write != 0x3000 {
				t.Errorf("write %s, want what was received, 0/3000", s.write)
			}
		}
	})
}

func TestConfirmIsSentAtOnceAndNeverMovesBack(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.send(transaction(0x2000, "a")...)
		r.events(3)
		r.sleep(time.Second)
		r.stream.Confirm(0x2030)
		synctest.Wait()
		got := r.sender.last()
		wantFlush(t, got, 0x2030)
		if got.at != time.Now() {
			t.Errorf("sent %s after Confirm", time.Since(got.at))
		}
		r.stream.Confirm(0x1800)
		r.sleep(time.Minute)
		for _, s := range r.sender.seen()[1:] {
			wantFlush(t, s, 0x2030)
		}
	})
}

func TestConfirmsAreCoalescedToTenASecond(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.send(transaction(0x8000, "a")...)
		r.events(3)
		r.sleep(time.Second)
		before := len(r.sender.seen())
		for i := range 5000 {
			r.stream.Confirm(pglogrepl.LSN(0x2000 + i))
			time.Sleep(2 * time.Millisecond)
		}
		r.sleep(time.Second)
		seen := r.sender.seen()[before:]
		if n := len(seen); n < 95 || n > 105 {
			t.Errorf("%d status updates in 10 s of confirming", n)
		}
		for i := 1; i < len(seen); i++ {
			if seen[i].at.Sub(seen[i-1].at) < minStatusInterval || seen[i].flush < seen[i-1].flush {
				t.Fatalf("status %+v after %+v", seen[i], seen[i-1])
			}
		}
		wantFlush(t, r.sender.last(), 0x2000+4999)
	})
}

func TestMoreThanWasReceivedIsNeverConfirmed(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.send(keepalive(0x2000, false))
		r.events(1)
		r.stream.Confirm(0x2001)
		if err := r.end(); err == nil {
			t.Error("Run went on")
		}
		for _, s := range r.sender.seen() {
			if s.flush > 0x2000 {
				t.Errorf("confirmed %s", s.flush)
			}
		}
	})
}

// A later transaction may begin at a lower LSN than an earlier one ended.
func TestTheWritePositionNeverMovesBack(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.discard()
		r.send(transaction(0x5000, "a")...)
		r.send(keepalive(0x5100, true))
		r.send(transaction(0x6000, "began early")[:3]...)
		r.send(xlogData(0x1800, insertMessage(1, text("e"), text("older"))), xlogData(0, relationMessage(2, "app", "orders", "id")), keepalive(0x5050, true))
		r.sleep(time.Minute)
		last := pglogrepl.LSN(0)
		for _, s := range r.sender.seen() {
			if s.write < last {
				t.Errorf("write %s after %s", s.write, last)
			}
			last = s.write
		}
		if last != 0x6000-7 {
			t.Errorf("write %s", last)
		}
	})
}

func TestAReplyIsSentAtOnceWhenAskedFor(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.follow()
		r.sleep(time.Second)
		r.send(keepalive(0x1000, true))
		if got := r.sender.last(); got.at != time.Now() {
			t.Errorf("last status %s ago", time.Since(got.at))
		}
	})
}

// A server that shuts down asks thousands of times a second.
func TestAStormOfRequestsGetsTenRepliesASecond(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.discard()
		r.sleep(time.Second)
		before := len(r.sender.seen())
		for range 10000 {
			r.sender.send(keepalive(0x2000, true))
			time.Sleep(500 * time.Microsecond)
		}
		r.sleep(time.Second)
		if n := len(r.sender.seen()) - before; n < 45 || n > 55 {
			t.Errorf("%d replies to 10000 requests within 5 s", n)
		}
	})
}

func TestAnIdleStreamIsCheapAndAsksTheServerForASign(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.follow()
		r.sender.answerAsks(slotConfirmed)
		before := r.server.reads.Load()
		r.sleep(10 * time.Minute)
		seen := r.sender.seen()
		if n := len(seen); n < 115 || n > 130 {
			t.Errorf("%d status updates in 10 minutes, want one in 5 s", n)
		}
		for _, s := range seen {
			if !s.ask {
				t.Fatal("a status of an idle stream does not ask for a reply")
			}
		}
		if n := r.server.reads.Load() - before; n > 1500 {
			t.Errorf("the socket was read %d times in 10 idle minutes", n)
		}
		if looks := r.server.lookTimes(); len(looks) > 0 {
			t.Errorf("%d looks at a server that answers", len(looks))
		}
	})
}

func TestAKeepaliveInsideATransactionIsNoEvent(t *testing.T) {
	inFakeTime(t, func(r *running) {
		tx := transaction(0x2000, "a", "b")
		r.send(append(append(append([][]byte{}, tx[:3]...), keepalive(0x5000, false)), tx[3:]...)...)
		r.send(keepalive(0x5001, false), keepalive(0x5002, false))
		events := r.events(5)
		if got := kinds(events); got != "BIICk" {
			t.Errorf("events %s", got)
		}
		if last := events[4].LSN; last != 0x5002 {
			t.Errorf("keepalive at %s", last)
		}
	})
}

func TestStatusGoesOnWhileTheReceiverTakesNothing(t *testing.T) {
	inFakeTime(t, func(r *running) {
		const transactions = 300
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for i := range transactions {
				r.sender.send(transaction(pglogrepl.LSN(0x2000+i*0x100), fmt.Sprint("row ", i))...)
			}
		}()
		before := r.server.reads.Load()
		r.sleep(10 * time.Minute)
		select {
		case <-sent:
			t.Error("everything was read although nothing was taken")
		default:
		}
		if n := r.server.reads.Load() - before; n > 3000 {
			t.Errorf("the socket was read %d times", n)
		}
		last := r.began
		for _, s := range r.sender.seen() {
			if gap := s.at.Sub(last); gap > 7500*time.Millisecond {
				t.Errorf("no status for %s with wal_sender_timeout 15 s", gap)
			}
			wantFlush(t, s, slotConfirmed)
			last = s.at
		}
		if n := len(r.sender.seen()); n > 130 {
			t.Errorf("%d status updates in 10 minutes", n)
		}
		if silence := r.stream.Silence(); silence > 6*time.Second {
			t.Errorf("the lease is %s old although every look finds our walsender", silence)
		}
		commits, next := 0, 0
		for _, e := range r.events(3 * transactions) {
			switch e.Kind {
			case Commit:
				commits++
			case Insert:
				if got := string(e.Row.Values[1]); got != fmt.Sprint("row ", next) {
					t.Fatalf("%q where row %d belongs", got, next)
				}
				next++
			}
		}
		if commits != transactions {
			t.Errorf("%d commits", commits)
		}
	})
}

func TestALargeMessageSurvivesTinyReadsAndYields(t *testing.T) {
	inFakeTime(t, func(r *running) {
		value := make([]byte, 5<<20)
		for i := range value {
			value[i] = byte('a' + i%23)
		}
		tx := transaction(0x2000, "small", string(value))
		var wire []byte
		for _, payload := range tx {
			wire = append(wire, copyDataFrame(payload)...)
		}
		go func() {
			for len(wire) > 0 { // a Confirm or a status falls between almost any two reads
				n := min(len(wire), 997)
				_, _ = r.sender.conn.Write(wire[:n])
				wire = wire[n:]
				time.Sleep(3 * time.Millisecond)
			}
		}()
		go func() {
			for i := range 200 {
				time.Sleep(70 * time.Millisecond)
				r.stream.Confirm(pglogrepl.LSN(0x1001 + i))
			}
		}()
		events := r.events(4)
		if got := kinds(events); got != "BIIC" {
			t.Fatalf("events %s", got)
		}
		if string(events[2].Row.Values[1]) != string(value) {
			t.Error("the large value differs")
		}
		r.sleep(15 * time.Second)
	})
}
