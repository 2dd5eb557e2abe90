package witness

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

// AgreedEndOffsets is EndOffsets at a time when every broker answers, and none
// that has been replaced without knowing it: a leader that was frozen believes
// for a moment that it still leads, and ends where it ended then. It is an error
// if the brokers do not answer, or do not agree yet.
func AgreedEndOffsets(ctx context.Context, brokers []string, topics ...string) (map[verify.TopicPartition]int64, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	leaders, err := newestLeaders(ctx, client, topics)
	if err != nil {
		return nil, err
	}
	requests := map[int32]*kmsg.ListOffsetsRequest{}
	for at, leads := range leaders {
		request := requests[leads.broker]
		if request == nil {
			request = kmsg.NewPtrListOffsetsRequest()
			request.ReplicaID = -1
			requests[leads.broker] = request
		}
		partition := kmsg.NewListOffsetsRequestTopicPartition()
		partition.Partition, partition.Timestamp, partition.CurrentLeaderEpoch = at.Partition, newest, leads.epoch
		topic := kmsg.NewListOffsetsRequestTopic()
		topic.Topic, topic.Partitions = at.Topic, append(topic.Partitions, partition)
		request.Topics = append(request.Topics, topic)
	}
	offsets := map[verify.TopicPartition]int64{}
	for broker, request := range requests {
		answer, err := request.RequestWith(ctx, client.Broker(int(broker)))
		if err != nil {
			return nil, fmt.Errorf("offsets of %v: %w", topics, err)
		}
		if err := collect(answer, offsets); err != nil {
			return nil, err
		}
	}
	return offsets, nil
}

// leadership is who leads a partition, and since which election.
type leadership struct{ broker, epoch int32 }

// newestLeaders asks every broker and believes the newest election of each
// partition.
func newestLeaders(ctx context.Context, client *kgo.Client, topics []string) (map[verify.TopicPartition]leadership, error) {
	request := metadataOf(topics)
	leaders := map[verify.TopicPartition]leadership{}
	for _, broker := range client.SeedBrokers() {
		answer, err := request.RequestWith(ctx, broker)
		if err != nil {
			return nil, fmt.Errorf("metadata of %v: %w", topics, err)
		}
		for _, topic := range answer.Topics {
			if err := kerr.ErrorForCode(topic.ErrorCode); err != nil {
				return nil, fmt.Errorf("metadata of topic %s: %w", *topic.Topic, err)
			}
			for _, p := range topic.Partitions {
				at := verify.TopicPartition{Topic: *topic.Topic, Partition: p.Partition}
				if known, ok := leaders[at]; !ok || p.LeaderEpoch > known.epoch {
					leaders[at] = leadership{p.Leader, p.LeaderEpoch}
				}
			}
		}
	}
	return leaders, nil
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

func metadataOf(topics []string) *kmsg.MetadataRequest {
	request := kmsg.NewPtrMetadataRequest()
	for _, name := range topics {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &name
		request.Topics = append(request.Topics, topic)
	}
	return request
}

func partitions(ctx context.Context, client *kgo.Client, topics []string) (map[string]int32, error) {
	answer, err := metadataOf(topics).RequestWith(ctx, client)
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
	return offsets, collect(answer, offsets)
}

// collect adds the offsets of an answer.
func collect(answer *kmsg.ListOffsetsResponse, offsets map[verify.TopicPartition]int64) error {
	for _, topic := range answer.Topics {
		for _, p := range topic.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return fmt.Errorf("offset of %s/%d: %w", topic.Topic, p.Partition, err)
			}
			offsets[verify.TopicPartition{Topic: topic.Topic, Partition: p.Partition}] = p.Offset
		}
	}
	return nil
}
