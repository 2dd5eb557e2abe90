package pipeline

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pglogrepl"
	"go.uber.org/goleak"

	"github.com/cdcpub/cdcpub/checkpoint"
	"github.com/cdcpub/cdcpub/wal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConfirming(t *testing.T) {
	bubble(t, "a transaction only after its last record is acknowledged", func(t *testing.T) {
		r := start(t, wide, nil)
		var h history
		h.transaction("a", "b", "c")
		r.take(h.batch())
		for p := range fakePartitions {
			if len(r.confirmed) != 0 {
				t.Fatalf("confirmed %v with records outstanding", r.confirmed)
			}
			r.ack(p, 10)
		}
		if r.newest() != h.lsn {
			t.Errorf("confirmed %v, want %s", r.confirmed, h.lsn)
		}
		close(r.batches)
		if err := r.ended(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "an open transaction is never confirmed, nor taken for ended", func(t *testing.T) {
		r := start(t, wide, nil)
		var h history
		h.begin()
		h.row("a", 1)
		r.take(h.batch())
		r.ackAll()
		close(r.batches)
		if err := r.ended(); err != nil || len(r.confirmed) != 0 {
			t.Errorf("ended with %v, confirmed %v", err, r.confirmed)
		}
	})
	bubble(t, "the keepalives of a quiet outbox at once", func(t *testing.T) {
		r := start(t, wide, nil)
		var h history
		h.keepalive()
		r.take(h.batch())
		if r.newest() != h.lsn {
			t.Errorf("confirmed %v, want %s", r.confirmed, h.lsn)
		}
		close(r.batches)
		_ = r.ended()
	})
	bubble(t, "the end of the stream waits for what is outstanding", func(t *testing.T) {
		r := start(t, wide, nil)
		var h history
		h.transaction("a")
		r.take(h.batch())
		close(r.batches)
		synctest.Wait()
		if !r.running() {
			t.Fatal("ended before the acknowledgement")
		}
		r.ackAll()
		if err := r.ended(); err != nil || r.newest() != h.lsn {
			t.Errorf("ended with %v, confirmed %v", err, r.confirmed)
		}
	})
}

func TestFullWindowTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, checkpoint.Limits{Records: 2, Bytes: 1 << 20}, nil)
		var h history
		h.transaction("a", "a", "a", "a", "a")
		r.take(h.batch())
		for sent := 2; sent <= 5; sent++ {
			if len(r.producer.sent) != sent {
				t.Fatalf("%d records sent, want %d", len(r.producer.sent), sent)
			}
			if full := r.pipeline.Status().Full; full != (sent < 5) {
				t.Errorf("full: %v with %d of 5 sent", full, sent)
			}
			if taken := r.offer(&wal.Batch{}); taken != (sent == 5) {
				t.Errorf("a batch was taken: %v with %d of 5 sent", taken, sent)
			}
			r.ack(partitionOf([]byte("a")), 1)
		}
		r.ackAll()
		close(r.batches)
		if err := r.ended(); err != nil || r.newest() != h.lsn {
			t.Errorf("ended with %v, confirmed %v", err, r.confirmed)
		}
	})
}

func TestRecordLargerThanTheWindowPassesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, checkpoint.Limits{Records: 10, Bytes: 4000}, nil)
		var h history
		h.begin()
		h.row("a", 10)
		h.row("a", 100_000)
		h.row("a", 10)
		h.commit()
		r.take(h.batch())
		for sent := 1; sent <= 3; sent++ {
			if len(r.producer.sent) != sent {
				t.Fatalf("%d records sent, want %d", len(r.producer.sent), sent)
			}
			r.ackAll()
		}
		close(r.batches)
		if err := r.ended(); err != nil || r.newest() != h.lsn {
			t.Errorf("ended with %v, confirmed %v", err, r.confirmed)
		}
	})
}

// A column that no record carries is in memory with the row all the same.
func TestColumnsThatAreNotPublishedCountForTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, checkpoint.Limits{Records: 10, Bytes: 10_000}, nil)
		var h history
		h.begin()
		for range 3 {
			h.row("a", 10)
		}
		h.commit()
		batch := h.batch()
		for i := range batch.Events {
			if e := &batch.Events[i]; e.Kind == wal.Insert {
				e.Row.Values = append(e.Row.Values, make([]byte, 6000))
			}
		}
		r.take(batch)
		for sent := 1; sent <= 3; sent++ {
			if len(r.producer.sent) != sent {
				t.Fatalf("%d records sent, want %d", len(r.producer.sent), sent)
			}
			r.ackAll()
		}
	})
}

