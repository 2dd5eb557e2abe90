package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/IBM/sarama"
)

// Cluster is what Describe could learn. It holds no clock difference: no
// request of the Kafka protocol returns the broker's time without writing.
type Cluster struct {
	// ClusterID is empty when the brokers are older than Kafka 0.10.1.
	ClusterID string
	// ControllerID is the node that takes administrative requests. With KRaft
	// it is any live broker, which forwards them.
	ControllerID int32
	// Brokers are sorted by ID: all that the metadata lists, and those that
	// hold replicas of the topics but are not listed because they are down.
	Brokers []Broker
	// Topics are in the order of the request, each name once.
	Topics []Topic
	// BootstrapUnreachable says for each configured address that is of no use
	// why. Addresses that work are not in it.
	BootstrapUnreachable map[string]string

	// CanUseProducerIDs says whether InitProducerID is allowed, which every
	// idempotent producer needs. Since Kafka 2.8 WRITE on any topic is enough
	// (KIP-679), older brokers want IDEMPOTENT_WRITE on the cluster.
	CanUseProducerIDs Permission

	// What a topic gets that is created without these settings, as one of the
	// brokers has it configured. All zero when DefaultsUnseen is not empty; one
	// is zero when the broker does not name that setting.
	AutoCreate         bool  // auto.create.topics.enable
	DefaultPartitions  int32 // num.partitions
	DefaultReplication int16 // default.replication.factor
	DefaultMinISR      int   // min.insync.replicas
	MaxMessageBytes    int64 // message.max.bytes
	// DefaultsUnseen is why they could not be read, or empty.
	DefaultsUnseen string
}

// Broker is one node of the cluster, tried at the address that it tells its
// clients to use.
type Broker struct {
	ID int32
	// Address is host:port of advertised.listeners for the listener we came
	// in by. It is empty when the broker is down.
	Address string
	Rack    string
	// Unreachable is empty, or one sentence: why the producer cannot use the
	// broker at Address, and the cure.
	Unreachable string
	// Version is the release guessed from the request versions that the
	// broker offers, such as "3.9", or "4.1 or newer"; empty when unreachable.
	Version string
}

// Topic is what is known of one topic.
type Topic struct {
	Name string
	// ID is the topic id (KIP-516), empty before Kafka 2.8 or when Missing.
	ID string
	// Missing: the broker says that there is no such topic. It was not
	// created by asking.
	Missing bool
	// Unseen is why nothing else is known of a topic that may exist: no right
	// to describe it, an illegal name. Empty otherwise.
	Unseen     string
	Partitions int32
	// MinReplicas is the smallest number of replicas of a partition, counting
	// those that are down.
	MinReplicas int
	// OfflinePartitions have no leader that clients can use.
	OfflinePartitions []int32
	// UnderMinISR are the partitions that take no writes of ours, since fewer
	// replicas are in sync than min.insync.replicas. Since Kafka 3.7 a
	// partition with fewer replicas than that needs just all of them
	// (KAFKA-15583): compare MinReplicas to see it. Empty when Configs has no
	// min.insync.replicas.
	UnderMinISR []int32
	// MinISRCapped: the broker is Kafka 3.7 or newer in this.
	MinISRCapped bool
	// Configs are the settings in force, with the broker's defaults filled
	// in, of the names in topicConfigs that the broker's version has.
	Configs map[string]string
	// ConfigsUnseen is why Configs is empty although the topic exists.
	ConfigsUnseen string
	// What this client's principal may do with the topic, by the brokers'
	// authorized operations (KIP-430, Kafka 2.3). For a missing topic it is
	// what the rights would be. CanCreate is denied only when neither the
	// topic nor the cluster grants CREATE, and the cluster tells that only to
	// who may DESCRIBE it.
	CanWrite, CanDescribe, CanCreate Permission
}

// Permission is whether an operation is allowed. The zero value is
// PermissionUnknown: the broker does not tell.
type Permission int8

