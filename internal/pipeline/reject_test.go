package pipeline

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/cdcpub/cdcpub/wal"
)

// A codec makes what it cannot compress larger.
func TestTheLimitThatIsNamedLetsTheRecordPass(t *testing.T) {
	for name, c := range map[string]struct {
		size, limit int
		want        string
	}{
		"larger than the limit":                       {1_920_158, 1_048_588, "1920158 bytes before compression where the topic's limit is 1048588): refused for what it is; the LSN stays before it, nothing behind it is sent, and it is tried again every minute: raise max.message.bytes of the topic to 1940383, "},
		"larger than the limit by its codec":          {1_920_158, 1_920_158, "raise max.message.bytes of the topic to 1940383, "},
		"the limit was raised after the last attempt": {1_920_158, 1_940_383, "its limit has been raised meanwhile, so the next attempt should pass"},
		"the limit is not known":                      {1_920_158, 0, "change the topic's limits so that it is accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			e := &RejectedError{Rejection: Rejection{Cause: errRefused, Size: c.size, Limit: c.limit}}
			if !strings.Contains(e.Error(), c.want) {
				t.Errorf("does not say %q: %s", c.want, e.Error())
			}
		})
	}
}

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
	bubble(t, "it is reported after each attempt that failed, and not between", func(t *testing.T) {
		r := start(t, wide, nil)
		pass(45 * time.Second)
		batch, _ := two()
		r.take(batch)
		for limit := range 10 {
			r.producer.refuse(a, 1000+limit)
			synctest.Wait()
			last := r.rejected[len(r.rejected)-1]
			if len(r.rejected) != limit+1 || last.Rejection.Limit != 1000+limit || last.Since != r.rejected[0].Since || r.pipeline.Status().Rejected.Rejection.Limit != 1000+limit {
				t.Fatalf("attempt %d: reported %v", limit+1, r.rejected)
			}
			pass(63 * time.Second)
		}
		r.ackAll()
		if len(r.rejected) != 11 || r.rejected[10] != nil {
			t.Errorf("reported %v", r.rejected)
		}
		close(r.batches)
		if err := r.ended(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "one that is not tried again is reported every other minute", func(t *testing.T) {
		r := start(t, wide, nil)
		pass(45 * time.Second)
		batch, _ := two()
		r.take(batch)
		r.reject(a)
		pass(10*time.Minute + time.Second)
		if n := len(r.rejected); n < 5 || n > 6 {
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
