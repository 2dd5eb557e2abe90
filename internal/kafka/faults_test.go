package kafka

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cdcpub/cdcpub/internal/pipeline"
)

func TestLostAnswersAreNotRepeated(t *testing.T) {
	var flaky flakyNet
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"), kfake.ListenFn(flaky.listen))
	s := startSession(t, newTestClient(t, fastConfig(c.ListenAddrs()...)), always)
	s.Send(s.numbered("orders", 100, oneKey))
	s.acks(100)
	flaky.drops.Store(3)
	s.Send(s.numbered("orders", 900, oneKey))
	s.acks(1000)
	if left := flaky.drops.Load(); left > 0 {
		t.Fatalf("%d answers were not lost", left)
	}
	requireExactly(t, c, "orders", 1000)
}

func TestConnectionsClosedBeforeProcessingLoseNothing(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	s := startSession(t, newTestClient(t, fastConfig(c.ListenAddrs()...)), always)
	var left atomic.Int64
	left.Store(4)
	c.ControlKey(0, func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if left.Add(-1) >= 0 {
			return nil, errors.New("closed"), true
		}
		return nil, nil, false
	})
	for range 10 {
		s.Send(s.numbered("orders", 100, oneKey))
	}
	s.acks(1000)
	requireExactly(t, c, "orders", 1000)
}

func TestAppendedInSpiteOfTheErrorIsNotRepeated(t *testing.T) {
	for _, code := range []*kerr.Error{kerr.RequestTimedOut, kerr.NotEnoughReplicasAfterAppend} {
		t.Run(code.Message, func(t *testing.T) {
			c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
			s := startSession(t, newTestClient(t, fastConfig(c.ListenAddrs()...)), always)
			fault := c.Fault(kfake.Fault{Keys: produceKey, Err: code, Count: 5})
			for range 10 {
				s.Send(s.numbered("orders", 100, oneKey))
			}
			s.acks(1000)
			if fault.Hits() != 5 {
				t.Errorf("%d hits", fault.Hits())
			}
			requireExactly(t, c, "orders", 1000)
		})
	}
}

// Leaders move, answers are lost, requests are closed and refused, all at once.
func TestChaosLosesRepeatsAndReordersNothing(t *testing.T) {
	var flaky flakyNet
	c := startCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(6, "orders"), kfake.ListenFn(flaky.listen))
	config := fastConfig(c.ListenAddrs()...)
	config.BatchBytes = 4 << 10
	s := startSession(t, newTestClient(t, config), always)
	c.Fault(
		every(17, kerr.NotLeaderForPartition), every(19, kerr.RequestTimedOut), every(23, kerr.NotEnoughReplicasAfterAppend),
		every(29, kerr.NotEnoughReplicas), every(31, kerr.UnknownServerError), every(37, kerr.NotEnoughReplicas),
	)
	var requests atomic.Int64
	c.ControlKey(0, func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		switch n := requests.Add(1); {
		case n%41 == 0:
			return nil, errors.New("closed"), true
		case n%43 == 0:
			flaky.drops.Store(1)
		}
		return nil, nil, false
	})
	const n, chunk = 30_000, 50
	for i := range n / chunk {
		s.Send(s.numbered("orders", chunk, manyKeys(100)))
		if i%20 == 19 {
			c.ShufflePartitionLeaders()
			s.acks(i * chunk / 2)
		}
	}
	s.acks(n)
	requireExactly(t, c, "orders", n)
	if requests.Load() < 100 {
		t.Errorf("only %d requests: too few to meet the faults", requests.Load())
	}
}

// every is a fault for each nth produce request.
func every(n int64, err *kerr.Error) kfake.Fault {
	var count atomic.Int64
	return kfake.Fault{Keys: produceKey, Err: err, Count: -1, When: func(kmsg.Request) bool {
		return count.Add(1)%n == 0
	}}
}

func TestHungBrokerHoldsUpOnlyItsOwnPartitions(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(6, "orders"))
	for p := range int32(6) {
		if err := c.MoveTopicPartition("orders", p, p%3); err != nil {
			t.Fatal(err)
		}
	}
	var hung atomic.Bool
	hung.Store(true)
	c.Control(func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return nil, nil, hung.Load() && c.CurrentNode() == 2
	})
	s := startSession(t, newTestClient(t, fastConfig(c.ListenAddrs()...)), always)
	const n = 6000
	healthy := 0
	for range n / 100 {
		messages := s.numbered("orders", 100, manyKeys(60))
		for i := range messages {
			if partitionOf(messages[i].Record.Key, 6)%3 != 2 {
				healthy++
			}
		}
		s.Send(messages)
	}
	if healthy == 0 || healthy == n {
		t.Fatalf("%d of %d records are for healthy brokers", healthy, n)
	}
	s.acks(healthy)
	s.stalls("stalled on the hung broker", func(p pipeline.PartitionStatus) bool {
		return p.Stall != "" && p.Partition%3 == 2 && p.Queued > 0
	})
	hung.Store(false)
	s.acks(n)
	requireExactly(t, c, "orders", n)
}

