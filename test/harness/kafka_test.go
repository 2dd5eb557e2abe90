package harness_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

func client(t *testing.T, brokers []string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append(options, kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MetadataMinAge(100*time.Millisecond),
		// Short, so that a frozen broker is given up soon.
		kgo.ProduceRequestTimeout(2*time.Second), kgo.RequestTimeoutOverhead(time.Second))...)
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

func produce(t *testing.T, c *kgo.Client, topic string, partition int32, values ...string) {
	t.Helper()
	for _, v := range values {
		r := &kgo.Record{
			Topic: topic, Partition: partition, Key: []byte("k"), Value: []byte(v), Timestamp: time.UnixMilli(1_700_000_000_123),
			Headers: []kgo.RecordHeader{{Key: "b", Value: []byte("1")}, {Key: "a"}, {Key: "b", Value: []byte("2")}},
		}
		must(t, c.ProduceSync(limit(t), r).FirstErr())
	}
}

func values(records []verify.Record, partition int32) []string {
	var all []string
	for _, r := range records {
		if r.Partition == partition {
			all = append(all, string(r.Value))
		}
	}
	return all
}

func TestReadAllGivesEveryRecordAsItIs(t *testing.T) {
	cluster := shared.Kafka(t, harness.KafkaOptions{})
	topic := harness.Topic(t, cluster, 3, nil)
	produce(t, client(t, cluster.Brokers()), topic, 2, "one", "two")

	records, err := harness.ReadAll(limit(t), cluster.Brokers(), topic)
	must(t, err)
	if len(records) != 2 {
		t.Fatalf("read %d records, want 2", len(records))
	}
	got := fmt.Sprintf("%+v", records[1])
	want := fmt.Sprintf("%+v", verify.Record{
		Topic: topic, Partition: 2, Offset: 1, Key: []byte("k"), Value: []byte("two"),
		Headers:   []verify.Header{{Key: "b", Value: []byte("1")}, {Key: "a"}, {Key: "b", Value: []byte("2")}},
		Timestamp: time.UnixMilli(1_700_000_000_123).UTC(),
	})
	if got != want {
		t.Errorf("read %s, want %s", got, want)
	}
	ends, err := harness.EndOffsets(limit(t), cluster.Brokers(), topic)
	must(t, err)
	if len(ends) != 3 || ends[verify.TopicPartition{Topic: topic, Partition: 2}] != 2 {
		t.Errorf("end offsets %v, want 2 in partition 2 and three partitions", ends)
	}
}

// A partition that ends in a transaction marker has no record at its last
// offset: a reader that waits for one would hang.
func TestReadAllPassesOverControlRecordsAndReadsAbortedTransactions(t *testing.T) {
	cluster := shared.Kafka(t, harness.KafkaOptions{})
	topic := harness.Topic(t, cluster, 1, nil)
	c := client(t, cluster.Brokers(), kgo.TransactionalID(topic))
	for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		must(t, c.BeginTransaction())
		produce(t, c, topic, 0, fmt.Sprintf("commit %v", bool(end)))
		must(t, c.EndTransaction(limit(t), end))
	}
	records, err := harness.ReadAll(limit(t), cluster.Brokers(), topic)
	must(t, err)
	if got := values(records, 0); !slices.Equal(got, []string{"commit true", "commit false"}) {
		t.Errorf("read %q", got)
	}
}

func TestFollowEndsAtTheRecordThatItsCallerRefuses(t *testing.T) {
	cluster := shared.Kafka(t, harness.KafkaOptions{})
	topic := harness.Topic(t, cluster, 1, nil)
	produce(t, client(t, cluster.Brokers()), topic, 0, "one", "two", "three")
	var records []verify.Record
	must(t, harness.Follow(limit(t), cluster.Brokers(), []string{topic}, func(r verify.Record) bool {
		records = append(records, r)
		return string(r.Value) != "two"
	}))
	if got := values(records, 0); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("followed %q, want one and two", got)
	}
}

