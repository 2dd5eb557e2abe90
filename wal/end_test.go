package wal

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

var errTestCancelled = errors.New("cancelled by the test")

func TestStopReadsOnToTheCommitAndFinishSendsTheLastFlush(t *testing.T) {
	inFakeTime(t, func(r *running) {
		tx := transaction(0x2000, "a", "b")
		r.send(tx[:3]...)
		if got := kinds(r.events(2)); got != "BI" {
			t.Fatalf("events %s", got)
		}
		r.stream.Stop()
		r.sleep(time.Minute)
		select {
		case <-r.done:
			t.Fatal("Run ended within a transaction")
		default:
		}
		r.send(append(tx[3:], transaction(0x4000, "after the stop")...)...)
		if got := kinds(r.events(2)); got != "IC" {
			t.Fatalf("events %s", got)
		}
		if b := r.take(); b != nil {
			t.Fatalf("batch %v after the end of the transaction", b.Events)
		}
		r.sleep(time.Minute) // the pipeline drains
		if silence := r.stream.Silence(); silence > 12*time.Second {
			t.Errorf("the lease is %s old while the pipeline drains", silence)
		}
		r.stream.Confirm(0x2030)
		r.stream.Finish()
		if err := r.end(); err != nil {
			t.Error(err)
		}
		wantFlush(t, r.sender.last(), 0x2030)
		if end := r.sender.ended(); end.IsZero() || end.Before(r.sender.last().at) {
			t.Errorf("CopyDone at %s, last status at %s", end, r.sender.last().at)
		}
	})
}

func TestStopBetweenTransactionsEndsAtOnce(t *testing.T) {
	inFakeTime(t, func(r *running) {
		began := time.Now()
		r.stream.Stop()
		if b := r.take(); b != nil {
			t.Fatalf("batch %v", b.Events)
		}
		r.stream.Finish()
		r.stream.Finish()
		if err := r.end(); err != nil || time.Since(began) > 0 {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

func TestFinishEndsTheStreamInEveryState(t *testing.T) {
	states := map[string]func(*running){
		"idle":                          func(*running) {},
		"within a transaction":          func(r *running) { r.send(transaction(0x2000, "a")[:3]...); r.events(2) },
		"with a batch that nobody took": func(r *running) { r.send(transaction(0x2000, "a")...) },
		"within a message": func(r *running) {
			go r.sender.conn.Write(copyDataFrame(transaction(0x2000, "a")[0])[:20])
			synctest.Wait()
		},
	}
	for name, enter := range states {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(r *running) {
				enter(r)
				r.stream.Confirm(slotConfirmed)
				r.stream.Finish()
				if b := r.take(); b != nil {
					t.Errorf("batch %v after Finish", b.Events)
				}
				err := r.end()
				if name == "within a message" {
					// The other half never comes: the fake walsender is broken here.
					if err == nil {
						t.Error("half a message was taken for an end")
					}
				} else if err != nil {
					t.Error(err)
				}
				wantFlush(t, r.sender.last(), slotConfirmed)
				if r.sender.ended().IsZero() {
					t.Error("no CopyDone")
				}
			})
		})
	}
}

func TestFinishWaitsForTheServerButNotForEver(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.sender.deaf = true
		began := time.Now()
		r.stream.Finish()
		if err := r.end(); err == nil || time.Since(began) != finishLimit {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// An interrupt that was on its way when the end began must not look like a
// server that does not answer.
func TestInterruptsDoNotCutTheEndShort(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.sender.deaf = true
		r.stream.Finish()
		synctest.Wait()
		for range 10 {
			r.stream.Stop()
			r.sleep(100 * time.Millisecond)
		}
		select {
		case err := <-r.done:
			t.Fatal(err)
		default:
		}
		r.sender.answerCopyDone()
		if err := r.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestACancelledContextConfirmsNothingAndEndsNoTransaction(t *testing.T) {
	states := map[string]func(*running){
		"idle":                 func(*running) {},
		"within a transaction": func(r *running) { r.send(transaction(0x2000, "a")[:3]...) },
		"while draining":       func(r *running) { r.stream.Stop(); r.take() },
	}
	for name, enter := range states {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(r *running) {
				enter(r)
				began := time.Now()
				synctest.Wait()
				r.cancel(errTestCancelled)
				if err := r.end(); !errors.Is(err, errTestCancelled) {
					t.Errorf("Run ended with %v", err)
				}
				if b, ok := <-r.out; ok && kinds(b.Events) != "BI" {
					t.Errorf("batch %s after the end of ctx", kinds(b.Events))
				}
				if time.Since(began) > 0 || len(r.sender.seen()) > 0 || !r.sender.ended().IsZero() {
					t.Errorf("after %s: status %v, CopyDone at %v", time.Since(began), r.sender.seen(), r.sender.ended())
				}
			})
		})
	}
}

func TestCancelledBeforeRunEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer(t)
		stream, err := Open(context.Background(), server.config())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errTestCancelled)
		out := make(chan *Batch)
		if err := stream.Run(ctx, out); !errors.Is(err, errTestCancelled) {
			t.Error(err)
		}
		if _, open := <-out; open {
			t.Error("a batch")
		}
		server.closed.Wait()
	})
}

func TestACancelDuringAStatusUpdateIsNotForgotten(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.follow()
		resume := r.sender.pause()
		r.sleep(11 * time.Second) // the listener took one status, Run blocks in the next
		r.cancel(errTestCancelled)
		synctest.Wait()
		began := time.Now()
		resume()
		if err := r.end(); !errors.Is(err, errTestCancelled) || time.Since(began) > 0 {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

func TestAStopDuringAStatusUpdateIsNotForgotten(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.follow()
		resume := r.sender.pause()
		r.sleep(11 * time.Second)
		r.stream.Stop()
		r.stream.Finish()
		synctest.Wait()
		began := time.Now()
		resume()
		if err := r.end(); err != nil || time.Since(began) > 0 {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// A wake-up that comes while the stream is awake must not be lost: whatever
// the interleaving, each call acts without any time passing.
func TestWakeUpsAreNotLost(t *testing.T) {
	for range 300 {
		inFakeTime(t, func(r *running) {
			r.sleep(time.Second)
			began := time.Now()
			go r.stream.Confirm(slotConfirmed)
			go r.send(keepalive(slotConfirmed, false))
			go r.follow()
			go r.cancel(errTestCancelled)
			if err := r.end(); !errors.Is(err, errTestCancelled) || time.Since(began) > 0 {
				t.Fatalf("%v after %s", err, time.Since(began))
			}
			for range r.out {
			}
		})
	}
}
