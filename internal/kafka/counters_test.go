package kafka

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/cdcpub/cdcpub/internal/pipeline"
	"github.com/cdcpub/cdcpub/router"
)

func TestCountersOutliveSessionsAndCountEachAcknowledgement(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(4, "orders", "carts"))
	client := newTestClient(t, fastConfig(c.ListenAddrs()...))
	want := map[string]Acknowledged{}
	for range 3 {
		s := startSession(t, client, always)
		for topic, n := range map[string]int{"orders": 100, "carts": 7} {
			messages := s.numbered(topic, n, manyKeys(10))
			counted := want[topic]
			for i := range messages {
				r := &messages[i].Record
				counted.Records++
				counted.Bytes += uint64(len(r.Key) + len(r.Value) + len(r.Headers[0].Key) + len(r.Headers[0].Value))
				messages[i].Committed = time.Now().Add(-time.Second).UnixMicro()
				if i%2 == 0 {
					r.OccurredAt = time.Now().Add(-time.Hour).UnixMicro()
				}
			}
			want[topic] = counted
			s.Send(messages)
		}
		s.acks(107)
		s.stop(patience)
	}
	got := client.Counters()
	if !maps.Equal(got.Topics, want) {
		t.Errorf("topics %v, want %v", got.Topics, want)
	}
	if n := got.CommitToAck.Count(); n != 321 {
		t.Errorf("%d records have a time from commit, want 321", n)
	}
	if n := got.OccurredToAck.Count(); n != 162 {
		t.Errorf("%d records have a time from occurred_at, want 162", n)
	}
	if median, _ := got.CommitToAck.Quantile(0.5); median < 1 || median > patience.Seconds() {
		t.Errorf("median from commit %g s, want 1 s and a little", median)
	}
	if median, _ := got.OccurredToAck.Quantile(0.5); median < 900 {
		t.Errorf("median from occurred_at %g s, want an hour", median)
	}
	if want := (map[string]uint64{Transport: 0, OtherErrors: 0}); !maps.Equal(got.Errors, want) {
		t.Errorf("errors %v, want %v", got.Errors, want)
	}
}

func TestAttemptsThatFailAreCountedByCode(t *testing.T) {
	var flaky flakyNet
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"), kfake.ListenFn(flaky.listen))
	client := newTestClient(t, fastConfig(c.ListenAddrs()...))
	s := startSession(t, client, always)
	c.Fault(kfake.Fault{Keys: produceKey, Err: kerr.NotEnoughReplicas, Count: 3})
	s.Send(s.numbered("orders", 10, oneKey))
	s.acks(10)
	flaky.drops.Store(2)
	s.Send(s.numbered("orders", 10, oneKey))
	s.acks(20)
	got := client.Counters()
	want := map[string]uint64{"NOT_ENOUGH_REPLICAS": 3, Transport: 2, OtherErrors: 0}
	if !maps.Equal(got.Errors, want) {
		t.Errorf("errors %v, want %v", got.Errors, want)
	}
	if got.Topics["orders"].Records != 20 {
		t.Errorf("%+v, want each record once whatever it took", got.Topics)
	}
}

func TestNamesOfFailures(t *testing.T) {
	rejected := sarama.PacketEncodingError{Info: "too large"}
	for _, c := range []struct {
		outcome outcome
		want    string
	}{
		{outcome{offset: 7}, ""},
		{outcome{rule: classify(sarama.ErrDuplicateSequenceNumber)}, ""},
		{outcome{rule: rule{class: classApart}}, ""},
		{outcome{rule: classify(sarama.ErrNotEnoughReplicas)}, "NOT_ENOUGH_REPLICAS"},
		{outcome{rule: classify(sarama.ErrMessageSizeTooLarge)}, "MESSAGE_TOO_LARGE"},
		{outcome{rule: classify(9999)}, OtherErrors},
		{failed(fmt.Errorf("%w: %w", errNotSent, sarama.ErrSASLAuthenticationFailed)), "SASL_AUTHENTICATION_FAILED"},
		{failed(errLeaseLost), ""},
		{failed(fmt.Errorf("broker b: %w", errClosed)), ""},
		{failed(fmt.Errorf("%w: %w", errNotSent, errSuperseded)), ""},
		{failed(rejected), OtherErrors},
		{failed(errIncomplete), OtherErrors},
		{failed(io.EOF), Transport},
		{failed(fmt.Errorf("%w: %w", errNotSent, &net.OpError{Op: "dial", Err: errors.New("refused")})), Transport},
	} {
		if got := c.outcome.failure(); got != c.want {
			t.Errorf("%s, %v: %q, want %q", c.outcome.rule, c.outcome.cause, got, c.want)
		}
	}
}

