package kafka

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cdcpub/cdcpub/internal/pipeline"
)

// batchHeader is what a batch in a request says of its sender.
type batchHeader struct {
	producer int64
	epoch    int16
	sequence int32
	count    int32
}

// observe collects the batch headers that the cluster receives.
func observe(c *kfake.Cluster) chan batchHeader {
	seen := make(chan batchHeader, 10_000)
	c.ControlKey(0, func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		for _, topic := range r.(*kmsg.ProduceRequest).Topics {
			for _, partition := range topic.Partitions {
				var b kmsg.RecordBatch
				if err := b.ReadFrom(partition.Records); err == nil {
					seen <- batchHeader{b.ProducerID, b.ProducerEpoch, b.FirstSequence, b.NumRecords}
				}
			}
		}
		return nil, nil, false
	})
	return seen
}

func TestNextSessionTakesTheNextEpochFromSequenceZero(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	seen := observe(c)
	client := newTestClient(t, fastConfig(c.ListenAddrs()...))
	var first batchHeader
	for i := range 3 {
		s := startSession(t, client, always)
		s.Send(s.numbered("orders", 10, oneKey))
		s.acks(10)
		s.stop(patience)
		got := <-seen
		if i == 0 {
			first = got
		}
		if want := (batchHeader{first.producer, first.epoch + int16(i), 0, got.count}); got != want {
			t.Errorf("session %d begins with %+v, expected %+v", i, got, want)
		}
		for len(seen) > 0 {
			<-seen
		}
	}
	// A late request of the first session is refused.
	if code := produceRaw(t, c, first.producer, first.epoch, 10); code != kerr.InvalidProducerEpoch.Code {
		t.Errorf("late request of the first session: code %d", code)
	}
}

// produceRaw writes one record under a given identity.
func produceRaw(t *testing.T, c *kfake.Cluster, producer int64, epoch int16, sequence int32) int16 {
	t.Helper()
	return int16(produceAs(t, c.ListenAddrs()[0], "orders", 0, identity{producer, epoch}, sequence))
}

// produceAs writes one record to a broker under a given identity.
func produceAs(t *testing.T, address, topic string, partition int32, id identity, sequence int32) sarama.KError {
	t.Helper()
	client := newTestClient(t, realConfig([]string{address}, nil, nil))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	broker, err := newDialer(&client.config).connect(ctx, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = broker.Close() }()
	var q queue
	q.push(entry{message: message(topic, "key", 999)})
	var b batch
	b.fill(&q, 1, sarama.CompressionNone)
	b.stamp(id, sequence)
	request := &sarama.ProduceRequest{Version: produceVersion, RequiredAcks: sarama.WaitForAll, Timeout: 1000}
	request.AddBatch(topic, partition, &b.wire)
	response, err := broker.Produce(request)
	if err != nil {
		t.Fatal(err)
	}
	return response.GetBlock(topic, partition).Err
}

func TestExhaustedEpochsTakeAnotherProducerID(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	seen := observe(c)
	client := newTestClient(t, fastConfig(c.ListenAddrs()...))
	client.setIdentity(0, topicPartition{"orders", 0}, identity{producer: 12345, epoch: math.MaxInt16 - 1})
	for _, want := range []func(batchHeader) bool{
		func(h batchHeader) bool { return h.producer == 12345 && h.epoch == math.MaxInt16 },
		func(h batchHeader) bool { return h.producer != 12345 && h.epoch == 0 },
	} {
		s := startSession(t, client, always)
		s.Send(s.numbered("orders", 1, oneKey))
		s.acks(1)
		s.stop(patience)
		if h := <-seen; !want(h) {
			t.Errorf("%+v", h)
		}
	}
}

func TestSupersededSessionSendsNothingMore(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	client := newTestClient(t, fastConfig(c.ListenAddrs()...))
	old := startSession(t, client, always)
	old.Send(old.numbered("orders", 10, oneKey))
	old.acks(10)
	newer := startSession(t, client, always)
	old.Send(old.numbered("orders", 10, oneKey))
	err := old.fails()
	var stop *StopError
	if !errors.As(err, &stop) || !errors.Is(err, errSuperseded) {
		t.Errorf("error is %v", err)
	}
	newer.next = 10
	newer.Send(newer.numbered("orders", 10, oneKey))
	newer.acks(10)
	requireExactly(t, c, "orders", 20)
}

