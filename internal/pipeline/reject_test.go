package pipeline

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/cdcpub/cdcpub/wal"
)

func TestRejectedRecord(t *testing.T) {
	a, other := partitionOf([]byte("a")), ""
	for _, key := range []string{"b", "c", "d", "e"} {
		if partitionOf([]byte(key)) != a {
			other = key
			break
		}
	}
	b := partitionOf([]byte(other))
	two := func() (*wal.Batch, pglogrepl.LSN) {
		var h history
		h.transaction("a", other)
		return h.batch(), h.lsn
	}
	bubble(t, "nothing is taken until it is accepted", func(t *testing.T) {
		r := start(t, wide, nil)
		batch, end := two()
		r.take(batch)
		r.reject(a)
		r.ack(b, 1)
		if r.offer(&wal.Batch{}) || len(r.confirmed) != 0 || r.pipeline.Status().Rejected == nil {
			t.Errorf("goes on: confirmed %v", r.confirmed)
		}
		r.ack(a, 1)
		if r.newest() != end || r.pipeline.Status().Rejected != nil {
			t.Errorf("does not go on after the cure: confirmed %v", r.confirmed)
		}
		r.take(&wal.Batch{})
		close(r.batches)
		if err := r.ended(); err != nil {
			t.Error(err)
		}
		if len(r.rejected) != 2 || r.rejected[0].Rejection.Partition != int32(a) || r.rejected[1] != nil {
			t.Errorf("reported %v", r.rejected)
		}
	})
	bubble(t, "it is reported once a minute", func(t *testing.T) {
		r := start(t, wide, nil)
		pass(45 * time.Second)
		batch, _ := two()
		r.take(batch)
		r.reject(a)
		pass(10*time.Minute + time.Second)
		if n := len(r.rejected); n < 10 || n > 11 {
			t.Errorf("reported %d times in ten minutes", n)
		}
		r.ackAll()
		reports := len(r.rejected)
		if r.rejected[reports-1] != nil {
			t.Error("the cure was not reported")
		}
		pass(5 * time.Minute)
		if len(r.rejected) != reports {
			t.Error("reported after the cure")
		}
		close(r.batches)
		_ = r.ended()
	})
	bubble(t, "two at once: the cure of one is not the cure of both", func(t *testing.T) {
		r := start(t, wide, nil)
		batch, end := two()
		r.take(batch)
		r.reject(a)
		r.reject(b)
		if first := r.pipeline.Status().Rejected; first.Rejection.Partition != int32(a) {
			t.Errorf("shows partition %d, not the oldest", first.Rejection.Partition)
		}
		r.ack(b, 1)
		if r.offer(&wal.Batch{}) || r.pipeline.Status().Rejected == nil {
			t.Error("goes on while a record is rejected")
		}
		if slices.Contains(r.rejected, nil) {
			t.Error("reported a cure")
		}
		r.ack(a, 1)
		if r.newest() != end || r.rejected[len(r.rejected)-1] != nil {
			t.Errorf("does not go on: confirmed %v, reported %v", r.confirmed, r.rejected)
		}
		close(r.batches)
		_ = r.ended()
	})
	bubble(t, "with on_stop: exit it ends the pipeline, after what lies before it", func(t *testing.T) {
		r := start(t, wide, func(c *Config) { c.StayOnRejection = false })
		var h history
		h.transaction(other)
		before := h.lsn
		h.transaction("a")
		r.take(h.batch())
		r.reject(a)
		if !r.running() {
			t.Fatal("ended at once")
		}
		r.ack(b, 1)
		var e *RejectedError
		if err := r.ended(); !errors.As(err, &e) || r.newest() != before {
			t.Errorf("ended with %v, confirmed %v, want %s", err, r.confirmed, before)
		}
	})
	bubble(t, "it does not hide a row that cannot be published", func(t *testing.T) {
		r := start(t, wide, func(c *Config) { c.StayOnRejection = false })
		var h history
		h.begin()
		h.row("a", 1)
		h.insert(poison, "a", 1)
		r.take(h.batch())
		r.reject(a)
		var e *UnpublishableError
		if err := r.ended(); !errors.As(err, &e) {
			t.Errorf("ended with %v", err)
		}
	})
	bubble(t, "a shutdown ends the wait", func(t *testing.T) {
		r := start(t, wide, nil)
		batch, _ := two()
		r.take(batch)
		r.reject(a)
		close(r.batches)
		synctest.Wait()
		if !r.running() {
			t.Fatal("ended although a record is not delivered")
		}
		cause := errors.New("the time for shutting down is over")
		r.cancel(cause)
		if err := r.ended(); !errors.Is(err, cause) {
			t.Errorf("ended with %v", err)
		}
	})
}
