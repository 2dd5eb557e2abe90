package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/cdcpub/cdcpub/internal/kafka"
	"github.com/cdcpub/cdcpub/internal/pipeline"
	"github.com/cdcpub/cdcpub/router"
	"github.com/cdcpub/cdcpub/test/harness"
)

// patience bounds every wait of a test that must come true.
const patience = time.Minute

func patiently(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// ours is a slot that PostgreSQL always says is ours.
type ours struct{}

func (ours) Leased() bool { return true }

func (ours) Look(context.Context) error { return nil }

func newClient(t *testing.T, config kafka.Config) *kafka.Client {
	t.Helper()
	client, err := kafka.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func describe(t *testing.T, client *kafka.Client, topics ...string) *kafka.Cluster {
	t.Helper()
	cluster, err := client.Describe(patiently(t), topics)
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

func create(t *testing.T, client *kafka.Client, topics ...kafka.NewTopic) []kafka.Created {
	t.Helper()
	created, err := client.CreateTopics(patiently(t), topics)
	if err != nil {
		t.Fatal(err)
	}
	if len(created) != len(topics) {
		t.Fatalf("%d results for %d topics", len(created), len(topics))
	}
	return created
}

// publish sends one record. It returns the stall that it met, or "" when the
// record was acknowledged.
func publish(t *testing.T, client *kafka.Client, topic string) string {
	t.Helper()
	return publishAs(t, client, topic, "")
}

func publishAs(t *testing.T, client *kafka.Client, topic, transactionalID string) string {
	t.Helper()
	p := client.NewProducer(transactionalID, ours{}, zap.NewNop())
	defer endNow(p)
	return outcome(t, p, topic)
}

func endNow(p *kafka.Producer) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	p.Close(ended)
	for range p.Results() {
	}
}

// mayFence waits for an answer: on a new cluster there is no coordinator yet.
func mayFence(t *testing.T, client *kafka.Client, id string, want kafka.Permission) {
	t.Helper()
	ctx := patiently(t)
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		got, err := client.MayFence(ctx, id)
		if got != kafka.PermissionUnknown {
			if got != want {
				t.Errorf("may fence: %s, expected %s", got, want)
			}
			return
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatal(err)
		}
	}
}

// outcome sends one record and returns its stall, or "".
func outcome(t *testing.T, p *kafka.Producer, topic string) string {
	t.Helper()
	p.Send([]pipeline.Message{{Seq: 1, Record: router.Record{Topic: topic, Key: []byte("k"), Timestamp: time.UnixMilli(1_700_000_000_000)}}})
	ctx := patiently(t)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case r := <-p.Results():
			if len(r.Acked) != 1 {
				t.Fatalf("result %+v", r)
			}
			return ""
		case <-look.C:
			for _, part := range p.Status().Partitions {
				if strings.Contains(part.Stall, "AUTHORIZATION") {
					return part.Stall
				}
			}
		case <-ctx.Done():
			t.Fatalf("neither acknowledged nor refused: %+v", p.Status())
		}
	}
}

// says asserts that a text has all the parts.
func says(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not say %q", text, part)
		}
	}
}

func failsWith(t *testing.T, c kafka.Created, parts ...string) *kafka.TopicError {
	t.Helper()
	var err *kafka.TopicError
	if !errors.As(c.Err, &err) {
		t.Fatalf("%s: error %v, want a TopicError", c.Name, c.Err)
	}
	says(t, err.Error(), parts...)
	return err
}