func TestConsumerSeesWhatComesLaterAndInNewPartitions(t *testing.T) {
	cluster := shared.Kafka(t, harness.KafkaOptions{})
	topic := harness.Topic(t, cluster, 1, nil)
	consumer := harness.NewConsumer(t, cluster.Brokers(), topic)
	produce(t, client(t, cluster.Brokers()), topic, 0, "first")
	_, err := consumer.WaitN(limit(t), 1)
	must(t, err)

	must(t, cluster.AddPartitions(limit(t), topic, 2))
	produce(t, client(t, cluster.Brokers()), topic, 1, "second")
	records, err := consumer.Wait(limit(t), "the second", func(rs []verify.Record) bool {
		return len(values(rs, 1)) == 1
	})
	must(t, err)
	if got := values(records, 1); got[0] != "second" {
		t.Errorf("read %q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := consumer.WaitN(ctx, 3); !errors.Is(err, context.Canceled) {
		t.Errorf("WaitN = %v, want Canceled", err)
	}
}

func TestTopicConfigIsChangedAndTopicsAreDeleted(t *testing.T) {
	cluster := shared.Kafka(t, harness.KafkaOptions{})
	topic := harness.Topic(t, cluster, 1, map[string]string{"max.message.bytes": "1000"})
	c := client(t, cluster.Brokers())
	big := &kgo.Record{Topic: topic, Value: make([]byte, 2000)}
	if err := c.ProduceSync(limit(t), big).FirstErr(); !errors.Is(err, kerr.MessageTooLarge) {
		t.Fatalf("produce = %v, want MESSAGE_TOO_LARGE", err)
	}
	larger := "5000"
	must(t, cluster.AlterTopicConfig(limit(t), topic, "max.message.bytes", &larger))
	// The broker applies a new setting a moment after it has answered.
	eventually(t, "the larger record is accepted", func() bool {
		return c.ProduceSync(limit(t), &kgo.Record{Topic: topic, Value: make([]byte, 2000)}).FirstErr() == nil
	})
	must(t, cluster.DeleteTopic(limit(t), topic))
	if _, err := harness.Partitions(limit(t), cluster.Brokers(), topic); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("Partitions of a deleted topic = %v", err)
	}
}

func TestClientsGoThroughTheProxyAndWitnessesDoNot(t *testing.T) {
	cluster := shared.Kafka(t, harness.KafkaOptions{ViaProxy: true})
	topic := harness.Topic(t, cluster, 1, nil)
	c := client(t, cluster.Brokers(), kgo.RetryTimeout(2*time.Second), kgo.RecordRetries(0), kgo.DisableIdempotentWrite())
	produce(t, c, topic, 0, "before")

	cluster.Proxy(0).DropResponses()
	lost := &kgo.Record{Topic: topic, Value: []byte("failed but took effect")}
	if err := c.ProduceSync(limit(t), lost).FirstErr(); err == nil {
		t.Error("a produce whose answer was dropped succeeded")
	}
	if !cluster.Proxy(0).WaitDropped(1) {
		t.Error("no answer was dropped")
	}
	records, err := harness.ReadAll(limit(t), cluster.Direct(), topic)
	must(t, err)
	if got := values(records, 0); !slices.Equal(got, []string{"before", "failed but took effect"}) {
		t.Errorf("the topic has %q", got)
	}
	must(t, cluster.Proxy(0).Restore())
	produce(t, c, topic, 0, "after")
}

func TestBrokersAreStoppedKilledFrozenAndComeBackWithTheirData(t *testing.T) {
	cluster := shared.Kafka(t, harness.KafkaOptions{Brokers: 3})
	topic := harness.Topic(t, cluster, 1, nil)
	c := client(t, cluster.Brokers())
	produce(t, c, topic, 0, "zero")
	var want []string
	for _, fault := range []struct {
		name      string
		hit, undo func(context.Context, int) error
	}{
		{"stop", func(_ context.Context, i int) error { return cluster.Stop(i) }, cluster.Start},
		{"kill", func(_ context.Context, i int) error { return cluster.Kill(i) }, cluster.Start},
		{"freeze",
			func(_ context.Context, i int) error { return cluster.Freeze(i) },
			func(_ context.Context, i int) error { return cluster.Thaw(i) }},
	} {
		leader, err := cluster.Leader(limit(t), topic, 0)
		must(t, err)
		must(t, fault.hit(t.Context(), leader))
		produce(t, c, topic, 0, fault.name) // another broker takes over
		want = append(want, fault.name)
		must(t, fault.undo(limit(t), leader))
		must(t, cluster.WaitInSync(limit(t), topic))
	}
	records, err := harness.ReadAll(limit(t), cluster.Brokers(), topic)
	must(t, err)
	if got := values(records, 0)[1:]; !slices.Equal(got, want) {
		t.Errorf("the topic has %q, want %q", got, want)
	}
}