func TestLostIdentityIsRenewedWithoutLossOrOvertake(t *testing.T) {
	for _, code := range []*kerr.Error{kerr.OutOfOrderSequenceNumber, kerr.UnknownProducerID, kerr.InvalidProducerEpoch, kerr.InvalidTxnState} {
		for _, count := range []int{1, 2, 5} {
			c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
			seen := observe(c)
			s := startSession(t, newTestClient(t, fastConfig(c.ListenAddrs()...)), always)
			s.Send(s.numbered("orders", 100, oneKey))
			s.acks(100)
			before := <-seen
			for len(seen) > 0 {
				<-seen
			}
			fault := c.Fault(kfake.Fault{Keys: produceKey, Err: code, Count: count})
			s.Send(s.numbered("orders", 100, oneKey))
			s.acks(200)
			if fault.Hits() != count {
				t.Errorf("%s: %d hits", code.Message, fault.Hits())
			}
			<-seen
			after := <-seen
			bump := code == kerr.OutOfOrderSequenceNumber || code == kerr.UnknownProducerID
			if bump && (after.producer != before.producer || after.epoch != before.epoch+1) {
				t.Errorf("%s: %+v after %+v: not the next epoch", code.Message, after, before)
			}
			if !bump && after.producer == before.producer {
				t.Errorf("%s: %+v after %+v: the same producer id", code.Message, after, before)
			}
			if after.sequence != 0 {
				t.Errorf("%s: goes on at sequence %d", code.Message, after.sequence)
			}
			requireExactly(t, c, "orders", 200)
		}
	}
}

// The broker has really lost step with us: it answers so by itself.
func TestTheBrokersOwnSequenceErrorsHeal(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	seen := observe(c)
	s := startSession(t, newTestClient(t, fastConfig(c.ListenAddrs()...)), always)
	s.Send(s.numbered("orders", 10, oneKey))
	s.acks(10)
	h := <-seen
	// Somebody else takes a much higher epoch of our producer id.
	if code := produceRaw(t, c, h.producer, h.epoch+5, 0); code != 0 {
		t.Fatalf("code %d", code)
	}
	s.Send(s.numbered("orders", 10, oneKey))
	s.acks(20)
	var order []uint64
	for _, r := range consume(t, c, "orders")[0] {
		order = append(order, number(t, r))
	}
	if len(order) != 21 || order[10] != 999 || order[20] != 19 {
		t.Errorf("order is %v", order)
	}
}

func TestSequenceNumbersEndBeforeTheyOverflow(t *testing.T) {
	p := newPartition(&topic{name: "orders"}, 0)
	p.identify(identity{producer: 1})
	p.next = math.MaxInt32 - 10
	for i := range uint64(11) {
		p.queue.push(entry{message: message("orders", "key", i)})
	}
	pol := testPolicy()
	if ok, err := p.assemble(new(batch), &pol); ok || err != nil || p.identified {
		t.Errorf("a batch that overflows was made: %t %v", ok, err)
	}
	p.identify(identity{producer: 1, epoch: 1})
	if ok, err := p.assemble(new(batch), &pol); !ok || err != nil || p.batch.wire.FirstSequence != 0 {
		t.Errorf("no batch under the next epoch: %t %v", ok, err)
	}
}

func TestLeaseThatEndsStopsSendingAndIsANamedStall(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	seen := observe(c)
	var held atomic.Bool
	held.Store(true)
	s := startSession(t, newTestClient(t, fastConfig(c.ListenAddrs()...)), held.Load)
	s.Send(s.numbered("orders", 10, oneKey))
	s.acks(10)
	held.Store(false)
	for len(seen) > 0 {
		<-seen
	}
	s.Send(s.numbered("orders", 10, oneKey))
	s.stalls("waiting for the lease", func(p pipeline.PartitionStatus) bool {
		return strings.HasPrefix(p.Stall, "lease") && p.LeaseLost && p.Queued == 10 && !p.StallSince.IsZero()
	})
	if len(seen) > 0 {
		t.Errorf("sent without a lease: %+v", <-seen)
	}
	held.Store(true)
	s.acks(20)
	requireExactly(t, c, "orders", 20)
}

// The lease may end between the decision to send and the system call.
func TestLeaseIsAskedBeforeEveryWrite(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	seen := observe(c)
	var asked atomic.Int64
	var ends atomic.Int64
	ends.Store(math.MaxInt64)
	lease := func() bool { return asked.Add(1) != ends.Load() }
	s := startSession(t, newTestClient(t, fastConfig(c.ListenAddrs()...)), lease)
	n := 0
	// In the loop, in the link, at the socket.
	for when := int64(1); when <= 3; when++ {
		s.Send(s.numbered("orders", 1, oneKey))
		n++
		s.acks(n)
		<-seen
		ends.Store(asked.Load() + when)
		before := asked.Load()
		s.Send(s.numbered("orders", 1, oneKey))
		n++
		s.acks(n)
		if <-seen; len(seen) > 0 || asked.Load() < before+3+when {
			t.Errorf("lease ended at question %d: %d more batches, %d questions", when, len(seen), asked.Load()-before)
		}
	}
	requireExactly(t, c, "orders", n)
}
