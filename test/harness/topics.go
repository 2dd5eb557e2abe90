package harness

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cdcpub/cdcpub/internal/verify"
)

// EndOffsets returns the end offset (high watermark) of every partition of the
// topics: the offset that the next record gets.
func EndOffsets(ctx context.Context, brokers []string, topics ...string) (map[verify.TopicPartition]int64, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return listOffsets(ctx, client, newest, topics)
}

// Partitions returns how many partitions each topic has.
func Partitions(ctx context.Context, brokers []string, topics ...string) (map[string]int32, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return partitions(ctx, client, topics)
}

// The two timestamps of ListOffsets that are not times.
const (
	newest = -1
	oldest = -2
)

func partitions(ctx context.Context, client *kgo.Client, topics []string) (map[string]int32, error) {
	request := kmsg.NewPtrMetadataRequest()
	for _, name := range topics {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &name
		request.Topics = append(request.Topics, topic)
	}
	answer, err := request.RequestWith(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("metadata of %v: %w", topics, err)
	}
	counts := make(map[string]int32, len(topics))
	for _, topic := range answer.Topics {
		if err := kerr.ErrorForCode(topic.ErrorCode); err != nil {
			return nil, fmt.Errorf("metadata of topic %s: %w", *topic.Topic, err)
		}
		counts[*topic.Topic] = int32(len(topic.Partitions))
	}
	return counts, nil
}

func listOffsets(ctx context.Context, client *kgo.Client, which int64, topics []string) (map[verify.TopicPartition]int64, error) {
	counts, err := partitions(ctx, client, topics)
	if err != nil {
		return nil, err
	}
	request := kmsg.NewPtrListOffsetsRequest()
	request.ReplicaID = -1 // a consumer, not a replica
	for name, count := range counts {
		topic := kmsg.NewListOffsetsRequestTopic()
		topic.Topic = name
		for p := range count {
			partition := kmsg.NewListOffsetsRequestTopicPartition()
			partition.Partition, partition.Timestamp = p, which
			topic.Partitions = append(topic.Partitions, partition)
		}
		request.Topics = append(request.Topics, topic)
	}
	// The client splits the request by leader and joins the answers.
	answer, err := request.RequestWith(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("offsets of %v: %w", topics, err)
	}
	offsets := map[verify.TopicPartition]int64{}
	for _, topic := range answer.Topics {
		for _, p := range topic.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return nil, fmt.Errorf("offset of %s/%d: %w", topic.Topic, p.Partition, err)
			}
			offsets[verify.TopicPartition{Topic: topic.Topic, Partition: p.Partition}] = p.Offset
		}
	}
	return offsets, nil
}