func TestOneBroker(t *testing.T) {
	server := harness.Kafka(t, harness.KafkaOptions{Config: map[string]string{
		"num.partitions": "5", "message.max.bytes": "2000000", "broker.rack": "west",
		"auto.create.topics.enable": "true",
	}})
	client := newClient(t, kafka.Config{Brokers: server.Brokers()})

	t.Run("describes what is there and creates nothing by asking", func(t *testing.T) {
		name := harness.Topic(t, server, 3, map[string]string{
			"cleanup.policy": "compact", "max.message.bytes": "123456", "message.timestamp.type": "LogAppendTime",
		})
		cluster := describe(t, client, name, "absent", name, "no such/name")
		if cluster.ClusterID == "" || len(cluster.BootstrapUnreachable) != 0 || cluster.CanUseProducerIDs != kafka.PermissionGranted {
			t.Errorf("cluster %+v", cluster)
		}
		want := []kafka.Broker{{ID: 1, Address: server.Brokers()[0], Rack: "west", Version: "4.4 or newer"}}
		if !reflect.DeepEqual(cluster.Brokers, want) {
			t.Errorf("brokers %+v, want %+v", cluster.Brokers, want)
		}
		if !cluster.AutoCreate || cluster.DefaultPartitions != 5 || cluster.DefaultReplication != 1 || cluster.DefaultMinISR != 1 ||
			cluster.MaxMessageBytes != 2000000 || cluster.DefaultsUnseen != "" {
			t.Errorf("defaults %+v", cluster)
		}
		if len(cluster.Topics) != 3 {
			t.Fatalf("%d topics, want 3", len(cluster.Topics))
		}
		there := cluster.Topics[0]
		if there.Name != name || there.ID == "" || there.Missing || there.Unseen != "" || there.Partitions != 3 || there.MinReplicas != 1 ||
			len(there.OfflinePartitions)+len(there.UnderMinISR) != 0 || there.ConfigsUnseen != "" {
			t.Errorf("topic %+v", there)
		}
		for key, value := range map[string]string{
			"cleanup.policy": "compact", "max.message.bytes": "123456", "message.timestamp.type": "LogAppendTime",
			"min.insync.replicas": "1", "retention.ms": "-1", "retention.bytes": "-1", "compression.type": "producer",
			"unclean.leader.election.enable": "false", "message.timestamp.after.max.ms": "3600000",
			"message.timestamp.before.max.ms": "9223372036854775807",
		} {
			if there.Configs[key] != value {
				t.Errorf("%s is %q, want %q", key, there.Configs[key], value)
			}
		}
		if len(there.Configs) != 10 {
			t.Errorf("configs %v", there.Configs)
		}
		if there.CanWrite != kafka.PermissionGranted || there.CanDescribe != kafka.PermissionGranted || there.CanCreate != kafka.PermissionGranted {
			t.Errorf("rights without an authorizer: %+v", there)
		}
		if absent := cluster.Topics[1]; !absent.Missing || absent.Unseen != "" || absent.CanWrite != kafka.PermissionGranted {
			t.Errorf("absent topic %+v", absent)
		}
		says(t, cluster.Topics[2].Unseen, "no topic can have this name")
		if again := describe(t, client, "absent").Topics[0]; !again.Missing {
			t.Error("asking created the topic")
		}
		if alone := describe(t, client); len(alone.Brokers) != 1 || len(alone.Topics) != 0 || alone.DefaultsUnseen != "" {
			t.Errorf("without topics: %+v", alone)
		}
	})

	t.Run("creates what is missing and leaves the rest", func(t *testing.T) {
		old := harness.Topic(t, server, 2, map[string]string{"retention.ms": "1000000"})
		created := create(t, client,
			kafka.NewTopic{Name: old, Partitions: 9, Replication: 1, Configs: map[string]string{"retention.ms": "5"}},
			kafka.NewTopic{Name: "ordered", Partitions: 4, Replication: 1, Configs: map[string]string{"cleanup.policy": "compact"}},
			kafka.NewTopic{Name: "defaults", Partitions: -1, Replication: -1})
		if want := []kafka.Created{{Name: old}, {Name: "ordered", Created: true}, {Name: "defaults", Created: true}}; !reflect.DeepEqual(created, want) {
			t.Fatalf("created %+v, want %+v", created, want)
		}
		topics := describe(t, client, old, "ordered", "defaults").Topics
		if topics[0].Partitions != 2 || topics[0].Configs["retention.ms"] != "1000000" {
			t.Errorf("the existing topic was altered: %+v", topics[0])
		}
		if topics[1].Partitions != 4 || topics[1].Configs["cleanup.policy"] != "compact" || topics[2].Partitions != 5 {
			t.Errorf("topics %+v", topics)
		}
	})

	t.Run("says why not", func(t *testing.T) {
		created := create(t, client,
			kafka.NewTopic{Name: "replicas", Partitions: 1, Replication: 3},
			kafka.NewTopic{Name: "unknown", Partitions: 1, Replication: 1, Configs: map[string]string{"retension.ms": "5"}},
			kafka.NewTopic{Name: "value", Partitions: 1, Replication: 1, Configs: map[string]string{"retention.ms": "soon"}},
			kafka.NewTopic{Name: "a/b", Partitions: 1, Replication: 1},
			kafka.NewTopic{Name: "good", Partitions: 1, Replication: 1})
		failsWith(t, created[0], `"replicas"`, "replication factor 3", "lists 1 broker", "replication_factor")
		failsWith(t, created[1], "retension.ms=5", "Unknown topic config name", "kafka.create_topics.configs")
		failsWith(t, created[2], "retention.ms=soon", "Invalid value soon")
		failsWith(t, created[3], "the cluster refuses the name")
		for _, c := range created[:4] {
			if c.Created || failsWith(t, c).Retry {
				t.Errorf("%+v: nothing a retry may cure", c)
			}
		}
		if !created[4].Created || created[4].Err != nil {
			t.Errorf("the good topic suffers: %+v", created[4])
		}
	})

	t.Run("the listener of a controller is named", func(t *testing.T) {
		controller := server.Controllers()[0]
		client := newClient(t, kafka.Config{Brokers: []string{controller}})
		cluster, err := client.Describe(patiently(t), nil)
		if err == nil {
			t.Fatal("a controller was taken for a broker")
		}
		says(t, cluster.BootstrapUnreachable[controller], "KRaft controller")
	})
}

