package harness

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// adminPoll is how often a state of the cluster that nobody announces is read.
const adminPoll = 50 * time.Millisecond

// adminTimeout bounds one administrative call when ctx does not.
const adminTimeout = time.Minute

// poll calls done until it says true. The last reason why not is in the error.
func poll(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	ticker := time.NewTicker(adminPoll)
	defer ticker.Stop()
	for {
		ok, err := done(ctx)
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w (last answer: %v)", what, context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// WaitReady waits until every broker answers, knows all the others, and hands
// out producer ids: a broker that has just started refuses that for a while.
func (c *Cluster) WaitReady(ctx context.Context) error {
	for i := range c.nodes {
		if err := c.waitAnswers(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) waitAnswers(ctx context.Context, i int) error {
	child, err := c.child(i)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-child.Gone():
			cancel(fmt.Errorf("the process ended: %v", child.State()))
		case <-ctx.Done():
		}
	}()
	return poll(ctx, fmt.Sprintf("Kafka broker %d is ready", i), func(ctx context.Context) (bool, error) {
		// A client of its own: its seed is this broker and no other.
		client, err := kgo.NewClient(kgo.SeedBrokers(loopback(c.nodes[i].internal)), kgo.RequestRetries(0))
		if err != nil {
			return false, err
		}
		defer client.Close()
		meta, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, client.SeedBrokers()[0])
		if err != nil {
			return false, err
		}
		if len(meta.Brokers) < len(c.nodes) && c.allRun() {
			return false, fmt.Errorf("it knows %d of %d brokers", len(meta.Brokers), len(c.nodes))
		}
		producer, err := kmsg.NewPtrInitProducerIDRequest().RequestWith(ctx, client.SeedBrokers()[0])
		if err != nil {
			return false, err
		}
		err = kerr.ErrorForCode(producer.ErrorCode)
		return err == nil, err
	})
}

// allRun says whether the process of every broker runs.
func (c *Cluster) allRun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, child := range c.children {
		if child == nil || ended(child) {
			return false
		}
	}
	return true
}

// Topic creates a topic with a unique name and returns the name. It is deleted
// at the test's end.
func Topic(t testing.TB, c *Cluster, partitions int, configs map[string]string) string {
	t.Helper()
	name := unique("topic")
	if err := c.CreateTopic(t.Context(), name, partitions, len(c.nodes), configs); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), adminTimeout/6)
		defer cancel()
		if err := c.DeleteTopic(ctx, name); err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
			t.Logf("the topic %s stays: %v", name, err)
		}
	})
	return name
}

// CreateTopic creates a topic and waits until every running broker knows a
// leader for each partition.
func (c *Cluster) CreateTopic(ctx context.Context, name string, partitions, replicas int, configs map[string]string) error {
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, int32(partitions), int16(replicas)
	for key, value := range configs {
		config := kmsg.NewCreateTopicsRequestTopicConfig()
		config.Name, config.Value = key, &value
		topic.Configs = append(topic.Configs, config)
	}
	request := kmsg.NewPtrCreateTopicsRequest()
	request.Topics = append(request.Topics, topic)
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	answer, err := request.RequestWith(ctx, c.admin)
	if err == nil {
		err = topicError(answer.Topics[0].ErrorCode, answer.Topics[0].ErrorMessage)
	}
	if err != nil {
		return fmt.Errorf("create topic %s: %w", name, err)
	}
	return c.waitPartitions(ctx, name, partitions)
}

// AddPartitions raises the number of partitions of a topic to total.
func (c *Cluster) AddPartitions(ctx context.Context, name string, total int) error {
	topic := kmsg.NewCreatePartitionsRequestTopic()
	topic.Topic, topic.Count = name, int32(total)
	request := kmsg.NewPtrCreatePartitionsRequest()
	request.Topics = append(request.Topics, topic)
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	answer, err := request.RequestWith(ctx, c.admin)
	if err == nil {
		err = topicError(answer.Topics[0].ErrorCode, answer.Topics[0].ErrorMessage)
	}
	if err != nil {
		return fmt.Errorf("add partitions to topic %s: %w", name, err)
	}
	return c.waitPartitions(ctx, name, total)
}

// DeleteTopic deletes a topic and waits until no running broker knows it.
func (c *Cluster) DeleteTopic(ctx context.Context, name string) error {
	topic := kmsg.NewDeleteTopicsRequestTopic()
	topic.Topic = &name
	request := kmsg.NewPtrDeleteTopicsRequest()
	request.TopicNames = []string{name}
	request.Topics = append(request.Topics, topic)
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	answer, err := request.RequestWith(ctx, c.admin)
	if err == nil {
		err = topicError(answer.Topics[0].ErrorCode, answer.Topics[0].ErrorMessage)
	}
	if err != nil {
		return fmt.Errorf("delete topic %s: %w", name, err)
	}
	return c.onEachBroker(ctx, "topic "+name+" is deleted", func(found kmsg.MetadataResponseTopic) error {
		if found.ErrorCode == kerr.UnknownTopicOrPartition.Code {
			return nil
		}
		return errors.New("it is still known")
	}, name)
}

// AlterTopicConfig sets one setting of a topic; a nil value resets it.
func (c *Cluster) AlterTopicConfig(ctx context.Context, name, key string, value *string) error {
	const set, reset = 0, 1
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name, config.Value, config.Op = key, value, set
	if value == nil {
		config.Op = reset
	}
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, name
	resource.Configs = append(resource.Configs, config)
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	request.Resources = append(request.Resources, resource)
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	answer, err := request.RequestWith(ctx, c.admin)
	if err == nil {
		err = topicError(answer.Resources[0].ErrorCode, answer.Resources[0].ErrorMessage)
	}
	if err != nil {
		return fmt.Errorf("set %s of topic %s: %w", key, name, err)
	}
	return nil
}

func topicError(code int16, message *string) error {
	err := kerr.ErrorForCode(code)
	if err != nil && message != nil {
		return fmt.Errorf("%w: %s", err, *message)
	}
	return err
}
