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

// running is a Stream whose Run works against a fakeServer in fake time.
type running struct {
	t      *testing.T
	server *fakeServer
	sender *walsender
	stream *Stream
	out    chan *Batch
	done   chan error
	cancel context.CancelCauseFunc
	began  time.Time
}

// inFakeTime opens a stream, runs it and calls test. When test is over the
// stream is cancelled, and every goroutine of it must end, or synctest fails.
func inFakeTime(t *testing.T, test func(*running), prepare ...func(*fakeServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer(t)
		for _, p := range prepare {
			p(server)
		}
		stream, err := Open(context.Background(), server.config())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		r := &running{t: t, server: server, stream: stream, out: make(chan *Batch), done: make(chan error, 1), cancel: cancel, began: time.Now()}
		<-server.started
		r.sender = server.stream
		go func() { r.done <- stream.Run(ctx, r.out) }()
		synctest.Wait()
		defer func() {
			cancel(errors.New("test is over"))
			<-r.sender.gone
			server.closed.Wait()
		}()
		test(r)
	})
}

// take returns the next batch, nil when the channel was closed.
func (r *running) take() *Batch {
	r.t.Helper()
	select {
	case b := <-r.out:
		return b
	case <-time.After(time.Hour):
		r.t.Fatal("no batch within an hour")
	}
	return nil
}

// events takes batches until n events came, and releases them.
func (r *running) events(n int) []Event {
	r.t.Helper()
	var all []Event
	for len(all) < n {
		b := r.take()
		if b == nil {
			r.t.Fatalf("the channel was closed after %d of %d events", len(all), n)
		}
		for _, e := range b.Events {
			e.Row.Values = append([][]byte(nil), e.Row.Values...)
			all = append(all, e)
		}
		b.Release()
	}
	return all
}

// send sends in the background: the client may not read at once.
func (r *running) send(payloads ...[]byte) {
	go r.sender.send(payloads...)
	synctest.Wait()
}

// end waits for Run's result.
func (r *running) end() error {
	r.t.Helper()
	select {
	case err := <-r.done:
		return err
	case <-time.After(time.Hour):
		r.t.Fatal("Run did not end within an hour")
	}
	return nil
}

func (r *running) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// follow confirms every commit and keepalive at once, as an idle pipeline does.
func (r *running) follow() {
	go func() {
		for b := range r.out {
			for _, e := range b.Events {
				if e.Kind == Commit || e.Kind == Keepalive {
					r.stream.Confirm(e.LSN)
				}
			}
			b.Release()
		}
	}()
}

// discard takes everything and confirms nothing.
func (r *running) discard() {
	go func() {
		for b := range r.out {
			b.Release()
		}
	}()
}

func kinds(events []Event) string {
	s := ""
	for _, e := range events {
		s += map[Kind]string{Begin: "B", Insert: "I", Commit: "C", Keepalive: "k"}[e.Kind]
	}
	return s
}

func wantFlush(t *testing.T, got status, want pglogrepl.LSN) {
	t.Helper()
	if got.flush != want || got.apply != want {
		t.Errorf("flush %s, apply %s; want %s", got.flush, got.apply, want)
	}
}

func copyDataFrame(payload []byte) []byte {
	framed, _ := (&pgproto3.CopyData{Data: payload}).Encode(nil)
	return framed
}