func TestTheClassicContainerMistake(t *testing.T) {
	for name, test := range map[string]struct {
		advertised string
		says       []string
	}{
		"a name of another network": {"kafka.invalid:9092", []string{"the name kafka.invalid "}},
		"a port nobody listens on":  {closedPort(t), []string{"refuses the connection"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := harness.Kafka(t, harness.KafkaOptions{Advertised: test.advertised})
			topic := harness.Topic(t, server, 1, nil)
			dead := closedPort(t)
			client := newClient(t, kafka.Config{Brokers: []string{server.Listeners()[0], dead}})
			cluster := describe(t, client, topic, "absent")
			says(t, cluster.Brokers[0].Unreachable, append(test.says, test.advertised, "broker 1", "advertised.listeners")...)
			if got := slices.Collect(maps.Keys(cluster.BootstrapUnreachable)); !slices.Equal(got, []string{dead}) {
				t.Errorf("unreachable bootstrap %v", cluster.BootstrapUnreachable)
			}
			says(t, cluster.BootstrapUnreachable[dead], dead+" refuses the connection")
			if there := cluster.Topics[0]; there.Partitions != 1 || there.Configs["min.insync.replicas"] != "1" || !cluster.Topics[1].Missing {
				t.Errorf("topics %+v", cluster.Topics)
			}
			says(t, cluster.DefaultsUnseen, "advertised address")
			// With KRaft any broker that answers can create.
			if made := create(t, client, kafka.NewTopic{Name: "made", Partitions: 2, Replication: 1}); !made[0].Created || made[0].Err != nil {
				t.Errorf("created %+v", made)
			}
		})
	}
}

// closedPort is an address where nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestOneOfThreeBrokersIsDead(t *testing.T) {
	server := harness.Kafka(t, harness.KafkaOptions{Brokers: 3})
	client := newClient(t, kafka.Config{Brokers: server.Brokers()})
	strict := harness.Topic(t, server, 3, map[string]string{"min.insync.replicas": "3"})
	single := "single"
	created := create(t, client, kafka.NewTopic{Name: single, Partitions: 3, Replication: 1}, kafka.NewTopic{Name: "wide", Partitions: 6, Replication: -1})
	for _, c := range created {
		if !c.Created || c.Err != nil {
			t.Fatalf("created %+v", c)
		}
	}
	whole := describe(t, client, strict, single, "wide")
	for _, b := range whole.Brokers {
		if b.Unreachable != "" || b.Version == "" {
			t.Errorf("broker %+v", b)
		}
	}
	if whole.Topics[0].MinReplicas != 3 || whole.Topics[1].MinReplicas != 1 || whole.Topics[2].MinReplicas != 3 {
		t.Errorf("topics %+v", whole.Topics)
	}
	for _, topic := range whole.Topics {
		if len(topic.OfflinePartitions)+len(topic.UnderMinISR) != 0 {
			t.Errorf("healthy topic %+v", topic)
		}
	}

	// One replica though min.insync.replicas is 2: still written to.
	if stall := publish(t, client, single); stall != "" {
		t.Errorf("a topic that is not under its min ISR takes no record: %s", stall)
	}
	if err := server.Kill(2); err != nil {
		t.Fatal(err)
	}
	ctx := patiently(t)
	var cluster *kafka.Cluster
	for {
		var err error
		if cluster, err = client.Describe(ctx, []string{strict, single, "wide"}); err != nil {
			t.Fatalf("%v; the last view is %+v", err, cluster)
		}
		// As long as the cluster still lists the dead broker, its address is
		// what cannot be used.
		if b := cluster.Brokers[2]; b.Unreachable == "" {
			t.Fatalf("the dead broker is reachable: %+v", b)
		} else if b.Address != "" {
			says(t, b.Unreachable, "broker 3", "refuses the connection")
		} else if len(cluster.Topics[0].UnderMinISR) == 3 && len(cluster.Topics[1].OfflinePartitions) == 1 {
			break // the controller has told of the replicas too
		}
	}
	says(t, cluster.Brokers[2].Unreachable, "broker 3", "it is down")
	says(t, cluster.BootstrapUnreachable[server.Brokers()[2]], "refuses the connection")
	for _, b := range cluster.Brokers[:2] {
		if b.Unreachable != "" {
			t.Errorf("broker %+v", b)
		}
	}
	byName := func(i int) string {
		return fmt.Sprintf("offline %v, under min ISR %v", cluster.Topics[i].OfflinePartitions, cluster.Topics[i].UnderMinISR)
	}
	if got := byName(0); got != "offline [], under min ISR [0 1 2]" {
		t.Errorf("strict: %s", got)
	}
	if offline := cluster.Topics[1].OfflinePartitions; len(offline) != 1 {
		t.Errorf("single: %s", byName(1))
	}
	if got := byName(2); got != "offline [], under min ISR []" {
		t.Errorf("wide: %s", got)
	}

	after := create(t, client,
		kafka.NewTopic{Name: "after", Partitions: 4, Replication: 2},
		kafka.NewTopic{Name: "four", Partitions: 4, Replication: 4})
	if !after[0].Created || after[0].Err != nil {
		t.Errorf("created %+v", after[0])
	}
	failsWith(t, after[1], "replication factor 4", "lists 2 brokers", "only 3 broker(s) are registered")
}