func failed(err error) outcome { return outcome{rule: classifyError(err), cause: err} }

func TestCountedTopicsAreBounded(t *testing.T) {
	tally, q := newTally(), queueOf(1)
	for range 2 {
		for i := range maxCountedTopics + 50 {
			tally.acknowledged(strconv.Itoa(i), 10, q, 1, time.Now())
		}
	}
	topics := tally.counters.Topics
	if len(topics) != maxCountedTopics+1 || topics[OtherTopics] != (Acknowledged{Records: 100, Bytes: 1000}) || topics["7"] != (Acknowledged{2, 20}) {
		t.Errorf("%d topics, others %+v, one of them %+v", len(topics), topics[OtherTopics], topics["7"])
	}
}

func TestCountersAreACopy(t *testing.T) {
	client := newTestClient(t, fastConfig("127.0.0.1:1"))
	before := client.Counters()
	client.tally.acknowledged("orders", 10, queueOf(3), 3, time.Now())
	client.tally.attempted(failed(io.EOF))
	if len(before.Topics) != 0 || before.Errors[Transport] != 0 || before.CommitToAck.Count() != 0 {
		t.Errorf("a snapshot moves: %+v", before)
	}
	after := client.Counters()
	clear(after.Topics)
	clear(after.Errors)
	if now := client.Counters(); now.Topics["orders"].Records != 3 || now.Errors[Transport] != 1 || now.CommitToAck.Count() != 3 {
		t.Errorf("a snapshot is shared: %+v", now)
	}
}

func TestElapsedTimeSaturates(t *testing.T) {
	for _, c := range []struct {
		from, to int64
		want     time.Duration
	}{
		{1_000_000, 2_500_000, 1500 * time.Millisecond},
		{2_500_000, 1_000_000, 0}, // clocks differ
		{math.MaxInt64 / 2, 0, 0},
		{math.MinInt64 / 2, 0, math.MaxInt64 / 1000 * 1000},
	} {
		if got := elapsed(c.from, c.to); got != c.want {
			t.Errorf("from %d to %d: %s, want %s", c.from, c.to, got, c.want)
		}
	}
}

func queueOf(n int) *queue {
	q := new(queue)
	now := time.Now()
	for i := range n {
		at := now.Add(-time.Duration(i) * 3 * time.Millisecond).UnixMicro()
		q.push(entry{message: pipeline.Message{Committed: at, Record: router.Record{OccurredAt: at}}})
	}
	return q
}

// BenchmarkAcknowledged counts batches of 100 records.
func BenchmarkAcknowledged(b *testing.B) {
	const records = 100
	tally, q, now := newTally(), queueOf(records), time.Now()
	b.ReportAllocs()
	for b.Loop() {
		tally.acknowledged("orders", 1000, q, records, now)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/records, "ns/record")
}

func TestCountingDoesNotAllocate(t *testing.T) {
	tally, q := newTally(), queueOf(100)
	tally.acknowledged("orders", 1000, q, 100, time.Now())
	if n := testing.AllocsPerRun(100, func() { tally.acknowledged("orders", 1000, q, 100, time.Now()) }); n > 0 {
		t.Errorf("%g allocations per batch", n)
	}
}
