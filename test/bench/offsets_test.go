package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// offsets tells how many records topics have, without reading them.
type offsets struct{ client *kgo.Client }

func newOffsets(b *testing.B, broker string) offsets {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.Close)
	return offsets{client}
}

// topics are those of one measurement. The aggregate types of a load are type0,
// type1 and so on.
type topics struct {
	prefix     string
	count      int
	partitions int
}

func (t topics) name(i int) string { return fmt.Sprintf("%s.type%d", t.prefix, i) }

// create makes the topics and waits until they have leaders.
func (o offsets) create(b *testing.B, t topics) {
	request := kmsg.NewPtrCreateTopicsRequest()
	request.TimeoutMillis = 30_000
	for i := range t.count {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = t.name(i), int32(t.partitions), 1
		request.Topics = append(request.Topics, topic)
	}
	answer, err := request.RequestWith(b.Context(), o.client)
	if err != nil {
		b.Fatal(err)
	}
	for _, topic := range answer.Topics {
		if err := kerr.ErrorForCode(topic.ErrorCode); err != nil {
			b.Fatalf("create topic %s: %v", topic.Topic, err)
		}
	}
	for ticker := time.NewTicker(100 * time.Millisecond); ; <-ticker.C {
		if n, err := o.records(b.Context(), t); err == nil && n == 0 {
			ticker.Stop()
			return
		}
	}
}

// remove deletes the topics, which gives their disk back.
func (o offsets) remove(b *testing.B, t topics) {
	request := kmsg.NewPtrDeleteTopicsRequest()
	request.TimeoutMillis = 30_000
	for i := range t.count {
		topic := kmsg.NewDeleteTopicsRequestTopic()
		name := t.name(i)
		topic.Topic = &name
		request.Topics, request.TopicNames = append(request.Topics, topic), append(request.TopicNames, name)
	}
	if _, err := request.RequestWith(b.Context(), o.client); err != nil {
		b.Fatal(err)
	}
}

// records is the sum of the end offsets.
func (o offsets) records(ctx context.Context, t topics) (sum int64, err error) {
	request := kmsg.NewPtrListOffsetsRequest()
	request.ReplicaID = -1
	for i := range t.count {
		topic := kmsg.NewListOffsetsRequestTopic()
		topic.Topic = t.name(i)
		for p := range t.partitions {
			partition := kmsg.NewListOffsetsRequestTopicPartition()
			partition.Partition, partition.Timestamp = int32(p), -1
			topic.Partitions = append(topic.Partitions, partition)
		}
		request.Topics = append(request.Topics, topic)
	}
	answer, err := request.RequestWith(ctx, o.client)
	if err != nil {
		return 0, err
	}
	for _, topic := range answer.Topics {
		for _, p := range topic.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return 0, err
			}
			sum += p.Offset
		}
	}
	return sum, nil
}

// arrivals waits for all records of a drain and returns when the first and the
// last one were seen. It looks often until the first, then seldom: looking
// costs the broker time too.
func (o offsets) arrivals(b *testing.B, t topics, rows int, failed func() error) (first, last time.Time) {
	for pause := 5 * time.Millisecond; ; time.Sleep(pause) {
		n, err := o.records(b.Context(), t)
		if err != nil {
			b.Fatal(err)
		}
		if err := failed(); err != nil {
			b.Fatal(err)
		}
		if n > 0 && first.IsZero() {
			first, pause = time.Now(), 25*time.Millisecond
		}
		if n >= int64(rows) {
			return first, time.Now()
		}
	}
}
