package kafka

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cdcpub/cdcpub/internal/pipeline"
)

func TestPartitionCountThatChangesStopsThisAndLaterSessions(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(3, "orders"))
	client := newTestClient(t, fastConfig(c.ListenAddrs()...))
	s := startSession(t, client, always)
	s.Send(s.numbered("orders", 100, manyKeys(10)))
	s.acks(100)
	addPartitions(t, c, "orders", 5)
	requireTopicStop(t, s.fails(), "has 5 partitions, it had 3")
	s.stop(patience)

	later := startSession(t, client, always)
	later.Send(later.numbered("orders", 1, oneKey))
	requireTopicStop(t, later.fails(), "has 5 partitions, it had 3")
	later.stop(patience)
	requireExactly(t, c, "orders", 100)

	fresh := startSession(t, newTestClient(t, fastConfig(c.ListenAddrs()...)), always)
	fresh.next = 100
	fresh.Send(fresh.numbered("orders", 1, oneKey))
	fresh.acks(1)
}

func addPartitions(t *testing.T, c *kfake.Cluster, topic string, count int) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	request := kmsg.NewPtrCreatePartitionsRequest()
	added := kmsg.NewCreatePartitionsRequestTopic()
	added.Topic, added.Count = topic, int32(count)
	request.Topics = append(request.Topics, added)
	response, err := request.RequestWith(patiently(t), client)
	if err == nil {
		err = kerr.ErrorForCode(response.Topics[0].ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func requireTopicStop(t *testing.T, err error, what string) {
	t.Helper()
	var stop *StopError
	if !errors.As(err, &stop) || !stop.Stopped() || stop.Topic != "orders" || !strings.Contains(err.Error(), what) {
		t.Errorf("error is %v", err)
	}
}

func TestTopicThatIsMadeAnewGetsNothing(t *testing.T) {
	for _, when := range []string{"idle", "while a batch waits"} {
		t.Run(when, func(t *testing.T) {
			c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(3, "orders"))
			config := fastConfig(c.ListenAddrs()...)
			if when != "idle" {
				config.TopicCheckInterval = time.Hour
			}
			client := newTestClient(t, config)
			s := startSession(t, client, always)
			s.Send(s.numbered("orders", 100, manyKeys(10)))
			s.acks(100)
			if err := c.DeleteTopic("orders"); err != nil {
				t.Fatal(err)
			}
			if when != "idle" {
				s.Send(s.numbered("orders", 100, manyKeys(10)))
				s.stalls("without a topic", func(p pipeline.PartitionStatus) bool { return strings.Contains(p.Stall, "create it") })
			}
			if err := c.CreateTopic("orders", 3, nil); err != nil {
				t.Fatal(err)
			}
			requireTopicStop(t, s.fails(), "was deleted and created again")
			s.stop(patience)
			later := startSession(t, client, always)
			later.Send(later.numbered("orders", 10, manyKeys(10)))
			requireTopicStop(t, later.fails(), "was deleted and created again")
			later.stop(patience)
			requireExactly(t, c, "orders", 0)
		})
	}
}

// The new topic would take the waiting batch: only the metadata tells.
func TestNoRetryBeforeTheTopicIsReadAgain(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	config := fastConfig(c.ListenAddrs()...)
	config.TopicCheckInterval = time.Hour
	s := startSession(t, newTestClient(t, config), always)
	s.Send(s.numbered("orders", 10, oneKey))
	s.acks(10)
	var refused atomic.Int64
	var open atomic.Bool
	c.ControlKey(3, func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if open.Load() {
			return nil, nil, false
		}
		refused.Add(1)
		return nil, errors.New("closed"), true
	})
	if err := c.DeleteTopic("orders"); err != nil {
		t.Fatal(err)
	}
	s.Send(s.numbered("orders", 10, oneKey))
	s.stalls("stalled", func(p pipeline.PartitionStatus) bool { return p.Stall != "" })
	if err := c.CreateTopic("orders", 1, nil); err != nil {
		t.Fatal(err)
	}
	// Each of them backs off longer than the batch does.
	for ctx := patiently(t); refused.Load() < 10 && ctx.Err() == nil; {
		rest(ctx)
	}
	if end := c.PartitionInfo("orders", 0).HighWatermark; end != 0 {
		t.Errorf("%d records went into the new topic", end)
	}
	open.Store(true)
	requireTopicStop(t, s.fails(), "was deleted and created again")
}
