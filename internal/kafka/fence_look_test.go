package kafka

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/zap"

	"github.com/cdcpub/cdcpub/internal/pipeline"
)

// lookedAt is a slot whose looks a test answers. Each question waits in asked
// for an answer.
type lookedAt struct {
	asked   chan struct{}
	answers chan error
}

func newLookedAt() *lookedAt { return &lookedAt{make(chan struct{}), make(chan error)} }

func (l *lookedAt) Leased() bool { return true }

// question waits for one.
func (l *lookedAt) question(t *testing.T) {
	t.Helper()
	select {
	case <-l.asked:
	case <-patiently(t).Done():
		t.Fatal("PostgreSQL was not asked")
	}
}

// answer answers the question that waits.
func (l *lookedAt) answer(t *testing.T, err error) {
	t.Helper()
	select {
	case l.answers <- err:
	case <-patiently(t).Done():
		t.Fatal("nobody waits for PostgreSQL's answer")
	}
}

func (l *lookedAt) Look(ctx context.Context) error {
	select {
	case l.asked <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-l.answers:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// The coordinator has given an epoch when PostgreSQL is asked. No batch leaves
// under it before PostgreSQL has said that the slot is ours: at the first claim,
// and at one that a broker's mind has made necessary.
func TestNoBatchIsSentBeforePostgreSQLHasSaidThatTheSlotIsOurs(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	seen := observe(c)
	slot := newLookedAt()
	client := newTestClient(t, fastConfig(c.ListenAddrs()...))
	s := startSlot(t, client, fenceID, slot, zap.NewNop())
	// sentAs drains what was sent until now, which must be under an identity.
	sentAs := func(id batchHeader, when string) {
		t.Helper()
		for len(seen) > 0 {
			if b := <-seen; b.producer != id.producer || b.epoch != id.epoch {
				t.Fatalf("%+v was sent %s", b, when)
			}
		}
	}
	var none, first, second batchHeader
	s.Send(s.numbered("orders", 10, oneKey))
	slot.question(t)
	sentAs(none, "before PostgreSQL was asked")
	s.eventually("the stall is named", func() bool {
		slot.answer(t, errors.New("no route to host"))
		slot.question(t)
		return slices.ContainsFunc(s.Status().Partitions, func(p pipeline.PartitionStatus) bool {
			return strings.HasPrefix(p.Stall, unprovenStall) && strings.HasSuffix(p.Stall, "no route to host")
		})
	})
	sentAs(none, "although PostgreSQL has not answered")
	slot.answer(t, nil)
	s.acks(10)
	first = <-seen

	c.Fault(kfake.Fault{Keys: produceKey, Err: kerr.InvalidProducerEpoch, Count: 1})
	s.Send(s.numbered("orders", 10, oneKey))
	slot.question(t)
	sentAs(first, "before PostgreSQL was asked")
	slot.answer(t, errors.New("no route to host"))
	slot.question(t)
	sentAs(first, "although PostgreSQL has not answered")
	slot.answer(t, nil)
	s.acks(20)
	second = <-seen
	if held := client.claims[fenceID]; second.producer != first.producer || second.epoch <= first.epoch || second.epoch != held.epoch {
		t.Errorf("sent as %+v, then as %+v; the newest identity is %+v", first, second, held)
	}
	requireExactly(t, c, "orders", 20)
}
