package kafka

import (
	"fmt"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/cdcpub/cdcpub/internal/pipeline"
)

// What simulations have found. The producers here do not run: their state is
// looked at between two answers.

// The pipeline stands still at a rejection until the record is acknowledged. If
// it hears of the rejection after that, it stands still for ever.
func TestARecordThatWasAcceptedBeforeItsLimitIsKnownIsNotReported(t *testing.T) {
	for _, accepted := range []bool{false, true} {
		p := newProducer(newTestClient(t, fastConfig("127.0.0.1:1")), 1, "", leased(always), zap.NewNop())
		p.control = &control{jobs: newMailbox[controlJob]()}
		part := filled(2)
		part.suspects = 2 // so that a batch has one record
		part.topic.partitions = []*partition{nil, nil, nil, part}
		p.topics["orders"] = part.topic
		now := time.Now()
		mustAssemble(t, part, &p.policy)
		p.settle(part, outcome{rule: classify(sarama.ErrMessageSizeTooLarge)}, nil, now)
		asked := p.control.jobs.take(nil)
		if len(asked) != 1 || asked[0].limit == nil || len(p.outcomes) != 0 {
			t.Fatalf("asked for %+v, outcomes %+v", asked, p.outcomes)
		}
		if accepted {
			mustAssemble(t, part, &p.policy)
			if acked := p.settle(part, outcome{}, nil, now); len(acked) != 1 {
				t.Fatalf("acknowledged %v", acked)
			}
		}
		p.replied(controlled{job: asked[0], limit: 1000}, now)
		want := []pipeline.Result{{Rejected: asked[0].limit}}
		if accepted {
			want = nil
		}
		if fmt.Sprint(p.outcomes) != fmt.Sprint(want) {
			t.Errorf("accepted %t: outcomes %+v", accepted, p.outcomes)
		}
	}
}

// A claim that the lease held back was not refused by anybody.
func TestASessionWithoutALeaseKeepsItsFence(t *testing.T) {
	p := newProducer(newTestClient(t, fastConfig("127.0.0.1:1")), 1, fenceID, leased(always), zap.NewNop())
	p.connected = true
	now := time.Now()
	for _, gate := range []error{errLeaseLost, errSuperseded} {
		for range 3 {
			p.claimed(controlled{err: fmt.Errorf("%w: %w", errNoCoordinator, gate)}, now)
			now = now.Add(fenceGrace)
		}
	}
	if p.fence.id != fenceID || p.fence.waived {
		t.Error("the session goes on without a fence")
	}
}
