package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// WaitInSync waits until every replica of every partition of a topic is in
// sync and all running brokers agree on the leaders. A broker that was frozen
// believes in its old leadership for a moment after it is thawed.
func (c *Cluster) WaitInSync(ctx context.Context, topic string) error {
	return poll(ctx, "all replicas of "+topic+" are in sync", func(ctx context.Context) (bool, error) {
		var first []kmsg.MetadataResponseTopicPartition
		for i, n := range c.nodes {
			if !c.answers(i) {
				continue
			}
			found, err := c.describe(ctx, c.admin.Broker(n.id), topic)
			if err != nil {
				return false, err
			}
			slices.SortFunc(found.Partitions, func(a, b kmsg.MetadataResponseTopicPartition) int {
				return cmp.Compare(a.Partition, b.Partition)
			})
			if first == nil {
				first = found.Partitions
			}
			if err := inSync(first, found); err != nil {
				return false, fmt.Errorf("Kafka broker %d: %w", i, err)
			}
		}
		return first != nil, errors.New("no broker answers")
	})
}

// inSync compares one broker's view with another's.
func inSync(first []kmsg.MetadataResponseTopicPartition, found kmsg.MetadataResponseTopic) error {
	if err := kerr.ErrorForCode(found.ErrorCode); err != nil {
		return err
	}
	if len(first) != len(found.Partitions) {
		return fmt.Errorf("knows %d partitions, another %d", len(found.Partitions), len(first))
	}
	for i, p := range found.Partitions {
		if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
			return fmt.Errorf("partition %d: %w", p.Partition, err)
		}
		if len(p.ISR) != len(p.Replicas) {
			return fmt.Errorf("partition %d: %d of %d in sync", p.Partition, len(p.ISR), len(p.Replicas))
		}
		if p.Leader != first[i].Leader || p.LeaderEpoch != first[i].LeaderEpoch {
			return fmt.Errorf("partition %d: brokers disagree on the leader", p.Partition)
		}
	}
	return nil
}

const describeTimeout = 5 * time.Second

// answers says whether broker i runs and is not frozen.
func (c *Cluster) answers(i int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.children[i] != nil && !ended(c.children[i]) && !c.frozen[i]
}

// Leader returns which broker, counted from 0, leads a partition.
func (c *Cluster) Leader(ctx context.Context, topic string, partition int32) (int, error) {
	found, err := c.describe(ctx, c.admin, topic)
	if err != nil {
		return 0, err
	}
	for _, p := range found.Partitions {
		if p.Partition == partition && p.ErrorCode == 0 {
			return int(p.Leader) - 1, nil
		}
	}
	return 0, fmt.Errorf("partition %d of topic %s has no leader", partition, topic)
}

// waitPartitions waits until every running broker knows a leader for each of n
// partitions.
func (c *Cluster) waitPartitions(ctx context.Context, topic string, n int) error {
	return c.onEachBroker(ctx, "topic "+topic+" is known", func(found kmsg.MetadataResponseTopic) error {
		if err := kerr.ErrorForCode(found.ErrorCode); err != nil {
			return err
		}
		if len(found.Partitions) != n {
			return fmt.Errorf("%d of %d partitions are known", len(found.Partitions), n)
		}
		for _, p := range found.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return fmt.Errorf("partition %d: %w", p.Partition, err)
			}
		}
		return nil
	}, topic)
}

// onEachBroker waits until every running broker's view of a topic passes.
func (c *Cluster) onEachBroker(ctx context.Context, what string, check func(kmsg.MetadataResponseTopic) error, topic string) error {
	for i, n := range c.nodes {
		err := poll(ctx, what, func(ctx context.Context) (bool, error) {
			if !c.answers(i) {
				return true, nil
			}
			found, err := c.describe(ctx, c.admin.Broker(n.id), topic)
			if err == nil {
				err = check(found)
			}
			return err == nil, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// describe asks one broker, or any, for its view of a topic. It gives up soon:
// whoever was asked may have been frozen meanwhile.
func (c *Cluster) describe(ctx context.Context, asked kmsg.Requestor, topic string) (kmsg.MetadataResponseTopic, error) {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	wanted := kmsg.NewMetadataRequestTopic()
	wanted.Topic = &topic
	request := kmsg.NewPtrMetadataRequest()
	request.Topics = append(request.Topics, wanted)
	answer, err := request.RequestWith(ctx, asked)
	if err != nil {
		return kmsg.MetadataResponseTopic{}, err
	}
	if len(answer.Topics) != 1 {
		return kmsg.MetadataResponseTopic{}, errors.New("the answer names no topic")
	}
	return answer.Topics[0], nil
}
