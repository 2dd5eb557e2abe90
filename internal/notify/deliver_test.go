package notify

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/cdcpub/cdcpub/slotmon"
)

func TestAlertsReachEverySinkAtOnceAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &recorder{name: "a"}, &recorder{name: "b"}
		d := Start(zap.NewNop(), a, b)
		began := time.Now()
		first, second := raised("s", slotmon.RetainedWAL, slotmon.Warning), raised("t", slotmon.SlotLost, slotmon.Critical)
		d.Changed([]slotmon.Alert{first, second})
		synctest.Wait()
		ended := resolved(first)
		d.Changed([]slotmon.Alert{ended})
		d.Changed(nil)
		synctest.Wait()
		for _, sink := range []*recorder{a, b} {
			if got, want := sink.got(), []slotmon.Alert{first, second, ended}; !slices.Equal(got, want) {
				t.Errorf("%s got %v, want %v", sink.name, got, want)
			}
		}
		if time.Since(began) != 0 {
			t.Errorf("delivery took %s", time.Since(began))
		}
		closeNow(t, d)
	})
}

func TestAFailedDeliveryIsTriedAgainUntilItWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &recorder{name: "a", fail: down}
		d := Start(zap.NewNop(), sink)
		d.Changed([]slotmon.Alert{raised("s", slotmon.RetainedWAL, slotmon.Warning)})
		time.Sleep(time.Hour)
		tries := sink.tried()
		for i := 1; i < len(tries); i++ {
			pause := tries[i].Sub(tries[i-1])
			if pause < firstPause/2 || pause > longestPause*3/2 {
				t.Errorf("pause %d was %s", i, pause)
			}
			if i > 8 && pause < longestPause/2 {
				t.Errorf("pause %d was only %s", i, pause)
			}
		}
		if n := len(tries); n < 80 || n > 250 {
			t.Errorf("%d tries in an hour", n)
		}
		status := d.Status()[0]
		if status.Failed != len(tries) || status.Sent != 0 || status.Waiting != 1 || status.LastError != "down" {
			t.Errorf("status while it fails: %+v", status)
		}
		sink.set(false, nil)
		time.Sleep(time.Minute)
		status = d.Status()[0]
		if len(sink.got()) != 1 || status.Sent != 1 || status.Waiting != 0 || status.LastError != "" || status.LastSent.IsZero() {
			t.Errorf("status afterwards: %+v", status)
		}
		closeNow(t, d)
	})
}

func TestPausesBeginAgainAfterADeliveryThatWorked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &recorder{name: "a", fail: down}
		d := Start(zap.NewNop(), sink)
		d.Changed([]slotmon.Alert{raised("s", slotmon.RetainedWAL, slotmon.Warning)})
		time.Sleep(time.Hour)
		sink.set(false, nil)
		time.Sleep(time.Minute)
		sink.set(false, down)
		before := len(sink.tried())
		d.Changed([]slotmon.Alert{raised("t", slotmon.RetainedWAL, slotmon.Warning)})
		time.Sleep(firstPause * 3 / 2)
		synctest.Wait()
		if n := len(sink.tried()) - before; n < 2 {
			t.Errorf("%d tries within the longest first pause", n)
		}
		sink.set(false, nil)
		closeNow(t, d)
	})
}

func TestOnlyTheNewestStateIsSentAndAlwaysIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &recorder{name: "a", fail: down}
		d := Start(zap.NewNop(), sink)
		warning := raised("s", slotmon.RetainedWAL, slotmon.Warning)
		critical := raised("s", slotmon.RetainedWAL, slotmon.Critical)
		other := raised("t", slotmon.RetainedWAL, slotmon.Warning)
		d.Changed([]slotmon.Alert{warning, other})
		synctest.Wait()
		d.Changed([]slotmon.Alert{critical})
		synctest.Wait()
		ended := resolved(critical)
		d.Changed([]slotmon.Alert{ended})
		synctest.Wait()
		sink.set(false, nil)
		time.Sleep(time.Minute)
		if got, want := sink.got(), []slotmon.Alert{other, ended}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		closeNow(t, d)
	})
}

