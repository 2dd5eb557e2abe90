package demo

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cdcpub/cdcpub/internal/verify"
)

func arrival(event string) []verify.Record {
	return []verify.Record{{Headers: []verify.Header{{Key: "id", Value: []byte(event)}}}}
}

func TestLatencyIsFromCommitToTheFirstArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		for i, event := range []string{"a", "b", "c"} {
			l.committing(event)
			time.Sleep(time.Duration(i+1) * time.Millisecond)
			l.arrived(arrival(event), time.Now())
			l.arrived(arrival(event), time.Now().Add(time.Hour)) // repeated
		}
		if p50, p99 := l.percentile(50), l.percentile(99); p50 != 2*time.Millisecond || p99 != 3*time.Millisecond {
			t.Errorf("p50 %v, p99 %v, want 2ms and 3ms", p50, p99)
		}
	})
}

func TestWaitEndsWhenEverythingHasArrived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		l.committing("a")
		l.committing("b")
		done := make(chan error, 1)
		go func() { done <- l.wait(t.Context()) }()
		l.arrived(arrival("a"), time.Now())
		synctest.Wait()
		if len(done) > 0 {
			t.Fatal("it ended although b is on its way")
		}
		l.arrived(arrival("b"), time.Now())
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

func TestWaitGivesUpWhenNothingComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		l.committing("a")
		began := time.Now()
		if err := l.wait(t.Context()); err != nil || time.Since(began) != patience || l.awaited() != 1 {
			t.Errorf("%v after %v, %d awaited", err, time.Since(began), l.awaited())
		}
	})
}

func TestWaitEndsWithTheContext(t *testing.T) {
	l := newLedger()
	l.committing("a")
	cause := errors.New("the consumer failed")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := l.wait(ctx); !errors.Is(err, cause) {
		t.Errorf("error %v, want %v", err, cause)
	}
}
