package kafka

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/IBM/sarama"

	"github.com/cdcpub/cdcpub/internal/pause"
)

// The bits of authorized operations (AclOperation.code).
const (
	operationWrite    = 4
	operationCreate   = 5
	operationDescribe = 8
)

// permitted reads one operation from a set. Brokers give INT32_MIN when they
// were not asked or will not tell (KIP-430).
func permitted(set int32, operation int) Permission {
	switch {
	case set == math.MinInt32:
		return PermissionUnknown
	case set&(1<<operation) != 0:
		return PermissionGranted
	default:
		return PermissionDenied
	}
}

// either is the permission to do what one of two rights is enough for.
func either(x, y Permission) Permission {
	switch {
	case x == PermissionGranted || y == PermissionGranted:
		return PermissionGranted
	case x == PermissionDenied && y == PermissionDenied:
		return PermissionDenied
	default:
		return PermissionUnknown
	}
}

// describeTopics fills in the topics, and what the rights on the cluster add.
func (a *admin) describeTopics(ctx context.Context, names []string, from *greeting, into *Cluster) {
	found := make(map[string]*sarama.TopicMetadata, len(from.metadata.Topics))
	for _, m := range from.metadata.Topics {
		found[m.Name] = m
	}
	for _, name := range names {
		into.Topics = append(into.Topics, topicOf(name, found[name], from.metadata.Version))
	}
	var facts clusterFacts
	err := a.visit(ctx, from.address, func(b *sarama.Broker, _ offers) error { return facts.ask(ctx, b, into.Topics) })
	into.CanUseProducerIDs = facts.producerIDs
	for i := range into.Topics {
		t := &into.Topics[i]
		t.CanCreate = either(t.CanCreate, facts.create)
		if t.Missing || t.Unseen != "" {
			continue
		}
		switch r := facts.configs[t.Name]; {
		case r == nil && err != nil:
			t.ConfigsUnseen = "its settings cannot be read: " + explain(from.address, err)
		case r == nil:
			t.ConfigsUnseen = "its settings cannot be read: the broker's answer lacks them"
		case r.code != sarama.ErrNoError:
			t.ConfigsUnseen = configsRefused("its settings", r)
		default:
			t.Configs = r.values
			t.MinISRCapped = from.offers[keyProduce] >= cappedMinISR
			t.UnderMinISR = underMinISR(found[t.Name], integer(r.values["min.insync.replicas"]), t.MinISRCapped)
		}
	}
}

// topicOf reads the metadata of one topic, of the given version of Metadata.
func topicOf(name string, m *sarama.TopicMetadata, version int16) Topic {
	t := Topic{Name: name}
	if m == nil {
		t.Unseen = "the broker's answer lacks the topic"
		return t
	}
	// Before version 8 there are no operations, and sarama leaves the zero.
	const withOperations = 8
	if version >= withOperations {
		t.CanWrite = permitted(m.TopicAuthorizedOperations, operationWrite)
		t.CanDescribe = permitted(m.TopicAuthorizedOperations, operationDescribe)
		t.CanCreate = permitted(m.TopicAuthorizedOperations, operationCreate)
	}
	switch m.Err {
	case sarama.ErrNoError, sarama.ErrLeaderNotAvailable:
		t.fill(m)
	case sarama.ErrUnknownTopicOrPartition:
		t.Missing = true
	case sarama.ErrTopicAuthorizationFailed:
		// WRITE implies DESCRIBE, so who may not describe may not write. The
		// broker says this of topics that exist and of those that do not.
		t.CanDescribe, t.CanWrite = PermissionDenied, PermissionDenied
		t.Unseen = "the principal may not describe the topic, so whether it exists is not known: grant the operation Write on it, which includes Describe"
	case sarama.ErrInvalidTopic:
		t.Unseen = "no topic can have this name: it may have up to 249 letters, digits, dots, underscores and hyphens, and must not be . or .."
	default:
		t.Unseen = "the broker does not describe the topic: " + refusal(m.Err, "")
	}
	return t
}

