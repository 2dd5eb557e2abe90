package kafka_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/cdcpub/cdcpub/internal/kafka"
	"github.com/cdcpub/cdcpub/test/harness"
)

// guarded is a real broker with Kafka's own authorizer. Clients come with SASL
// and may do nothing without an ACL; the harness itself comes in by another
// listener, as a super user.
type guarded struct {
	*harness.Cluster
	admin *kgo.Client
}

// password always gives the same one.
func password(p string) func() (string, error) {
	return func() (string, error) { return p, nil }
}

func startGuarded(t *testing.T) *guarded {
	t.Helper()
	users := []string{"nobody", "runs", "checks", "creates", "creator", "blind"}
	module := "org.apache.kafka.common.security.plain.PlainLoginModule required"
	for _, user := range users {
		module += ` user_` + user + `="hush"`
	}
	server := harness.Kafka(t, harness.KafkaOptions{Config: map[string]string{
		"listener.security.protocol.map":               "CLIENT:SASL_PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"sasl.enabled.mechanisms":                      "PLAIN",
		"listener.name.client.sasl.enabled.mechanisms": "PLAIN",
		"listener.name.client.plain.sasl.jaas.config":  module + ";",
		"authorizer.class.name":                        "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users":                                  "User:ANONYMOUS",
	}})
	admin, err := kgo.NewClient(kgo.SeedBrokers(server.Direct()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(admin.Close)
	return &guarded{server, admin}
}

func login(user, password string) *kafka.SASL {
	return &kafka.SASL{User: user, Password: func() (string, error) { return password, nil }}
}

func (g *guarded) as(t *testing.T, user string) *kafka.Client {
	t.Helper()
	return newClient(t, kafka.Config{Brokers: g.Brokers(), SASL: login(user, "hush")})
}

// allow adds an ACL, and waits until the broker has it.
func (g *guarded) allow(t *testing.T, user string, resource kmsg.ACLResourceType, name string, operation kmsg.ACLOperation) {
	t.Helper()
	creation := kmsg.NewCreateACLsRequestCreation()
	creation.ResourceType, creation.ResourceName, creation.ResourcePatternType = resource, name, kmsg.ACLResourcePatternTypeLiteral
	creation.Principal, creation.Host = "User:"+user, "*"
	creation.Operation, creation.PermissionType = operation, kmsg.ACLPermissionTypeAllow
	request := kmsg.NewPtrCreateACLsRequest()
	request.Creations = append(request.Creations, creation)
	ctx := patiently(t)
	answer, err := request.RequestWith(ctx, g.admin)
	if err == nil {
		err = kerr.ErrorForCode(answer.Results[0].ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !g.has(ctx, t, creation) {
		<-look.C
	}
}

func (g *guarded) has(ctx context.Context, t *testing.T, c kmsg.CreateACLsRequestCreation) bool {
	t.Helper()
	request := kmsg.NewPtrDescribeACLsRequest()
	request.ResourceType, request.ResourceName, request.ResourcePatternType = c.ResourceType, &c.ResourceName, c.ResourcePatternType
	request.Principal, request.Operation, request.PermissionType = &c.Principal, c.Operation, c.PermissionType
	answer, err := request.RequestWith(ctx, g.admin)
	if err != nil {
		t.Fatal(err)
	}
	return len(answer.Resources) > 0
}

const (
	onTransactionalID = kmsg.ACLResourceTypeTransactionalId
	onTopic           = kmsg.ACLResourceTypeTopic
	onCluster         = kmsg.ACLResourceTypeCluster
	cluster           = "kafka-cluster"
)

// Which ACLs each command needs, and that none of them is superfluous.
func TestRights(t *testing.T) {
	g := startGuarded(t)
	topic := harness.Topic(t, g.Cluster, 2, nil)

	t.Run("without any", func(t *testing.T) {
		client := g.as(t, "nobody")
		seen := describe(t, client, topic, "absent")
		for _, one := range seen.Topics {
			if one.Missing || one.CanDescribe != kafka.PermissionDenied || one.CanWrite != kafka.PermissionDenied || one.CanCreate != kafka.PermissionUnknown {
				t.Errorf("topic %+v", one)
			}
			says(t, one.Unseen, "may not describe", "whether it exists is not known", "Write")
		}
		if seen.CanUseProducerIDs != kafka.PermissionDenied || seen.Brokers[0].Unreachable != "" {
			t.Errorf("cluster %+v", seen)
		}
		says(t, seen.DefaultsUnseen, "DescribeConfigs on the cluster")
		says(t, publish(t, client, topic), "TOPIC_AUTHORIZATION_FAILED")
		created := create(t, client, kafka.NewTopic{Name: "absent", Partitions: 1, Replication: 1}, kafka.NewTopic{Name: topic, Partitions: 1, Replication: 1})
		failsWith(t, created[0], "the principal may not create it", "kafka-acls.sh --bootstrap-server "+g.Brokers()[0],
			"--allow-principal 'User:nobody' --operation Create --topic 'absent'")
		failsWith(t, created[1], "the principal may not create it")
	})

	t.Run("run needs WRITE on its topics and nothing else", func(t *testing.T) {
		g.allow(t, "runs", onTopic, topic, kmsg.ACLOperationWrite)
		client := g.as(t, "runs")
		if stall := publish(t, client, topic); stall != "" {
			t.Errorf("not published: %s", stall)
		}
		seen := describe(t, client, topic)
		one := seen.Topics[0]
		if one.CanWrite != kafka.PermissionGranted || one.CanDescribe != kafka.PermissionGranted || one.CanCreate != kafka.PermissionUnknown ||
			one.Partitions != 2 || seen.CanUseProducerIDs != kafka.PermissionGranted {
			t.Errorf("topic %+v in %+v", one, seen)
		}
		says(t, one.ConfigsUnseen, "DescribeConfigs on the topic")
		if one.Configs != nil {
			t.Errorf("configs %v", one.Configs)
		}
	})

	t.Run("a fence needs WRITE on the transactional id, and asking harms nobody", func(t *testing.T) {
		const id = "cdcpub-shop-1"
		client := g.as(t, "runs")
		mayFence(t, client, id, kafka.PermissionDenied)
		if stall := publishAs(t, client, topic, id); stall != "" {
			t.Errorf("without the right it does not publish: %s", stall)
		}
		g.allow(t, "runs", onTransactionalID, id, kmsg.ACLOperationWrite)
		mayFence(t, client, id, kafka.PermissionGranted)
		p := client.NewProducer(id, ours{}, zap.NewNop())
		defer endNow(p)
		for range 2 {
			if stall := outcome(t, p, topic); stall != "" {
				t.Errorf("a publisher that has the fence does not publish: %s", stall)
			}
			mayFence(t, client, id, kafka.PermissionGranted)
		}
	})

	t.Run("check wants DESCRIBE_CONFIGS on topics and cluster too", func(t *testing.T) {
		g.allow(t, "checks", onTopic, topic, kmsg.ACLOperationWrite)
		g.allow(t, "checks", onTopic, topic, kmsg.ACLOperationDescribeConfigs)
		client := g.as(t, "checks")
		seen := describe(t, client, topic)
		if seen.Topics[0].ConfigsUnseen != "" || seen.Topics[0].Configs["cleanup.policy"] != "delete" {
			t.Errorf("topic %+v", seen.Topics[0])
		}
		says(t, seen.DefaultsUnseen, "DescribeConfigs on the cluster")
		g.allow(t, "checks", onCluster, cluster, kmsg.ACLOperationDescribeConfigs)
		if seen = describe(t, client, topic); seen.DefaultsUnseen != "" || seen.MaxMessageBytes == 0 {
			t.Errorf("cluster %+v", seen)
		}
	})

	t.Run("init wants CREATE on the topics, and DESCRIBE to see them", func(t *testing.T) {
		g.allow(t, "blind", onTopic, "blindly", kmsg.ACLOperationCreate)
		created := create(t, g.as(t, "blind"), kafka.NewTopic{Name: "blindly", Partitions: 1, Replication: 1})
		if !created[0].Created {
			t.Errorf("created %+v", created[0])
		}
		failsWith(t, created[0], "was created, but the principal may not describe it", "--operation Write --topic 'blindly'")

		g.allow(t, "creates", onTopic, "made", kmsg.ACLOperationCreate)
		g.allow(t, "creates", onTopic, "made", kmsg.ACLOperationDescribe)
		client := g.as(t, "creates")
		if before := describe(t, client, "made").Topics[0]; !before.Missing || before.CanCreate != kafka.PermissionGranted || before.CanWrite != kafka.PermissionDenied {
			t.Errorf("before %+v", before)
		}
		topics := []kafka.NewTopic{{Name: "made", Partitions: 3, Replication: 1, Configs: map[string]string{"cleanup.policy": "compact"}}}
		if created := create(t, client, topics...); !created[0].Created || created[0].Err != nil {
			t.Errorf("created %+v", created[0])
		}
		if again := create(t, client, topics...); again[0].Created || again[0].Err != nil {
			t.Errorf("again %+v", again[0])
		}
	})

	t.Run("CREATE on the cluster serves all topics, and shows with DESCRIBE there", func(t *testing.T) {
		g.allow(t, "creator", onCluster, cluster, kmsg.ACLOperationCreate)
		g.allow(t, "creator", onTopic, "anything", kmsg.ACLOperationDescribe)
		client := g.as(t, "creator")
		if one := describe(t, client, "anything").Topics[0]; one.CanCreate != kafka.PermissionUnknown {
			t.Errorf("CREATE on the cluster cannot be seen, yet it is %v", one.CanCreate)
		}
		g.allow(t, "creator", onCluster, cluster, kmsg.ACLOperationDescribe)
		if one := describe(t, client, "anything").Topics[0]; one.CanCreate != kafka.PermissionGranted {
			t.Errorf("topic %+v", one)
		}
		if made := create(t, client, kafka.NewTopic{Name: "anything", Partitions: 1, Replication: 1}); !made[0].Created || made[0].Err != nil {
			t.Errorf("created %+v", made[0])
		}
	})

	t.Run("CREATE is denied for who may see that nothing grants it", func(t *testing.T) {
		g.allow(t, "runs", onCluster, cluster, kmsg.ACLOperationDescribe)
		if one := describe(t, g.as(t, "runs"), topic).Topics[0]; one.CanCreate != kafka.PermissionDenied {
			t.Errorf("topic %+v", one)
		}
	})

	t.Run("a wrong password is told apart", func(t *testing.T) {
		client := newClient(t, kafka.Config{Brokers: g.Brokers(), SASL: login("runs", "wrong")})
		seen, err := client.Describe(patiently(t), []string{topic})
		if err == nil {
			t.Fatal("let in")
		}
		says(t, seen.BootstrapUnreachable[g.Brokers()[0]], `SASL PLAIN`, `user "runs"`)
		if strings.Contains(err.Error(), "wrong") {
			t.Errorf("the password shows: %v", err)
		}
	})

	t.Run("SASL forgotten", func(t *testing.T) {
		_, err := newClient(t, kafka.Config{Brokers: g.Brokers()}).Describe(patiently(t), nil)
		if err == nil {
			t.Fatal("let in")
		}
		says(t, err.Error(), "SASL")
	})
}
