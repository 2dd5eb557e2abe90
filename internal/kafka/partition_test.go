package kafka

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"pgregory.net/rapid"
)

func testPolicy() policy {
	return policy{
		codec: sarama.CompressionNone, batchBytes: 512 << 10,
		backoffMin: 50 * time.Millisecond, backoffMax: time.Second,
		operatorMax: 10 * time.Second, rejectedWait: time.Minute,
		jitter: func() float64 { return 1 },
	}
}

func filled(n int) *partition {
	p := newPartition(newTopic("orders", nil), 3)
	p.identify(identity{producer: 1})
	for i := range uint64(n) {
		m := message("orders", "key", i)
		p.queue.push(entry{message: m, size: recordSize(&m.Record)})
	}
	return p
}

func mustAssemble(t *testing.T, p *partition, pol *policy) {
	t.Helper()
	if ok, err := p.assemble(new(batch), pol); !ok || err != nil {
		t.Fatalf("no batch: %t %v", ok, err)
	}
}

func TestRetrySendsTheIdenticalBatchWithGrowingPauses(t *testing.T) {
	p, pol, now := filled(5), testPolicy(), time.Unix(1000, 0)
	mustAssemble(t, p, &pol)
	sent := p.batch
	for _, want := range []time.Duration{50, 100, 200, 400, 800, 1000, 1000} {
		m := message("orders", "key", 99)
		p.queue.push(entry{message: m})
		e := p.settle(outcome{rule: classify(sarama.ErrNotEnoughReplicas)}, now, &pol)
		if !e.recheck || p.phase != phaseWaiting || p.batch != sent || sent.count() != 5 || sent.wire.FirstSequence != 0 {
			t.Fatalf("effect %+v, phase %d", e, p.phase)
		}
		if pause := p.until.Sub(now); pause != want*time.Millisecond {
			t.Errorf("pause %v, expected %v", pause, want*time.Millisecond)
		}
	}
	if p.unsure != 0 || !p.stallSince.Equal(now) {
		t.Errorf("unsure %d, stalled since %v", p.unsure, p.stallSince)
	}
	if e := p.settle(outcome{offset: 7}, now, &pol); e.acked != 5 || p.stall != "" || p.next != 5 {
		t.Errorf("effect %+v, stall %q, next %d", e, p.stall, p.next)
	}
}

func TestOperatorClassWaitsLonger(t *testing.T) {
	p, pol, now := filled(1), testPolicy(), time.Unix(1000, 0)
	mustAssemble(t, p, &pol)
	for range 20 {
		p.settle(outcome{rule: classify(sarama.ErrTopicAuthorizationFailed)}, now, &pol)
	}
	if pause := p.until.Sub(now); pause != pol.operatorMax {
		t.Errorf("pause %v", pause)
	}
}

func TestRejectionAfterAnUnsureAttemptMayBePublished(t *testing.T) {
	p, pol, now := filled(1), testPolicy(), time.Unix(1000, 0)
	mustAssemble(t, p, &pol)
	p.settle(outcome{rule: classify(sarama.ErrRequestTimedOut)}, now, &pol)
	e := p.settle(outcome{rule: classify(sarama.ErrInvalidRecord), cause: errors.New("no")}, now, &pol)
	if e.rejection == nil || !e.rejection.MayBePublished || e.rejection.Partition != 3 {
		t.Errorf("rejection %+v", e.rejection)
	}
	if p.phase != phaseWaiting || p.until.Sub(now) != pol.rejectedWait {
		t.Errorf("phase %d until %v", p.phase, p.until)
	}
}

