package pipeline

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/cdcpub/cdcpub/checkpoint"
	"github.com/cdcpub/cdcpub/wal"
)

// rig is a running pipeline in a synctest bubble: between two calls the
// pipeline has done all it can.
type rig struct {
	t        testing.TB
	producer *fakeProducer
	pipeline *Pipeline
	batches  chan *wal.Batch
	cancel   context.CancelCauseFunc
	done     chan struct{}
	err      error

	confirmed []pglogrepl.LSN
	rejected  []*RejectedError // as reported; nil: cured
}

var wide = checkpoint.Limits{Records: 1000, Bytes: 1 << 20}

func start(t testing.TB, window checkpoint.Limits, edit func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, producer: newFakeProducer(window), batches: make(chan *wal.Batch), done: make(chan struct{})}
	config := Config{
		Route: route, Producer: r.producer, Window: window, StayOnRejection: true,
		Confirm:     func(lsn pglogrepl.LSN) { r.confirmed = append(r.confirmed, lsn) },
		OnRejection: func(e *RejectedError) { r.rejected = append(r.rejected, e) },
	}
	if edit != nil {
		edit(&config)
	}
	r.pipeline = New(config)
	ctx, cancel := context.WithCancelCause(context.Background())
	r.cancel = cancel
	t.Cleanup(func() { cancel(errors.New("the test has ended")) })
	go func() {
		defer close(r.done)
		r.err = r.pipeline.Run(ctx, r.batches)
	}()
	synctest.Wait()
	return r
}

// offer hands over a batch if the pipeline takes one now.
func (r *rig) offer(b *wal.Batch) bool {
	select {
	case r.batches <- b:
		synctest.Wait()
		return true
	default:
		return false
	}
}

func (r *rig) take(b *wal.Batch) {
	r.t.Helper()
	if !r.offer(b) {
		r.t.Fatal("the pipeline does not take a batch")
	}
}

func (r *rig) ack(partition, n int) {
	r.producer.ack(partition, n)
	synctest.Wait()
}

func (r *rig) ackAll() {
	for p := range fakePartitions {
		r.ack(p, len(r.producer.partitions[p]))
	}
}

func (r *rig) reject(partition int) {
	r.producer.reject(partition)
	synctest.Wait()
}

func (r *rig) running() bool {
	select {
	case <-r.done:
		return false
	default:
		return true
	}
}

// ended waits for the end of Run, which clock time may bring.
func (r *rig) ended() error {
	r.t.Helper()
	select {
	case <-r.done:
	case <-time.After(time.Hour):
		r.t.Error("Run does not end within an hour")
		r.cancel(errors.New("it was given up"))
		<-r.done
	}
	if len(r.producer.broken) > 0 {
		r.t.Error(errors.Join(r.producer.broken...))
	}
	return r.err
}

func (r *rig) newest() pglogrepl.LSN {
	if len(r.confirmed) == 0 {
		return 0
	}
	return r.confirmed[len(r.confirmed)-1]
}

// pass lets the bubble's clock run.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// bubble runs each case in a bubble of its own, which also fails when a
// goroutine is left.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}
