package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The topic's name: in a broker of our own, and where others have topics.
const (
	ownTopic    = "orders"
	sharedTopic = "cdcpub.demo.orders"
)

// broker is a Kafka cluster with the demo's topic.
type broker struct {
	addresses   []string
	topic       string
	partitions  int32
	description string
	own         *kfake.Cluster // nil on brokers of the user
	created     bool           // the topic is ours
}

func openBroker(ctx context.Context, o Options) (*broker, error) {
	b := &broker{addresses: o.Brokers, topic: sharedTopic, partitions: o.Partitions}
	if len(o.Brokers) > 0 {
		b.description = strings.Join(o.Brokers, ",")
		if err := b.createTopic(ctx); err != nil {
			return nil, err
		}
		return b, nil
	}
	b.topic = ownTopic
	own, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(o.Partitions, b.topic))
	if err != nil {
		return nil, fmt.Errorf("start a broker in the process: %w", err)
	}
	b.own, b.addresses = own, own.ListenAddrs()
	b.description = b.addresses[0] + " (in this process)"
	return b, nil
}

func (b *broker) createTopic(ctx context.Context) error {
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = b.topic, b.partitions, -1 // the brokers' default
	request := kmsg.NewPtrCreateTopicsRequest()
	request.Topics, request.TimeoutMillis = append(request.Topics, topic), 15_000
	err := b.admin(ctx, func(ctx context.Context, client *kgo.Client) error {
		answer, err := request.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(answer.Topics[0].ErrorCode)
	})
	if errors.Is(err, kerr.TopicAlreadyExists) {
		return &LeftoversError{
			Objects: []string{"topic " + b.topic},
			Removal: []string{fmt.Sprintf("kafka-topics.sh --bootstrap-server %s --delete --topic %s", b.addresses[0], b.topic)},
		}
	}
	if err != nil {
		return fmt.Errorf("create topic %s at %s: %w", b.topic, b.description, err)
	}
	b.created = true
	return nil
}

func (b *broker) deleteTopic(ctx context.Context) error {
	topic := kmsg.NewDeleteTopicsRequestTopic()
	topic.Topic = &b.topic
	request := kmsg.NewPtrDeleteTopicsRequest()
	request.Topics, request.TopicNames, request.TimeoutMillis = append(request.Topics, topic), []string{b.topic}, 15_000
	err := b.admin(ctx, func(ctx context.Context, client *kgo.Client) error {
		answer, err := request.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(answer.Topics[0].ErrorCode)
	})
	if err != nil {
		return fmt.Errorf("topic %s stays at %s: %w", b.topic, b.description, err)
	}
	return nil
}

// admin calls with a client that gives up at last: a request would be retried
// for as long as no broker can be reached.
func (b *broker) admin(ctx context.Context, call func(context.Context, *kgo.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, closeLimit)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.addresses...))
	if err != nil {
		return err
	}
	defer client.Close()
	return call(ctx, client)
}

func (b *broker) close(ctx context.Context) error {
	switch {
	case b.own != nil:
		b.own.Close()
	case b.created:
		return b.deleteTopic(ctx)
	}
	return nil
}
