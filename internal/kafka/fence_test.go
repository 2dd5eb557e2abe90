package kafka

import (
	"errors"
	"fmt"
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

func TestWithoutTheRightToAFenceTheSessionGoesOnAndSaysSo(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	c.ControlKey(int16(kmsg.InitProducerID), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		request := r.(*kmsg.InitProducerIDRequest)
		if request.TransactionalID == nil {
			return nil, nil, false
		}
		response := request.ResponseKind().(*kmsg.InitProducerIDResponse)
		response.ErrorCode = kerr.TransactionalIDAuthorizationFailed.Code
		return response, nil, true
	})
	core, logs := observer.New(zap.WarnLevel)
	s := startLogged(t, newTestClient(t, fastConfig(c.ListenAddrs()...)), fenceID, always, zap.New(core))
	s.Send(s.numbered("orders", 10, oneKey))
	s.acks(10)
	told := logs.FilterField(zap.String("event", "kafka_unfenced")).All()
	if len(told) != 1 || told[0].ContextMap()["transactional_id"] != fenceID {
		t.Errorf("it is told %d times: %v", len(told), told)
	}
	requireExactly(t, c, "orders", 10)
}

// The producer is not running: its state is looked at between two answers.
func TestACoordinatorThatIsAwayHoldsUpNobodyForLong(t *testing.T) {
	client := newTestClient(t, fastConfig("127.0.0.1:1"))
	core, logs := observer.New(zap.WarnLevel)
	p := newProducer(client, 1, fenceID, always, zap.New(core))
	part := newPartition(newTopic("orders"), 0)
	part.phase = phaseIdentity
	now := time.Now()
	away := controlled{err: sarama.ErrConsumerCoordinatorNotAvailable}
	nobody := controlled{err: errors.New("no broker can be reached")}
	p.fence.waiting = append(p.fence.waiting, part)
	for _, step := range []struct {
		answer controlled
		after  time.Duration
		fenced bool
	}{
		{nobody, 0, true}, {nobody, time.Hour, true}, {away, time.Hour, true}, {nobody, time.Hour + fenceGrace/2, true},
		{away, time.Hour + fenceGrace - 1, true}, {away, time.Hour + fenceGrace, false},
	} {
		p.claimed(step.answer, now.Add(step.after))
		if fenced := p.fence.id != ""; fenced != step.fenced {
			t.Fatalf("after %v and %v: fenced %t", step.after, step.answer.err, fenced)
		}
		if step.fenced && (part.phase != phaseIdentity || part.stall == "") {
			t.Errorf("after %v: phase %d, stall %q", step.after, part.phase, part.stall)
		}
	}
	if part.phase != phaseReady || logs.Len() != 1 {
		t.Errorf("phase %d, told %d times", part.phase, logs.Len())
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