const (
	PermissionUnknown Permission = iota
	PermissionGranted
	PermissionDenied
)

func (p Permission) String() string {
	switch p {
	case PermissionGranted:
		return "granted"
	case PermissionDenied:
		return "denied"
	default:
		return "unknown"
	}
}

// topicConfigs are the settings of a topic that matter to a publisher.
var topicConfigs = []string{
	"cleanup.policy", "compression.type", "max.message.bytes",
	"message.timestamp.after.max.ms", "message.timestamp.before.max.ms",
	"message.timestamp.difference.max.ms", "message.timestamp.type",
	"min.insync.replicas", "retention.bytes", "retention.ms",
	"unclean.leader.election.enable",
}

// Limits of one look at a broker, unless the Config has shorter ones. They are
// short: who looks waits for the slowest broker.
const (
	lookDialTimeout    = 3 * time.Second
	lookRequestTimeout = 4 * time.Second
	lookTimeout        = 10 * time.Second
)

// Describe looks at the cluster and at the named topics, and changes nothing.
// Brokers are tried in parallel, each within about ten seconds. What could not
// be learnt is said in the fields that stay empty. An error means that no
// configured address answers, and then the Cluster, never nil, has only
// BootstrapUnreachable; or that ctx has ended. Without topics the cluster alone
// is described. It opens connections of its own, with the Client's TLS, SASL
// and Dial, and is safe for concurrent use.
func (c *Client) Describe(ctx context.Context, topics []string) (*Cluster, error) {
	a := newLooker(&c.config)
	cluster := &Cluster{ControllerID: -1, BootstrapUnreachable: make(map[string]string)}
	topics = distinct(topics)
	first, err := a.bootstrap(ctx, topics, cluster)
	if err != nil {
		return cluster, fmt.Errorf("kafka: %w", err)
	}
	a.tryBrokers(ctx, first.metadata, cluster)
	a.describeTopics(ctx, topics, first, cluster)
	if err := context.Cause(ctx); err != nil {
		// What was found since may only be the end of ctx.
		return &Cluster{ControllerID: -1}, fmt.Errorf("kafka: describing the cluster: %w", err)
	}
	return cluster, nil
}

func distinct(names []string) []string {
	var once []string
	for _, name := range names {
		if !slices.Contains(once, name) {
			once = append(once, name)
		}
	}
	return once
}

// greeting is the answer of one address.
type greeting struct {
	address  string
	metadata *sarama.MetadataResponse
	offers   offers
	err      error
}

func (g *greeting) clusterID() string {
	if g.metadata.ClusterID == nil {
		return ""
	}
	return *g.metadata.ClusterID
}

// bootstrap asks all configured addresses and returns the answer of the first
// one, in their order, that gives one.
func (a *admin) bootstrap(ctx context.Context, topics []string, into *Cluster) (*greeting, error) {
	greetings := inParallel(a.config.Brokers, func(address string) *greeting { return a.greet(ctx, address, topics) })
	var first *greeting
	for _, g := range greetings {
		switch {
		case g.err != nil:
			into.BootstrapUnreachable[g.address] = explain(g.address, g.err)
		case first == nil:
			first = g
		case g.clusterID() != first.clusterID():
			into.BootstrapUnreachable[g.address] = fmt.Sprintf("%s belongs to another cluster: its id is %q, that of %s is %q; kafka.brokers must name brokers of one cluster",
				g.address, g.clusterID(), first.address, first.clusterID())
		}
	}
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("describing the cluster: %w", err)
	}
	if first == nil {
		var why []error
		for _, address := range slices.Sorted(maps.Keys(into.BootstrapUnreachable)) {
			why = append(why, errors.New(into.BootstrapUnreachable[address]))
		}
		return nil, fmt.Errorf("no broker can be reached: %w", errors.Join(why...))
	}
	into.ClusterID, into.ControllerID = first.clusterID(), first.metadata.ControllerID
	return first, nil
}
