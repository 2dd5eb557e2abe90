package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

const createTopicsKey = 19

func create(t *testing.T, config Config, topics ...NewTopic) []Created {
	t.Helper()
	created, err := newTestClient(t, config).CreateTopics(patiently(t), topics)
	if err != nil {
		t.Fatal(err)
	}
	if len(created) != len(topics) {
		t.Fatalf("%d results for %d topics", len(created), len(topics))
	}
	return created
}

func newTopics(names ...string) []NewTopic {
	topics := make([]NewTopic, len(names))
	for i, name := range names {
		topics[i] = NewTopic{Name: name, Partitions: 3, Replication: 1}
	}
	return topics
}

// refuse makes the brokers answer the first n requests to create with code.
func refuse(c *kfake.Cluster, code *kerr.Error, message *string, n int64) *atomic.Int64 {
	var requests atomic.Int64
	c.ControlKey(createTopicsKey, func(request kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if requests.Add(1) > n {
			return nil, nil, false
		}
		response := request.ResponseKind().(*kmsg.CreateTopicsResponse)
		for _, asked := range request.(*kmsg.CreateTopicsRequest).Topics {
			topic := kmsg.NewCreateTopicsResponseTopic()
			topic.Topic, topic.ErrorCode, topic.ErrorMessage = asked.Topic, code.Code, message
			response.Topics = append(response.Topics, topic)
		}
		return response, nil, true
	})
	return &requests
}

func TestCreateGoesToTheControllerAndOnlyForWhatIsMissing(t *testing.T) {
	for name, version := range map[string]*kversion.Versions{"1.0": kversion.V1_0_0(), "2.4": kversion.V2_4_0(), "4.0": kversion.V4_0_0()} {
		t.Run(name, func(t *testing.T) {
			c := startCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(2, "old"), kfake.MaxVersions(version))
			created := create(t, fastConfig(c.ListenAddrs()...), newTopics("old", "new")...)
			if want := []Created{{Name: "old"}, {Name: "new", Created: true}}; !reflect.DeepEqual(created, want) {
				t.Errorf("created %+v, want %+v", created, want)
			}
			if n := len(c.PartitionInfos("old")); n != 2 {
				t.Errorf("the old topic has %d partitions", n)
			}
		})
	}
}

// lossyConn loses the answer to a request to create topics, and ends.
type lossyConn struct {
	net.Conn
	losses *atomic.Int64
	losing atomic.Bool
}

func (c *lossyConn) Write(b []byte) (int, error) {
	if len(b) > 6 && binary.BigEndian.Uint16(b[4:]) == createTopicsKey && c.losses.Add(-1) >= 0 {
		c.losing.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *lossyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.losing.Load() {
		// The broker has answered, so it has done the work.
		_ = c.Conn.Close()
		return 0, io.EOF
	}
	return n, err
}

func TestAnAnswerThatIsLostIsNotAFailure(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1))
	var losses atomic.Int64
	losses.Store(1)
	config := fastConfig(c.ListenAddrs()...)
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &lossyConn{Conn: conn, losses: &losses}, nil
	}
	created := create(t, config, newTopics("orders")...)
	if want := []Created{{Name: "orders", Created: true}}; !reflect.DeepEqual(created, want) || losses.Load() >= 1 {
		t.Errorf("created %+v, want %+v", created, want)
	}
}

// Kafka's own answer to who waits too short, too, leaves the topic created.
func TestAControllerThatIsLateIsNotAFailure(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1))
	c.Fault(kfake.Fault{Keys: []kmsg.Key{createTopicsKey}, Err: kerr.RequestTimedOut, Count: 1})
	created := create(t, fastConfig(c.ListenAddrs()...), newTopics("orders")...)
	if want := []Created{{Name: "orders", Created: true}}; !reflect.DeepEqual(created, want) {
		t.Errorf("created %+v, want %+v", created, want)
	}
}

