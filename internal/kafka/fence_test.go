package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/cdcpub/cdcpub/test/harness"
)

const fenceID = "cdcpub-shop-7713970614867039764"

func TestALostEpochIsRenewedWithinASession(t *testing.T) {
	for _, code := range []*kerr.Error{kerr.OutOfOrderSequenceNumber, kerr.UnknownProducerID, kerr.InvalidProducerEpoch} {
		t.Run(code.Message, func(t *testing.T) {
			c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(4, "orders"))
			s := startFenced(t, newTestClient(t, fastConfig(c.ListenAddrs()...)), fenceID, always)
			keys := func(i uint64) string { return fmt.Sprint(i % 7) }
			s.Send(s.numbered("orders", 100, keys))
			s.acks(100)
			fault := c.Fault(kfake.Fault{Keys: produceKey, Err: code, Count: 3})
			s.Send(s.numbered("orders", 100, keys))
			s.acks(200)
			s.Send(s.numbered("orders", 100, keys))
			s.acks(300)
			if fault.Hits() != 3 {
				t.Errorf("the fault was met %d times", fault.Hits())
			}
			requireExactly(t, c, "orders", 300)
		})
	}
}

// refusing answers claims with a code while it is not 0.
func refusing(c *kfake.Cluster, code *atomic.Int32) {
	c.ControlKey(int16(kmsg.InitProducerID), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		request := r.(*kmsg.InitProducerIDRequest)
		if request.TransactionalID == nil || code.Load() == 0 {
			return nil, nil, false
		}
		response := request.ResponseKind().(*kmsg.InitProducerIDResponse)
		response.ErrorCode = int16(code.Load())
		return response, nil, true
	})
}

func TestWithoutAFenceTheSessionGoesOnSaysSoOnceAndTakesItWhenItCan(t *testing.T) {
	for _, refusal := range []*kerr.Error{kerr.TransactionalIDAuthorizationFailed, kerr.CoordinatorNotAvailable} {
		t.Run(refusal.Message, func(t *testing.T) {
			c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
			seen := observe(c)
			var code atomic.Int32
			code.Store(int32(refusal.Code))
			refusing(c, &code)
			config := fastConfig(c.ListenAddrs()...)
			config.FenceGrace = 100 * time.Millisecond
			client := newTestClient(t, config)
			core, logs := observer.New(zap.InfoLevel)
			told := func(event string) int { return logs.FilterField(zap.String("event", event)).Len() }
			var next uint64
			for range 2 { // the second does not wait, and does not say it again
				s := startLogged(t, client, fenceID, always, zap.New(core))
				s.next = next
				s.Send(s.numbered("orders", 10, oneKey))
				s.acks(10)
				s.stop(patience)
				next = s.next
			}
			if told("kafka_unfenced") != 1 || told("kafka_fenced") != 0 {
				t.Errorf("told %d times that there is no fence, %d times that there is", told("kafka_unfenced"), told("kafka_fenced"))
			}
			code.Store(0)
			s := startLogged(t, client, fenceID, always, zap.New(core))
			s.next = next
			s.eventually("the fence is taken", func() bool { return told("kafka_fenced") == 1 })
			for len(seen) > 0 {
				<-seen
			}
			s.Send(s.numbered("orders", 10, oneKey))
			s.acks(10)
			if used, held := <-seen, client.claims[fenceID]; used.producer != held.producer || used.epoch != held.epoch {
				t.Errorf("sent as %+v, the fence is %+v", used, held)
			}
			requireExactly(t, c, "orders", 30)
		})
	}
}

// A broker, or what stands in front of it, that knows no coordinators.
func TestABrokerThatDropsTheQuestionForACoordinatorHoldsUpNobodyForLong(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	c.ControlKey(int16(kmsg.FindCoordinator), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return nil, errors.New("closed"), true
	})
	config := fastConfig(c.ListenAddrs()...)
	config.FenceGrace = 100 * time.Millisecond
	s := startFenced(t, newTestClient(t, config), fenceID, always)
	s.Send(s.numbered("orders", 10, oneKey))
	s.acks(10)
	requireExactly(t, c, "orders", 10)
}

// The coordinator is found by any broker of the cluster, not only by those of
// the configuration.
func TestAClaimDoesNotNeedTheConfiguredBroker(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(3, "orders"))
	var down atomic.Bool
	coordinator := c.CoordinatorFor(fenceID)
	first := c.ListenAddrs()[(coordinator+1)%3]
	config := fastConfig(first)
	config.FenceGrace = time.Hour
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if down.Load() && address == first {
			return nil, errors.New("connection refused")
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	s := startFenced(t, newTestClient(t, config), fenceID, always)
	s.Send(s.numbered("orders", 30, manyKeys(10)))
	s.acks(30)
	down.Store(true)
	for _, p := range c.PartitionInfos("orders") {
		if err := c.MoveTopicPartition("orders", p.Partition, coordinator); err != nil {
			t.Fatal(err)
		}
	}
	c.Fault(kfake.Fault{Keys: produceKey, Err: kerr.OutOfOrderSequenceNumber, Count: 1})
	s.Send(s.numbered("orders", 30, manyKeys(10)))
	s.acks(60)
}