func TestCulpritByIndexCostsThreeRequests(t *testing.T) {
	p, pol, now := filled(100), testPolicy(), time.Unix(1000, 0)
	bad := outcome{rule: classify(sarama.ErrInvalidRecord), cause: errors.New("no")}
	mustAssemble(t, p, &pol)
	withIndex := bad
	withIndex.culprits = []int32{-1, 90, 60, 1000}
	p.settle(withIndex, now, &pol)
	mustAssemble(t, p, &pol)
	if p.batch.count() != 60 || p.batch.wire.FirstSequence != 0 {
		t.Fatalf("%d records in front of the culprit", p.batch.count())
	}
	p.drop(p.settle(outcome{}, now, &pol).acked)
	mustAssemble(t, p, &pol)
	if p.batch.count() != 1 || p.batch.wire.FirstSequence != 60 {
		t.Fatalf("%d records, sequence %d", p.batch.count(), p.batch.wire.FirstSequence)
	}
	if e := p.settle(bad, now, &pol); e.rejection == nil || e.rejection.Message.Seq != 60 {
		t.Errorf("effect %+v", e)
	}
}

func TestLearnedBatchSizeStaysBelowWhatWasRefused(t *testing.T) {
	p, pol, now := filled(2000), testPolicy(), time.Unix(1000, 0)
	const limit = 4000
	refused := 0
	for p.queue.len() > 0 {
		mustAssemble(t, p, &pol)
		if p.batch.size > limit {
			refused++
			if e := p.settle(outcome{rule: classify(sarama.ErrMessageSizeTooLarge)}, now, &pol); e.rejection != nil {
				t.Fatal("a good record was rejected")
			}
			continue
		}
		p.drop(p.settle(outcome{}, now, &pol).acked)
	}
	if refused > 12 {
		t.Errorf("%d refused batches", refused)
	}
}

func TestEndOfTheLogBeforeAnAcknowledgedRecordIsNoticed(t *testing.T) {
	p, pol, now := filled(10), testPolicy(), time.Unix(1000, 0)
	p.suspects = 2 // so that batches have one record
	for i, c := range []struct {
		offset int64
		want   bool
		last   int64
	}{{100, false, 0}, {101, false, 0}, {-1, false, 0}, {101, true, 101}, {50, true, 101}, {51, false, 0}} {
		p.suspects = 2
		mustAssemble(t, p, &pol)
		e := p.settle(outcome{offset: c.offset}, now, &pol)
		if e.truncated != c.want || e.truncated && (e.lostFrom != c.offset || e.lostTo != c.last) {
			t.Errorf("step %d, offset %d: truncated %t, %d to %d", i, c.offset, e.truncated, e.lostFrom, e.lostTo)
		}
		p.drop(e.acked)
	}
}

// fakeLog is a partition's leader as the protocol describes it: it knows the
// newest batches of one producer id and refuses gaps.
type fakeLog struct {
	values   []uint64
	poison   map[uint64]bool
	maxBytes int
	id       identity
	next     int64
	last     [5]struct{ first, count int64 }
}

// append takes a batch and answers as a broker does.
func (l *fakeLog) append(b *batch, q *queue, withIndex bool) outcome {
	answer := func(code sarama.KError) outcome { return outcome{rule: classify(code), offset: -1} }
	if b.size > l.maxBytes {
		return answer(sarama.ErrMessageSizeTooLarge)
	}
	refused := answer(sarama.ErrInvalidRecord)
	for i := range b.count() {
		if l.poison[q.at(i).message.Seq] {
			refused.culprits = append(refused.culprits, int32(i))
		}
	}
	if len(refused.culprits) > 0 {
		if !withIndex {
			refused.culprits = nil
		}
		return refused
	}
	id := identity{b.wire.ProducerID, b.wire.ProducerEpoch}
	first, count := int64(b.wire.FirstSequence), int64(b.count())
	switch {
	case id.producer == l.id.producer && id.epoch < l.id.epoch:
		return answer(sarama.ErrInvalidProducerEpoch)
	case id != l.id && first != 0:
		return answer(sarama.ErrOutOfOrderSequenceNumber)
	case id != l.id:
		l.id, l.next = id, 0
		clear(l.last[:])
	}
	for _, old := range l.last {
		if old.count > 0 && old.first == first && old.count == count {
			return outcome{}
		}
	}
	if first != l.next {
		return answer(sarama.ErrOutOfOrderSequenceNumber)
	}
	for i := range b.count() {
		l.values = append(l.values, q.at(i).message.Seq)
	}
	copy(l.last[1:], l.last[:4])
	l.last[0].first, l.last[0].count = first, count
	l.next += count
	return outcome{}
}