// fill takes the facts of a topic that exists.
func (t *Topic) fill(m *sarama.TopicMetadata) {
	if m.Uuid != (sarama.Uuid{}) {
		t.ID = m.Uuid.String()
	}
	t.Partitions = int32(len(m.Partitions))
	for i, p := range m.Partitions {
		if i == 0 || len(p.Replicas) < t.MinReplicas {
			t.MinReplicas = len(p.Replicas)
		}
		if p.Leader < 0 {
			t.OfflinePartitions = append(t.OfflinePartitions, p.ID)
		}
	}
	slices.Sort(t.OfflinePartitions)
}

// cappedMinISR is the version of Produce that came with Kafka 3.7, which never
// asks for more replicas in sync than the partition has (KAFKA-15583).
const cappedMinISR = 10

// underMinISR are the partitions with fewer than least replicas in sync.
func underMinISR(m *sarama.TopicMetadata, least int64, capped bool) []int32 {
	var under []int32
	for _, p := range m.Partitions {
		needs := least
		if capped {
			needs = min(least, int64(len(p.Replicas)))
		}
		if int64(len(p.Isr)) < needs {
			under = append(under, p.ID)
		}
	}
	slices.Sort(under)
	return under
}

// clusterFacts are the answers of one broker to what metadata does not tell.
type clusterFacts struct {
	configs     map[string]*configAnswer
	create      Permission
	producerIDs Permission
}

// ask fills in the facts until the connection fails.
func (f *clusterFacts) ask(ctx context.Context, b *sarama.Broker, topics []Topic) error {
	var resources []*sarama.ConfigResource
	for _, t := range topics {
		if !t.Missing && t.Unseen == "" {
			resources = append(resources, &sarama.ConfigResource{Type: sarama.TopicResource, Name: t.Name, ConfigNames: topicConfigs})
		}
	}
	var err error
	if len(resources) > 0 {
		if f.configs, err = askConfigs(b, resources); err != nil {
			return fmt.Errorf("DescribeConfigs: %w", err)
		}
	}
	if f.producerIDs, err = askProducerID(ctx, b); err != nil {
		return fmt.Errorf("InitProducerID: %w", err)
	}
	f.create, err = askCreate(b)
	return err
}

// askProducerID takes one of 2^63 producer ids and does not use it. A broker
// that has just started may have none yet; it is asked again for a while.
func askProducerID(ctx context.Context, b *sarama.Broker) (Permission, error) {
	waiting, cancel := context.WithTimeout(ctx, identityLimit)
	defer cancel()
	for {
		response, err := b.InitProducerID(&sarama.InitProducerIDRequest{Version: 4, ProducerID: -1, ProducerEpoch: -1})
		switch {
		case err != nil:
			return PermissionUnknown, err
		case response.Err == sarama.ErrNoError:
			return PermissionGranted, nil
		case response.Err == sarama.ErrClusterAuthorizationFailed:
			return PermissionDenied, nil
		case !isNotYet(response.Err) || pause.For(waiting, settlePause) != nil:
			return PermissionUnknown, nil
		}
	}
}

// askCreate reads whether CREATE on the cluster is granted. Without DESCRIBE
// on the cluster the broker gives an empty set, which tells nothing.
func askCreate(b *sarama.Broker) (Permission, error) {
	// Version 8 is the first to ask that and 10 the last.
	request := &sarama.MetadataRequest{Version: 8, Topics: []string{noTopic}, IncludeClusterAuthorizedOperations: true}
	response, err := b.GetMetadata(request)
	if err != nil || response.Version < 8 || response.ClusterAuthorizedOperations == 0 {
		return PermissionUnknown, err
	}
	return permitted(response.ClusterAuthorizedOperations, operationCreate), nil
}
