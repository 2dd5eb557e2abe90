package kafka

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
)

func TestCloseIsBoundedByItsContext(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	arrived := make(chan struct{}, 100)
	c.ControlKey(0, func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		arrived <- struct{}{}
		return nil, nil, true
	})
	config := fastConfig(c.ListenAddrs()...)
	config.RequestTimeout = time.Hour
	s := startSession(t, newTestClient(t, config), always)
	s.Send(s.numbered("orders", 10, oneKey))
	<-arrived
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Close(ctx)
	<-s.closed
	if len(s.acked) > 0 || s.err != nil {
		t.Errorf("acked %v, error %v", s.acked, s.err)
	}
}

func TestCloseDeliversTheAnswersInFlightAndSendsNothingMore(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	arrived, release := make(chan struct{}), make(chan struct{})
	c.ControlKey(0, func(kmsg.Request) (kmsg.Response, error, bool) {
		c.DropControl()
		close(arrived)
		<-release
		return nil, nil, false
	})
	client := newTestClient(t, fastConfig(c.ListenAddrs()...))
	p := client.NewProducer("", leased(always), zap.NewNop())
	var s session
	p.Send(s.numbered("orders", 10, oneKey))
	<-arrived
	p.Send(s.numbered("orders", 10, oneKey))
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		p.Close(patiently(t))
	}()
	<-p.closing
	close(release)
	// Close does not need a reader.
	<-closed
	p.Send(s.numbered("orders", 10, oneKey))
	p.Close(t.Context())
	var acked []uint64
	for r := range p.Results() {
		acked = append(acked, r.Acked...)
	}
	if len(acked) != 10 {
		t.Errorf("acked %v", acked)
	}
	if status := p.Status(); status.Connected || len(status.Partitions) > 0 {
		t.Errorf("status after the end: %+v", status)
	}
	requireExactly(t, c, "orders", 10)
}

func TestSlowReaderHoldsUpNothing(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(6, "orders"))
	config := fastConfig(c.ListenAddrs()...)
	config.BatchBytes = 200
	client := newTestClient(t, config)
	p := client.NewProducer("", leased(always), zap.NewNop())
	var s session
	const n = 2000
	p.Send(s.numbered("orders", n, manyKeys(50)))
	ctx := patiently(t)
	for len(p.Status().Partitions) > 0 || !p.Status().Connected {
		if ctx.Err() != nil {
			t.Fatal("not all records were acknowledged without a reader")
		}
		rest(ctx)
	}
	p.Close(ctx)
	acked := 0
	for r := range p.Results() {
		acked += len(r.Acked)
	}
	if acked != n {
		t.Errorf("%d acked", acked)
	}
}

func TestClientCloseCutsOpenProducers(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	client := newTestClient(t, fastConfig(c.ListenAddrs()...))
	s := startSession(t, client, always)
	s.Send(s.numbered("orders", 10, oneKey))
	s.acks(10)
	client.Close()
	<-s.closed
	late := startSession(t, client, always)
	<-late.closed
}

func TestAcksOfAPartitionComeInOrder(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(1, "orders"))
	s := startSession(t, newTestClient(t, fastConfig(c.ListenAddrs()...)), always)
	for range 50 {
		s.Send(s.numbered("orders", 20, oneKey))
	}
	s.acks(1000)
	s.stop(patience)
	for i, seq := range s.acked {
		if seq != uint64(i) {
			t.Fatalf("acknowledgement %d is %d", i, seq)
		}
	}
}