func TestRestartOfAllBrokersLosesNothing(t *testing.T) {
	dir := t.TempDir()
	opts := []kfake.Opt{kfake.NumBrokers(3), kfake.SeedTopics(6, "orders"), kfake.DataDir(dir)}
	c := startCluster(t, opts...)
	s := startSession(t, newTestClient(t, fastConfig(c.ListenAddrs()...)), always)
	s.Send(s.numbered("orders", 1000, manyKeys(50)))
	s.acks(500)
	ports := portsOf(t, c)
	c.Close()
	s.Send(s.numbered("orders", 1000, manyKeys(50)))
	s.stalls("stalled by the outage", func(p pipeline.PartitionStatus) bool { return p.Stall != "" })
	s.connected(false)
	c = startCluster(t, append(opts, kfake.Ports(ports...))...)
	s.acks(2000)
	requireExactly(t, c, "orders", 2000)
}

func portsOf(t *testing.T, c *kfake.Cluster) []int {
	t.Helper()
	var ports []int
	for _, address := range c.ListenAddrs() {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(port)
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, n)
	}
	return ports
}

func TestKafkaAbsentAtStartIsANamedStall(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s := startSession(t, newTestClient(t, fastConfig(address)), always)
	s.Send(s.numbered("orders", 100, oneKey))
	s.stalls("unreachable", func(p pipeline.PartitionStatus) bool {
		return p.Partition == -1 && p.Queued == 100 && strings.Contains(p.Stall, "no broker can be used") && !p.StallSince.IsZero()
	})
	if s.Status().Connected {
		t.Error("Connected is true without a cluster")
	}
	_, port, _ := net.SplitHostPort(address)
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(3, "orders"), kfake.Ports(n))
	s.acks(100)
	if !s.Status().Connected {
		t.Error("Connected is false with a cluster")
	}
	requireExactly(t, c, "orders", 100)
}

func TestConnectedWithoutAnyTopic(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1))
	s := startSession(t, newTestClient(t, fastConfig(c.ListenAddrs()...)), always)
	s.connected(true)
	c.Close()
	s.connected(false)
}

func TestMissingTopicWaitsForTheOperator(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1))
	s := startSession(t, newTestClient(t, fastConfig(c.ListenAddrs()...)), always)
	s.Send(s.numbered("orders", 100, oneKey))
	s.stalls("waiting for the topic", func(p pipeline.PartitionStatus) bool {
		return strings.Contains(p.Stall, "create it")
	})
	if c.TopicInfo("orders") != nil {
		t.Fatal("the topic was created by asking for it")
	}
	if err := c.CreateTopic("orders", 3, nil); err != nil {
		t.Fatal(err)
	}
	s.acks(100)
	requireExactly(t, c, "orders", 100)
}

func TestMissingPermissionWaitsForTheOperator(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	s := startSession(t, newTestClient(t, fastConfig(c.ListenAddrs()...)), always)
	fault := c.Fault(kfake.Fault{Keys: produceKey, Err: kerr.TopicAuthorizationFailed, Count: -1})
	s.Send(s.numbered("orders", 100, oneKey))
	s.stalls("waiting for the grant", func(p pipeline.PartitionStatus) bool {
		return strings.Contains(p.Stall, "TOPIC_AUTHORIZATION_FAILED") && strings.Contains(p.Stall, "grant")
	})
	fault.Remove()
	s.acks(100)
	requireExactly(t, c, "orders", 100)
}

func TestCoordinatorThatLoadsIsWaitedFor(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	s := startSession(t, newTestClient(t, fastConfig(c.ListenAddrs()...)), always)
	for _, code := range []*kerr.Error{kerr.CoordinatorLoadInProgress, kerr.NotCoordinator, kerr.ConcurrentTransactions, kerr.CoordinatorNotAvailable} {
		c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, TopLevel: true, Err: code, Count: 2})
	}
	s.Send(s.numbered("orders", 100, oneKey))
	s.acks(100)
	requireExactly(t, c, "orders", 100)
}

func TestRequestsShareALeaderAndAPartitionHasOneInFlight(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(12, "orders"))
	var requests, partitions, mostPartitions atomic.Int64
	c.ControlKey(0, func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		requests.Add(1)
		n := int64(0)
		for _, topic := range r.(*kmsg.ProduceRequest).Topics {
			n += int64(len(topic.Partitions))
		}
		partitions.Add(n)
		mostPartitions.Store(max(mostPartitions.Load(), n))
		return nil, nil, false
	})
	config := fastConfig(c.ListenAddrs()...)
	config.Linger = 5 * time.Millisecond
	s := startSession(t, newTestClient(t, config), always)
	// The producer ids come one by one, so the first batches go alone.
	s.Send(s.numbered("orders", 1200, manyKeys(200)))
	s.acks(1200)
	requests.Store(0)
	partitions.Store(0)
	s.Send(s.numbered("orders", 1200, manyKeys(200)))
	s.acks(2400)
	if mostPartitions.Load() < 2 {
		t.Errorf("%d requests for %d batches: none was shared", requests.Load(), partitions.Load())
	}
	requireExactly(t, c, "orders", 2400)
}