func TestWhatPassesIsTriedAgain(t *testing.T) {
	for _, code := range []*kerr.Error{kerr.NotController, kerr.ThrottlingQuotaExceeded, kerr.UnknownServerError, kerr.NetworkException} {
		t.Run(code.Message, func(t *testing.T) {
			c := startCluster(t, kfake.NumBrokers(2))
			requests := refuse(c, code, nil, 2)
			created := create(t, fastConfig(c.ListenAddrs()...), newTopics("orders")...)
			if !created[0].Created || created[0].Err != nil || requests.Load() != 3 {
				t.Errorf("created %+v after %d requests", created[0], requests.Load())
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	message := kmsg.StringPtr("topics need an owner")
	for _, test := range []struct {
		code  *kerr.Error
		says  []string
		retry bool
	}{
		{kerr.PolicyViolation, []string{"a policy of the cluster forbids it", "topics need an owner", "retention.ms=5", "3 partitions"}, false},
		{kerr.InvalidConfig, []string{"refuses a config of retention.ms=5", "topics need an owner", "kafka.create_topics.configs"}, false},
		{kerr.InvalidReplicationFactor, []string{"replication factor of the broker's default is not possible", "lists 2 brokers"}, false},
		{kerr.InvalidPartitions, []string{"refuses 3 partitions"}, false},
		{kerr.InvalidTopicException, []string{"refuses the name", "dots for underscores"}, false},
		{kerr.TopicAuthorizationFailed, []string{"may not create it", "kafka-acls.sh", "'User:<the principal of cdcpub>'", "--operation Create --topic 'orders'"}, false},
		{kerr.ClusterAuthorizationFailed, []string{"may not create it", "--operation Create"}, false},
		{kerr.ThrottlingQuotaExceeded, []string{"quota"}, true},
		{kerr.NotController, []string{"NOT_CONTROLLER (41)", "run the command again"}, true},
		{kerr.UnsupportedVersion, []string{"UNSUPPORTED_VERSION (35)"}, false},
	} {
		t.Run(test.code.Message, func(t *testing.T) {
			c := startCluster(t, kfake.NumBrokers(2))
			requests := refuse(c, test.code, message, 1000)
			created := create(t, fastConfig(c.ListenAddrs()...),
				NewTopic{Name: "orders", Partitions: 3, Replication: -1, Configs: map[string]string{"retention.ms": "5"}})
			var err *TopicError
			if !errors.As(created[0].Err, &err) || created[0].Created {
				t.Fatalf("created %+v", created[0])
			}
			says(t, err.Error(), append(test.says, `topic "orders"`)...)
			if tried := requests.Load() > 1; err.Retry != test.retry || tried != test.retry {
				t.Errorf("retry %t after %d requests, want %t", err.Retry, requests.Load(), test.retry)
			}
		})
	}
}

func TestBrokersBefore24HaveNoDefaultCounts(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.MaxVersions(kversion.V2_3_0()))
	created := create(t, fastConfig(c.ListenAddrs()...),
		NewTopic{Name: "a", Partitions: -1, Replication: 1}, NewTopic{Name: "b", Partitions: 1, Replication: -1}, NewTopic{Name: "c", Partitions: 1, Replication: 1})
	for _, one := range created[:2] {
		if one.Err == nil || one.Created {
			t.Fatalf("created %+v", one)
		}
		says(t, one.Err.Error(), "before Kafka 2.4", "is Kafka 2.3", "kafka.create_topics.replication_factor")
	}
	if !created[2].Created || created[2].Err != nil {
		t.Errorf("created %+v", created[2])
	}
}

func TestCreateMany(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(2))
	var names []string
	for i := range 2*createBatch + 7 {
		names = append(names, "topic-"+string(rune('a'+i%26))+string(rune('a'+i/26)))
	}
	for i, one := range create(t, fastConfig(c.ListenAddrs()...), newTopics(names...)...) {
		if one.Name != names[i] || !one.Created || one.Err != nil {
			t.Errorf("created %+v, want %s", one, names[i])
		}
	}
}

func TestNewTopicsAreWaitedFor(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(2))
	var looks atomic.Int64
	c.ControlKey(3, func(request kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		metadata := request.(*kmsg.MetadataRequest)
		if len(metadata.Topics) != 1 || *metadata.Topics[0].Topic != "orders" || c.LeaderFor("orders", 0) < 0 || looks.Add(1) > 5 {
			return nil, nil, false
		}
		response := metadata.ResponseKind().(*kmsg.MetadataResponse)
		b := kmsg.NewMetadataResponseBroker()
		b.NodeID, b.Host, b.Port = 0, "127.0.0.1", 1
		topic := kmsg.NewMetadataResponseTopic()
		topic.Topic, topic.ErrorCode = kmsg.StringPtr("orders"), kerr.UnknownTopicOrPartition.Code
		response.Brokers, response.Topics = append(response.Brokers, b), append(response.Topics, topic)
		return response, nil, true
	})
	created := create(t, fastConfig(c.ListenAddrs()...), newTopics("orders")...)
	if !created[0].Created || created[0].Err != nil || looks.Load() <= 5 {
		t.Errorf("created %+v after %d looks", created[0], looks.Load())
	}
}

func TestCreateEndsWithItsContext(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1))
	ctx, cancel := context.WithCancelCause(context.Background())
	c.ControlKey(createTopicsKey, func(kmsg.Request) (kmsg.Response, error, bool) {
		cancel(errClosed)
		return nil, nil, false
	})
	created, err := newTestClient(t, fastConfig(c.ListenAddrs()...)).CreateTopics(ctx, newTopics("orders"))
	if !errors.Is(err, errClosed) || len(created) != 1 {
		t.Errorf("created %+v, error %v", created, err)
	}
}

func TestAllThatIsWrongWithAListOfNewTopics(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1))
	client := newTestClient(t, fastConfig(c.ListenAddrs()...))
	_, err := client.CreateTopics(patiently(t), []NewTopic{
		{Name: "a", Partitions: 0, Replication: 1}, {Name: "a", Partitions: 1, Replication: 1}, {Name: "b", Partitions: 1, Replication: -2}, {Partitions: 1, Replication: 1},
	})
	if err == nil {
		t.Fatal("accepted")
	}
	says(t, err.Error(), `topic "a": 0 partitions`, `topic "a": is to be created twice`, `topic "b": replication factor -2`, "the name is empty")
	if created, err := client.CreateTopics(patiently(t), nil); created != nil || err != nil {
		t.Errorf("nothing to create: %v, %v", created, err)
	}
	down, err := newTestClient(t, fastConfig("127.0.0.1:1")).CreateTopics(patiently(t), newTopics("a"))
	if err == nil || len(down) != 1 || down[0].Created {
		t.Errorf("created %+v, error %v", down, err)
	}
}