// Whatever happens to the batches, first occurrences are complete and in
// order, only poison is rejected, and nothing is repeated unless its fate was
// unknown when the identity changed.
func TestPartitionKeepsItsPromisesUnderAnyOutcomes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "records")
		p, pol, now := filled(n), testPolicy(), time.Unix(1000, 0)
		log := &fakeLog{
			poison:   map[uint64]bool{},
			maxBytes: rapid.IntRange(200, 5000).Draw(t, "maxBytes"),
			id:       identity{producer: -1},
		}
		for _, bad := range rapid.SliceOfN(rapid.Uint64Range(0, uint64(n)), 0, 4).Draw(t, "poison") {
			log.poison[bad] = true
		}
		var acked, rejected []uint64
		codes := []sarama.KError{-1, 3, 6, 7, 19, 20, 29, 45, 47, 59, 87, 9999}
		renewedUnsure := false
		for step := 0; p.queue.len() > 0; step++ {
			if step > 3000 {
				t.Fatalf("no progress: %d records left", p.queue.len())
			}
			if !p.identified {
				renewedUnsure = renewedUnsure || p.unsure > 0
				if p.renewal == renewID {
					p.identify(identity{producer: p.identity.producer + 1})
				} else {
					p.identify(identity{producer: p.identity.producer, epoch: p.identity.epoch + 1})
				}
			}
			if p.batch == nil {
				if ok, err := p.assemble(new(batch), &pol); !ok || err != nil {
					t.Fatalf("assemble: %t %v", ok, err)
				}
			}
			var o outcome
			switch rapid.IntRange(0, 5).Draw(t, "fate") {
			case 0:
				o = outcome{rule: classify(rapid.SampledFrom(codes).Draw(t, "code"))}
				if o.rule.class == classReject && !anyPoison(log, p) {
					continue
				}
			case 1:
				log.append(p.batch, &p.queue, true)
				o = outcome{rule: classifyError(errors.New("connection lost"))}
			default:
				o = log.append(p.batch, &p.queue, rapid.Bool().Draw(t, "index"))
			}
			now = now.Add(time.Hour)
			e := p.settle(o, now, &pol)
			for i := range e.acked {
				acked = append(acked, p.queue.at(i).message.Seq)
			}
			p.drop(e.acked)
			if e.rejection != nil {
				bad := e.rejection.Message.Seq
				if !log.poison[bad] {
					t.Fatalf("%d was rejected", bad)
				}
				rejected = append(rejected, bad)
				delete(log.poison, bad)
			}
		}
		checkLog(t, log.values, acked, n, renewedUnsure)
		if !slices.IsSorted(rejected) || len(slices.Compact(slices.Clone(rejected))) != len(rejected) {
			t.Fatalf("rejected %v", rejected)
		}
	})
}

func anyPoison(l *fakeLog, p *partition) bool {
	for i := range p.batch.count() {
		if l.poison[p.queue.at(i).message.Seq] {
			return true
		}
	}
	return false
}

func checkLog(t *rapid.T, values, acked []uint64, n int, mayRepeat bool) {
	next := uint64(0)
	for i, v := range values {
		switch {
		case v == next:
			next++
		case v > next:
			t.Fatalf("%d is in the log before %d: %v", v, next, values)
		case !mayRepeat:
			t.Fatalf("%d is in the log again at %d though its fate was known: %v", v, i, values)
		}
	}
	if next != uint64(n) || len(acked) != n {
		t.Fatalf("%d of %d records in the log, %d acknowledged", next, n, len(acked))
	}
	for i, seq := range acked {
		if seq != uint64(i) {
			t.Fatalf("acknowledged %v", acked)
		}
	}
}

func TestBackoffNeverOverflows(t *testing.T) {
	pol := testPolicy()
	for _, n := range []int{1, 20, 21, 63, 64, 1000, math.MaxInt} {
		if d := pol.backoff(n, pol.backoffMax); d <= 0 || d > pol.backoffMax {
			t.Errorf("attempt %d: %v", n, d)
		}
	}
}