func TestAStateThatComesDuringADeliveryIsSentAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered, goOn := make(chan struct{}, 2), make(chan struct{}, 2)
		sink := &recorder{name: "a", fail: func([]slotmon.Alert) error {
			entered <- struct{}{}
			<-goOn
			return nil
		}}
		d := Start(zap.NewNop(), sink)
		first := raised("s", slotmon.RetainedWAL, slotmon.Warning)
		d.Changed([]slotmon.Alert{first})
		<-entered
		ended := resolved(first)
		d.Changed([]slotmon.Alert{ended})
		goOn <- struct{}{}
		<-entered
		goOn <- struct{}{}
		synctest.Wait()
		if got, want := sink.got(), []slotmon.Alert{first, ended}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		closeNow(t, d)
	})
}

func TestASinkThatFailsOrHangsDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing, hanging, good := &recorder{name: "failing", fail: down}, &recorder{name: "hanging", hang: true}, &recorder{name: "good"}
		d := Start(zap.NewNop(), failing, hanging, good)
		for i := range 20 {
			began := time.Now()
			d.Changed([]slotmon.Alert{raised(fmt.Sprint("s", i), slotmon.SlotInactive, slotmon.Warning)})
			if time.Since(began) != 0 {
				t.Fatalf("Changed blocked for %s", time.Since(began))
			}
			synctest.Wait()
			if got := len(good.got()); got != i+1 {
				t.Fatalf("%d alerts have arrived of %d", got, i+1)
			}
		}
		time.Sleep(sendTimeout)
		synctest.Wait()
		if s := d.Status()[1]; s.Failed != 1 || s.LastError != context.DeadlineExceeded.Error() {
			t.Errorf("after %s: %+v", sendTimeout, s)
		}
		failing.set(false, nil)
		hanging.set(false, nil)
		closeNow(t, d)
		if len(failing.got()) != 20 || len(hanging.got()) != 20 {
			t.Errorf("%d and %d alerts have arrived of 20", len(failing.got()), len(hanging.got()))
		}
	})
}

func TestRaisedAlertsAreRepeatedToThoseWhoWantIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again, once := &repeater{recorder{name: "again", repeat: time.Minute}}, &recorder{name: "once"}
		d := Start(zap.NewNop(), again, once)
		a, b := raised("a", slotmon.RetainedWAL, slotmon.Warning), raised("b", slotmon.RetainedWAL, slotmon.Warning)
		d.Changed([]slotmon.Alert{a, b})
		time.Sleep(150 * time.Second)
		ended := resolved(b)
		d.Changed([]slotmon.Alert{ended})
		time.Sleep(time.Minute)
		got := map[string]int{}
		for _, alert := range again.got() {
			got[alert.Slot+" "+statusOf(&alert)]++
		}
		if got["a raised"] != 4 || got["b raised"] != 3 || got["b resolved"] != 1 {
			t.Errorf("got %v", got)
		}
		if want := []slotmon.Alert{a, b, ended}; !slices.Equal(once.got(), want) {
			t.Errorf("without repetition got %v, want %v", once.got(), want)
		}
		if w := d.Status()[0].Waiting; w != 0 {
			t.Errorf("%d alerts wait", w)
		}
		closeNow(t, d)
	})
}

func TestOneAlertThatIsRefusedDoesNotKeepTheOthersBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := func(alerts []slotmon.Alert) error {
			if slices.ContainsFunc(alerts, func(a slotmon.Alert) bool { return a.Slot == "bad" }) {
				return &ResponseError{StatusCode: 400}
			}
			return nil
		}
		sink := &recorder{name: "a", fail: refuse}
		d := Start(zap.NewNop(), sink)
		bad := raised("bad", slotmon.RetainedWAL, slotmon.Warning)
		alerts := []slotmon.Alert{bad}
		for i := range 10 {
			alerts = append(alerts, raised(fmt.Sprint("s", i), slotmon.RetainedWAL, slotmon.Warning))
		}
		d.Changed(alerts)
		time.Sleep(10 * time.Second)
		if got := sink.got(); !slices.Equal(got, alerts[1:]) {
			t.Errorf("%d alerts have arrived of 10", len(got))
		}
		if s := d.Status()[0]; s.Waiting != 1 || s.LastError != "answered 400 Bad Request" {
			t.Errorf("status: %+v", s)
		}
		sink.set(false, nil)
		time.Sleep(time.Minute)
		if got := sink.got(); got[len(got)-1] != bad {
			t.Error("the refused alert was given up")
		}
		closeNow(t, d)
	})
}

func TestTheQueueIsBoundedAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.ErrorLevel)
		sink := &recorder{name: "a", fail: down}
		d := Start(zap.New(core), sink)
		for i := range maxAlerts + 3 {
			d.Changed([]slotmon.Alert{raised(fmt.Sprint("s", i), slotmon.RetainedWAL, slotmon.Warning)})
		}
		d.Changed([]slotmon.Alert{resolved(raised("s0", slotmon.RetainedWAL, slotmon.Warning))})
		if s := d.Status()[0]; s.Waiting != maxAlerts || s.Dropped != 3 {
			t.Errorf("status: %+v", s)
		}
		if logs.Len() != 1 {
			t.Errorf("%d log lines", logs.Len())
		}
		sink.set(false, nil)
		time.Sleep(time.Minute)
		if got := sink.got(); len(got) != maxAlerts || got[maxAlerts-1].Slot != "s0" {
			t.Errorf("%d alerts have arrived of %d", len(got), maxAlerts)
		}
		for _, batch := range sink.batches {
			if len(batch) > batchSize {
				t.Errorf("%d alerts in one delivery", len(batch))
			}
		}
		closeNow(t, d)
	})
}

func TestCloseTriesOnceMoreAndSaysWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back, gone := &recorder{name: "back", fail: down}, &recorder{name: "gone", fail: down}
		d := Start(zap.NewNop(), back, gone)
		a, b := raised("a", slotmon.RetainedWAL, slotmon.Warning), raised("b", slotmon.RetainedWAL, slotmon.Warning)
		d.Changed([]slotmon.Alert{a})
		synctest.Wait()
		back.set(false, nil)
		d.Changed([]slotmon.Alert{b})
		began := time.Now()
		err := d.Close(t.Context())
		if want := "alert sink gone: 2 alerts were not delivered: down"; err == nil || err.Error() != want {
			t.Errorf("Close() = %v, want %s", err, want)
		}
		if time.Since(began) != 0 {
			t.Errorf("Close took %s", time.Since(began))
		}
		if got, want := back.got(), []slotmon.Alert{a, b}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if n := len(gone.tried()); n != 2 {
			t.Errorf("%d tries, want the first and the last", n)
		}
		d.Changed([]slotmon.Alert{a})
	})
}

func TestCloseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := Start(zap.NewNop(), &recorder{name: "a", hang: true})
		d.Changed([]slotmon.Alert{raised("a", slotmon.RetainedWAL, slotmon.Warning)})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		if err := d.Close(ctx); err == nil || time.Since(began) != 2*time.Second {
			t.Errorf("Close() = %v after %s", err, time.Since(began))
		}
	})
}

func TestAFailingSinkIsLoggedOnceAndWhenItWorksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.InfoLevel)
		sink := &recorder{name: "a", fail: down}
		d := Start(zap.New(core), sink)
		d.Changed([]slotmon.Alert{raised("a", slotmon.RetainedWAL, slotmon.Warning)})
		time.Sleep(time.Hour)
		sink.set(false, nil)
		time.Sleep(time.Minute)
		closeNow(t, d)
		var got []string
		for _, line := range logs.All() {
			got = append(got, fmt.Sprint(line.Level, " ", line.ContextMap()["event"], " ", line.ContextMap()["sink"], " ", line.ContextMap()["error"]))
		}
		if want := []string{"warn alert_sink a down", "info alert_sink a <nil>"}; !slices.Equal(got, want) {
			t.Errorf("log:\n%s", strings.Join(got, "\n"))
		}
	})
}

func TestNamesOfSinksAreUnique(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := Start(zap.NewNop(), &recorder{name: "a"}, &recorder{name: "b"}, &recorder{name: "a"})
		var names []string
		for _, s := range d.Status() {
			names = append(names, s.Name)
		}
		if want := []string{"a", "b", "a (2)"}; !slices.Equal(names, want) {
			t.Errorf("names = %q, want %q", names, want)
		}
		closeNow(t, d)
	})
}