// A coordinator that has lost its newest state gives an identity twice. The
// first batch under it would be taken for a repeat, and be lost.
func TestAnIdentityThatIsGivenTwiceIsNotUsedTwice(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	c.ControlKey(int16(kmsg.InitProducerID), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		request := r.(*kmsg.InitProducerIDRequest)
		if request.TransactionalID == nil {
			return nil, nil, false
		}
		response := r.ResponseKind().(*kmsg.InitProducerIDResponse)
		response.ProducerID, response.ProducerEpoch = 1000, 5
		return response, nil, true
	})
	config := fastConfig(c.ListenAddrs()...)
	config.FenceGrace = 100 * time.Millisecond
	client := newTestClient(t, config)
	for i := range uint64(3) {
		s := startFenced(t, client, fenceID, always)
		s.next = i
		s.Send(s.numbered("orders", 1, oneKey))
		s.acks(1)
		s.stop(patience)
	}
	requireExactly(t, c, "orders", 3)
}

// The producer is not running: its state is looked at between two answers.
func TestACoordinatorThatIsAwayHoldsUpNobodyForLong(t *testing.T) {
	client := newTestClient(t, fastConfig("127.0.0.1:1"))
	grace := client.config.FenceGrace
	p := newProducer(client, 1, fenceID, leased(always), zap.NewNop())
	part := newPartition(newTopic("orders", nil), 0)
	now := time.Now()
	away := controlled{err: sarama.ErrConsumerCoordinatorNotAvailable}
	nobody := controlled{err: errors.New("no broker can be reached")}
	p.fence.since = now
	for _, step := range []struct {
		what   string
		answer controlled
		after  time.Duration
		waits  bool
		waived bool
	}{
		{"no broker answers", nobody, time.Hour, true, false},
		{"brokers answer again, within the grace", away, time.Hour + grace - 1, true, false},
		{"the grace is over", away, time.Hour + grace, true, true},
		{"it gives an identity", controlled{identity: identity{7, 1}}, 2 * time.Hour, true, false},
		{"it is away at a renewal", away, 2*time.Hour + fenceRenewal, false, false},
		{"and long after", away, 3*time.Hour + fenceRenewal, false, false},
	} {
		p.fence.waiting = p.fence.waiting[:0]
		if step.waits {
			part.phase = phaseIdentity
			p.fence.waiting = append(p.fence.waiting, part)
		}
		p.claimed(step.answer, now.Add(step.after))
		if step.answer.err == nil {
			p.looked(nil, now.Add(step.after))
		}
		free := step.waived || step.answer.err == nil
		if p.fence.waived != step.waived || step.waits && (part.phase == phaseReady) != free {
			t.Errorf("%s: waived %t, phase %d, stall %q", step.what, p.fence.waived, part.phase, part.stall)
		}
	}
}

func TestBeingFencedAgainAndAgainNeedsADecision(t *testing.T) {
	client := newTestClient(t, fastConfig("127.0.0.1:1"))
	now := time.Now()
	stopsAt := func(after time.Duration) bool {
		var stop *StopError
		return errors.As(client.fenced(fenceID, now.Add(after)), &stop)
	}
	for i, want := range []bool{false, false, false, false, true} {
		if got := stopsAt([]time.Duration{0, time.Minute, 6 * time.Minute, 6*time.Minute + time.Second, 7 * time.Minute}[i]); got != want {
			t.Errorf("fence %d: stops %t", i, got)
		}
	}
}

// Two Clients are two processes: they know nothing of each other. This is the
// contract that the fence rests on, so a real broker has to keep it.
func TestALaterPublisherShutsOutTheEarlierOne(t *testing.T) {
	cluster := harness.Kafka(t, harness.KafkaOptions{})
	topic := harness.Topic(t, cluster, 1, nil)
	publisher := func() *session {
		return startFenced(t, newTestClient(t, realConfig(cluster.Brokers(), nil, nil)), fenceID, always)
	}
	publish := func(s *session) {
		s.t.Helper()
		acked, _, _ := s.got()
		// Brokers forget a producer id by the age of its records.
		messages := s.numbered(topic, 10, oneKey)
		for i := range messages {
			messages[i].Record.Timestamp = time.Now()
		}
		s.Send(messages)
		s.acks(len(acked) + 10)
	}
	earlier := publisher()
	publish(earlier)
	var first identity
	first.producer, first.epoch = lastIdentity(t, cluster, topic)
	refused := func(when string) {
		t.Helper()
		if code := produceAs(t, cluster.Brokers()[0], topic, 0, first, 10); code != sarama.ErrInvalidProducerEpoch {
			t.Errorf("a late request of the earlier publisher, %s: %v", when, code)
		}
	}

	later := publisher()
	publish(later)
	refused("behind the later one's first batch")
	if producer, epoch := lastIdentity(t, cluster, topic); producer != first.producer || epoch <= first.epoch {
		t.Errorf("the later publisher is %d/%d, the earlier one %+v", producer, epoch, first)
	}
	earlier.Send(earlier.numbered(topic, 10, oneKey))
	var fenced *FencedError
	if err := earlier.fails(); !errors.As(err, &fenced) {
		t.Errorf("the earlier publisher ends with %v", err)
	}

	if err := cluster.Kill(0); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Start(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	refused("after a crash of the broker")
	publish(later)
	publish(publisher())
}

// lastIdentity is the producer id and epoch of the last batch of partition 0.
func lastIdentity(t *testing.T, cluster *harness.Cluster, topic string) (producer int64, epoch int16) {
	t.Helper()
	ctx := patiently(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.Brokers()...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtEnd().Relative(-1)}}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	fetches := client.PollFetches(ctx)
	if err := fetches.Err(); err != nil {
		t.Fatal(err)
	}
	records := fetches.Records()
	last := records[len(records)-1]
	return last.ProducerID, last.ProducerEpoch
}