func TestUnpublishableRow(t *testing.T) {
	var before pglogrepl.LSN
	blocked := func() *wal.Batch {
		var h history
		h.transaction("a", "b")
		h.keepalive()
		before = h.lsn
		h.begin()
		h.row("a", 1)
		h.insert(poison, "a", 1)
		h.row("a", 1)
		h.commit()
		h.transaction("c")
		return h.batch()
	}
	check := func(t *testing.T, err error) *UnpublishableError {
		t.Helper()
		var e *UnpublishableError
		if !errors.As(err, &e) || !errors.Is(err, errUnroutable) {
			t.Fatalf("ended with %v", err)
		}
		if e.Position.Ordinal != 1 || e.Table != relation || e.Position.CommitLSN <= before {
			t.Errorf("names %+v", e)
		}
		return e
	}
	bubble(t, "what lies before it is delivered and confirmed, nothing behind it is sent", func(t *testing.T) {
		r := start(t, wide, nil)
		r.take(blocked())
		if len(r.producer.sent) != 3 {
			t.Errorf("%d records sent, want 3", len(r.producer.sent))
		}
		if r.offer(&wal.Batch{}) {
			t.Error("took a batch")
		}
		r.ackAll()
		check(t, r.ended())
		if r.newest() != before {
			t.Errorf("confirmed %v, want %s", r.confirmed, before)
		}
	})
	bubble(t, "what was read before it is confirmed although nothing is outstanding", func(t *testing.T) {
		r := start(t, wide, nil)
		var h history
		h.keepalive()
		before = h.lsn
		h.begin()
		h.row("a", 1)
		h.events = h.events[:len(h.events)-1]
		h.insert(poison, "a", 1)
		r.take(h.batch())
		var e *UnpublishableError
		if err := r.ended(); !errors.As(err, &e) || r.newest() != before {
			t.Errorf("ended with %v, confirmed %v, want %s", err, r.confirmed, before)
		}
	})
	bubble(t, "the wait for what lies before it is bounded", func(t *testing.T) {
		r := start(t, wide, nil)
		began := time.Now()
		r.take(blocked())
		check(t, r.ended())
		if took := time.Since(began); took != failureDrain {
			t.Errorf("took %s, want %s", took, failureDrain)
		}
		if len(r.confirmed) != 0 {
			t.Errorf("confirmed %v", r.confirmed)
		}
	})
	bubble(t, "a later session does not send the rows of its transaction again", func(t *testing.T) {
		r := start(t, wide, nil)
		r.take(blocked())
		r.ackAll()
		known := check(t, r.ended())
		r = start(t, wide, func(c *Config) { c.Known = known })
		r.take(blocked())
		if len(r.producer.sent) != 2 {
			t.Errorf("%d records sent, want 2", len(r.producer.sent))
		}
		r.ackAll()
		if again := check(t, r.ended()); again != known || r.newest() != before {
			t.Errorf("ended with %v, confirmed %v, want %s", again, r.confirmed, before)
		}
	})
	bubble(t, "the error names it and what it means", func(t *testing.T) {
		r := start(t, wide, nil)
		r.take(blocked())
		r.ackAll()
		text := check(t, r.ended()).Error()
		for _, part := range []string{"row 2 of", errUnroutable.Error(), "nothing behind the row is sent"} {
			if !strings.Contains(text, part) {
				t.Errorf("does not say %q: %s", part, text)
			}
		}
	})
}

func TestEndsWithTheProducersError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, wide, nil)
		var h history
		h.transaction("a")
		r.take(h.batch())
		r.producer.fail()
		if err := r.ended(); !errors.Is(err, errProducer) || len(r.confirmed) != 0 {
			t.Errorf("ended with %v, confirmed %v", err, r.confirmed)
		}
	})
}

// What makes no sense ends the pipeline: confirming on could lose rows.
func TestImpossibleStreams(t *testing.T) {
	for name, events := range map[string][]wal.Event{
		"a row outside a transaction":         {{Kind: wal.Insert, Row: wal.Row{Relation: relation, Values: [][]byte{[]byte("1"), []byte("a"), nil}}}},
		"a commit outside a transaction":      {{Kind: wal.Commit, LSN: 100}},
		"a transaction within another":        {{Kind: wal.Begin, LSN: 100}, {Kind: wal.Begin, LSN: 200}},
		"a transaction that ends in the past": {{Kind: wal.Keepalive, LSN: 300}, {Kind: wal.Begin, LSN: 100}, {Kind: wal.Commit, LSN: 200}},
		"an event of no known kind":           {{}},
	} {
		bubble(t, name, func(t *testing.T) {
			r := start(t, wide, nil)
			r.take(&wal.Batch{Events: events})
			if err := r.ended(); err == nil {
				t.Error("went on")
			}
		})
	}
	bubble(t, "an acknowledgement of what was never sent", func(t *testing.T) {
		r := start(t, wide, nil)
		r.producer.results <- Result{Acked: []uint64{0}}
		if err := r.ended(); err == nil {
			t.Error("went on")
		}
	})
}
