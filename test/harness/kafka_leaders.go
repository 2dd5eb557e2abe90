package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Replicas returns the brokers, counted from 0, that have a copy of each
// partition of a topic. The first of each is the preferred leader.
func (c *Cluster) Replicas(ctx context.Context, topic string) ([][]int, error) {
	found, err := c.describe(ctx, c.admin, topic)
	if err != nil {
		return nil, err
	}
	replicas := make([][]int, len(found.Partitions))
	for _, p := range found.Partitions {
		for _, id := range p.Replicas {
			replicas[p.Partition] = append(replicas[p.Partition], int(id)-1)
		}
	}
	return replicas, nil
}

// Reassign moves the copies of each partition of a topic to the given brokers,
// counted from 0, as kafka-reassign-partitions.sh does, and waits until they
// have them. Who leads changes only if the leader has no copy any more; see
// ElectPreferred.
func (c *Cluster) Reassign(ctx context.Context, topic string, replicas [][]int) error {
	wanted := kmsg.NewAlterPartitionAssignmentsRequestTopic()
	wanted.Topic = topic
	for partition, brokers := range replicas {
		p := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
		p.Partition = int32(partition)
		for _, broker := range brokers {
			p.Replicas = append(p.Replicas, int32(c.nodes[broker].id))
		}
		wanted.Partitions = append(wanted.Partitions, p)
	}
	request := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	request.Topics = append(request.Topics, wanted)
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	answer, err := request.RequestWith(ctx, c.admin)
	if err == nil {
		err = topicError(answer.ErrorCode, answer.ErrorMessage)
	}
	if err != nil {
		return fmt.Errorf("reassign topic %s: %w", topic, err)
	}
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			if err := topicError(p.ErrorCode, p.ErrorMessage); err != nil {
				return fmt.Errorf("reassign topic %s partition %d: %w", topic, p.Partition, err)
			}
		}
	}
	err = poll(ctx, "topic "+topic+" is reassigned", func(ctx context.Context) (bool, error) {
		now, err := c.Replicas(ctx, topic)
		return err == nil && slices.EqualFunc(now, replicas, slices.Equal[[]int]), err
	})
	if err != nil {
		return err
	}
	return c.WaitInSync(ctx, topic)
}

// ElectPreferred makes the preferred replica of each partition of a topic its
// leader, as kafka-leader-election.sh does, and waits until all brokers know.
func (c *Cluster) ElectPreferred(ctx context.Context, topic string) error {
	replicas, err := c.Replicas(ctx, topic)
	if err != nil {
		return err
	}
	wanted := kmsg.NewElectLeadersRequestTopic()
	wanted.Topic = topic
	for partition := range replicas {
		wanted.Partitions = append(wanted.Partitions, int32(partition))
	}
	request := kmsg.NewPtrElectLeadersRequest()
	request.Topics = append(request.Topics, wanted)
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	answer, err := request.RequestWith(ctx, c.admin)
	if err == nil {
		err = kerr.ErrorForCode(answer.ErrorCode)
	}
	if err != nil {
		return fmt.Errorf("elect the leaders of topic %s: %w", topic, err)
	}
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			err := topicError(p.ErrorCode, p.ErrorMessage)
			if err != nil && !errors.Is(err, kerr.ElectionNotNeeded) {
				return fmt.Errorf("elect the leader of topic %s partition %d: %w", topic, p.Partition, err)
			}
		}
	}
	return c.onEachBroker(ctx, "the preferred replicas of "+topic+" lead", func(found kmsg.MetadataResponseTopic) error {
		for _, p := range found.Partitions {
			if preferred := c.nodes[replicas[p.Partition][0]].id; p.Leader != int32(preferred) {
				return fmt.Errorf("partition %d is led by %d, not by %d", p.Partition, p.Leader, preferred)
			}
		}
		return nil
	}, topic)
}

// WaitLeader waits until a broker, counted from 0, leads a partition.
func (c *Cluster) WaitLeader(ctx context.Context, topic string, partition int32, broker int) error {
	return poll(ctx, fmt.Sprintf("Kafka broker %d leads partition %d of %s", broker, partition, topic), func(ctx context.Context) (bool, error) {
		leader, err := c.Leader(ctx, topic, partition)
		if err == nil && leader != broker {
			err = fmt.Errorf("broker %d leads it", leader)
		}
		return err == nil, err
	})
}

// WaitInSyncCount waits until every running broker knows that each partition of
// a topic has n replicas in sync and a leader among them.
func (c *Cluster) WaitInSyncCount(ctx context.Context, topic string, n int) error {
	return c.onEachBroker(ctx, fmt.Sprintf("%d replicas of %s are in sync", n, topic), func(found kmsg.MetadataResponseTopic) error {
		for _, p := range found.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil && !errors.Is(err, kerr.ReplicaNotAvailable) {
				return fmt.Errorf("partition %d: %w", p.Partition, err)
			}
			if len(p.ISR) != n || !slices.Contains(p.ISR, p.Leader) {
				return fmt.Errorf("partition %d: %v are in sync, %d leads", p.Partition, p.ISR, p.Leader)
			}
		}
		return nil
	}, topic)
}

// ActiveController is the broker, counted from 0, whose controller leads the
// quorum. It is an error while there is none.
func (c *Cluster) ActiveController(ctx context.Context) (int, error) {
	const metadata = "__cluster_metadata"
	topic := kmsg.NewDescribeQuorumRequestTopic()
	topic.Topic = metadata
	topic.Partitions = append(topic.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
	request := kmsg.NewPtrDescribeQuorumRequest()
	request.Topics = append(request.Topics, topic)
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	answer, err := request.RequestWith(ctx, c.admin)
	if err == nil {
		err = topicError(answer.ErrorCode, answer.ErrorMessage)
	}
	if err != nil {
		return 0, fmt.Errorf("describe the quorum: %w", err)
	}
	if len(answer.Topics) != 1 || len(answer.Topics[0].Partitions) != 1 {
		return 0, errors.New("describe the quorum: the answer has no partition")
	}
	p := answer.Topics[0].Partitions[0]
	if err := topicError(p.ErrorCode, p.ErrorMessage); err != nil {
		return 0, fmt.Errorf("describe the quorum: %w", err)
	}
	if p.LeaderID < 1 {
		return 0, errors.New("describe the quorum: no controller leads it")
	}
	return int(p.LeaderID) - 1, nil
}
