package pipeline

import (
	"testing"
	"time"
)

func TestMessagesCarryTheCommitTimeOfTheirTransaction(t *testing.T) {
	bubble(t, "also of one that comes in two batches", func(t *testing.T) {
		r := start(t, wide, nil)
		var first, rest history
		first.begin()
		first.row("a", 1)
		committed := first.events[0].CommitTime.UnixMicro()
		rest.lsn, rest.rows = first.lsn, first.rows
		rest.row("b", 1)
		rest.commit()
		rest.transaction("c")
		later := rest.events[2].CommitTime.UnixMicro()
		r.take(first.batch())
		r.take(rest.batch())
		for i, want := range []int64{committed, committed, later} {
			if got := r.producer.sent[i].Committed; got != want {
				t.Errorf("message %d was committed at %d, want %d", i, got, want)
			}
		}
		r.ackAll()
		close(r.batches)
		_ = r.ended()
	})
}

func TestStatusTellsWhenTheLastAcknowledgementCame(t *testing.T) {
	bubble(t, "and keeps it", func(t *testing.T) {
		r := start(t, wide, nil)
		var h history
		h.transaction("a")
		r.take(h.batch())
		if at := r.pipeline.Status().LastAcked; !at.IsZero() {
			t.Errorf("acknowledged at %s, before anything was", at)
		}
		pass(time.Second)
		r.ackAll()
		acked := time.Now()
		pass(time.Minute)
		if at := r.pipeline.Status().LastAcked; !at.Equal(acked) {
			t.Errorf("acknowledged at %s, want %s", at, acked)
		}
		close(r.batches)
		_ = r.ended()
	})
}
