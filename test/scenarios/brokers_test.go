package scenarios

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

// What three brokers do to a publisher, one after the other: brokers that die,
// hang or vanish, leaders that move, replicas that are not in sync.
func TestThreeBrokers(t *testing.T) {
	parallel(t)
	// Clients of the listener PLAIN meet the brokers themselves, those of the
	// usual one a proxy before each.
	cluster := harness.Kafka(t, harness.KafkaOptions{Brokers: 3, ViaProxy: true, Listeners: map[string]string{"PLAIN": "PLAINTEXT"}})
	plain := cluster.Listener("PLAIN")
	// Each broker leads two of the six partitions, and no other has a copy.
	alone := options{kafka: cluster, brokers: plain, partitions: 6, topic: map[string]string{"min.insync.replicas": "1"}, http: true}
	viaProxy := alone
	viaProxy.brokers = nil
	copied := func(replicas, inSync int) options {
		return options{kafka: cluster, brokers: plain, partitions: 6, replicas: replicas, http: true,
			topic: map[string]string{"min.insync.replicas": fmt.Sprint(inSync)}}
	}
	thaw := func(_ context.Context, i int) error { return cluster.Thaw(i) }
	swallow := func(i int) error { cluster.Proxy(i).Swallow(); return nil }
	restore := func(_ context.Context, i int) error { return cluster.Proxy(i).Restore() }

	t.Run("frozen", func(t *testing.T) { deadBroker(newStand(t, alone), cluster.Freeze, thaw, "has not answered") })
	t.Run("killed", func(t *testing.T) {
		deadBroker(newStand(t, alone), cluster.Kill, cluster.Start, "refuses the connection")
	})
	t.Run("swallows what it is sent", func(t *testing.T) { deadBroker(newStand(t, viaProxy), swallow, restore, "in time") })
	t.Run("leader of three replicas killed", func(t *testing.T) { deadLeader(newStand(t, copied(3, 2)), cluster.Kill, cluster.Start) })
	t.Run("leader of three replicas frozen", func(t *testing.T) { deadLeader(newStand(t, copied(3, 2)), cluster.Freeze, thaw) })
	t.Run("leaders moved under load", func(t *testing.T) { leadersMoved(newStand(t, copied(2, 2))) })
	t.Run("restarted one after the other", func(t *testing.T) { rollingRestart(newStand(t, copied(3, 2))) })
	t.Run("min.insync.replicas not met", func(t *testing.T) { tooFewInSync(newStand(t, copied(3, 3))) })
	t.Run("two of three gone", func(t *testing.T) { twoGone(newStand(t, copied(3, 2))) })
	t.Run("unclean leader election", func(t *testing.T) {
		o := copied(2, 1)
		o.partitions = 1
		o.topic["unclean.leader.election.enable"] = "true"
		uncleanElection(newStand(t, o))
	})
}

// deadBroker: the partitions of the other brokers are delivered. The LSN does
// not pass the first record that stands still, and when the broker is back
// nothing is missing. says is what /status must say of it.
func deadBroker(s *stand, end func(int) error, revive func(context.Context, int) error, says string) {
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

	s.awaitLog(p, "stalled")
	s.until("/status names a partition of the dead broker, and says "+says, func() bool {
		cause := s.status().text("stall", "cause")
		for partition, isDead := range led {
			if isDead && strings.Contains(cause, fmt.Sprintf("topic %s partition %d:", s.topic, partition)) && strings.Contains(cause, says) {
				return true
			}
		}
		return false
	})
	s.keepaliveBeyond()
	if lsn := s.confirmed(); lsn >= stuck[0].CommitEnd {
		s.t.Errorf("%s is confirmed, but the transaction that ends at %s stands still", lsn, stuck[0].CommitEnd)
	}

	s.no(revive(s.ctx, dead))
	began := time.Now()
	s.delivered()
	s.t.Logf("delivered %s after the broker was back", time.Since(began).Round(time.Millisecond))
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

// deadLeader: leaders move while writers go on, and old leaders come back.
func deadLeader(s *stand, end func(int) error, revive func(context.Context, int) error) {
	consumer := harness.NewConsumer(s.t, s.kafka.Direct(), s.topic)
	p := s.run()
	written := s.underLoad()
	for partition := range int32(2) {
		s.arrived(consumer, len(consumer.Records())+200)
		leader, err := s.kafka.Leader(s.ctx, s.topic, partition)
		s.no(err)
		s.no(end(leader))
		began := time.Now()
		s.load(10, 10)
		s.delivered() // two of three are enough
		s.t.Logf("delivered %s after the leader was gone", time.Since(began).Round(time.Millisecond))
		s.withoutSamples(func() {
			s.no(revive(s.ctx, leader))
			s.no(s.kafka.WaitInSync(s.ctx, s.topic))
		})
	}
	written()
	s.delivered()
	s.stop(p)
	s.check(nil)
}

// withoutSamples takes back the samples that are taken meanwhile: a broker that
// was frozen still believes that it leads, and tells whoever asks it where its
// log ends, which is not where the partition's does.
func (s *stand) withoutSamples(during func()) {
	s.t.Helper()
	before := s.sampler.count()
	during()
	// The one that is being taken now belongs to them.
	now := s.sampler.count()
	s.until("another sample is taken", func() bool { n := s.sampler.count(); return n > now || n >= maxSamples })
	s.sampler.mu.Lock()
	defer s.sampler.mu.Unlock()
	kept := s.sampler.samples[:before:before]
	s.sampler.samples = append(kept, s.sampler.samples[min(now+1, len(s.sampler.samples)):]...)
}
