package scenarios

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

// One of three brokers is gone. With one replica its partitions stand still;
// with three they move to another leader.
func TestOneBrokerOfThree(t *testing.T) {
	parallel(t)
	cluster := harness.Kafka(t, harness.KafkaOptions{Brokers: 3})
	// Each broker leads two of the six partitions, and no other has a copy.
	alone := options{kafka: cluster, partitions: 6, topic: map[string]string{"min.insync.replicas": "1"}}
	t.Run("frozen", func(t *testing.T) {
		deadBroker(newStand(t, alone), cluster.Freeze, func(_ context.Context, i int) error { return cluster.Thaw(i) })
	})
	t.Run("killed", func(t *testing.T) { deadBroker(newStand(t, alone), cluster.Kill, cluster.Start) })
	t.Run("leader of three replicas killed", func(t *testing.T) {
		leaderKilled(newStand(t, options{kafka: cluster, replicas: 3, topic: map[string]string{"min.insync.replicas": "2"}}))
	})
}

// deadBroker: the partitions of the other brokers are delivered. The LSN does
// not pass the first record that stands still, and when the broker is back
// nothing is missing.
func deadBroker(s *stand, end func(int) error, revive func(context.Context, int) error) {
	consumer := harness.NewConsumer(s.t, s.kafka.Direct(), s.topic)
	p := s.run()
	s.load(10, 10)
	s.delivered()
	s.history()

	dead, err := s.kafka.Leader(s.ctx, s.topic, 0)
	s.no(err)
	led := map[int32]bool{}
	for partition := range int32(s.options.partitions) {
		leader, err := s.kafka.Leader(s.ctx, s.topic, partition)
		s.no(err)
		led[partition] = leader == dead
	}
	s.no(end(dead))
	s.load(20, 10)
	var stuck, others []verify.Row
	for _, row := range s.history() {
		if led[verify.PartitionOf([]byte(row.AggregateID), int32(s.options.partitions))] {
			stuck = append(stuck, row)
		} else {
			others = append(others, row)
		}
	}
	if len(stuck) == 0 || len(others) == 0 {
		s.t.Fatalf("%d rows for the dead broker, %d for the others", len(stuck), len(others))
	}
	s.have(consumer, others)

	line := s.awaitLog(p, "stalled")
	cause := fmt.Sprint(line["cause"])
	named := false
	for partition, isDead := range led {
		named = named || isDead && strings.Contains(cause, fmt.Sprintf("topic %s partition %d:", s.topic, partition))
	}
	if !named {
		s.t.Errorf("the stall names no partition of the dead broker: %s", cause)
	}
	s.keepaliveBeyond()
	if lsn := s.confirmed(); lsn >= stuck[0].CommitEnd {
		s.t.Errorf("%s is confirmed, but the transaction that ends at %s stands still", lsn, stuck[0].CommitEnd)
	}

	s.no(revive(s.ctx, dead))
	s.delivered()
	s.stop(p)
	s.check(nil)
	s.no(s.kafka.WaitInSync(s.ctx, s.topic))
}

// have waits until the consumer has a record of every row.
func (s *stand) have(consumer *harness.Consumer, rows []verify.Row) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, s.options.patience)
	defer cancel()
	missing := map[string]bool{}
	for _, row := range rows {
		missing[row.EventID] = true
	}
	read := 0
	_, err := consumer.Wait(ctx, fmt.Sprintf("%d events of the other partitions", len(rows)), func(records []verify.Record) bool {
		for ; read < len(records); read++ {
			for _, h := range records[read].Headers {
				if h.Key == "id" {
					delete(missing, string(h.Value))
				}
			}
		}
		return len(missing) == 0
	})
	if err != nil {
		s.t.Fatalf("%v: %d are missing%s", err, len(missing), s.lastLines())
	}
}

// leaderKilled: leaders move while writers go on, and old leaders come back.
func leaderKilled(s *stand) {
	consumer := harness.NewConsumer(s.t, s.kafka.Direct(), s.topic)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	written := make(chan error, 1)
	p := s.run()
	go func() { written <- s.writeUntil(ctx) }()
	for partition := range int32(2) {
		s.arrived(consumer, len(consumer.Records())+200)
		leader, err := s.kafka.Leader(s.ctx, s.topic, partition)
		s.no(err)
		s.no(s.kafka.Kill(leader))
		s.load(10, 10)
		s.delivered() // two of three are enough
		s.no(s.kafka.Start(s.ctx, leader))
		s.no(s.kafka.WaitInSync(s.ctx, s.topic))
	}
	cancel()
	s.no(<-written)
	s.delivered()
	s.stop(p)
	s.check(nil)
}
