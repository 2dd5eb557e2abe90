package kafka

import (
	"fmt"
	"time"

	"github.com/cdcpub/cdcpub/internal/pipeline"
)

// leaseStall is the named stall of a producer whose lease has ended.
const leaseStall = "lease: not heard from PostgreSQL for too long, so nothing may be sent"

// unprovenStall begins the stall of a session that has its producer id, and does
// not know whether PostgreSQL has meanwhile given the slot to another one.
const unprovenStall = "producer id: PostgreSQL has not said yet that the slot is still held by this process: "

// unanswered is the stall of a batch that is still on its way, but for long.
const unanswered = "broker %s has not answered yet: it hangs, it waits for other replicas, or the network swallows what is sent"

// snapshot is the answer to Status.
func (p *Producer) snapshot(now time.Time) pipeline.ProducerStatus {
	s := pipeline.ProducerStatus{Connected: p.connected, DisconnectedSince: p.disconnectedSince}
	for _, t := range p.topics {
		if t.pending.len() > 0 {
			s.Partitions = append(s.Partitions, p.describe(t.name, -1, &t.pending, t.stall, t.stallSince))
		}
		for _, part := range t.partitions {
			if part.queue.len() == 0 {
				continue
			}
			stall, since := part.stall, part.stallSince
			if stall != "" && !part.rejected {
				stall += t.absent[part.id]
			}
			if stall == "" && part.phase == phaseInFlight && now.Sub(part.sent) > p.config.RequestTimeout/2 {
				stall, since = fmt.Sprintf(unanswered, part.sentTo), part.sent
			}
			if part.phase == phaseTopic && t.stall != "" {
				stall = t.stall
				if since.IsZero() {
					since = t.stallSince
				}
			}
			s.Partitions = append(s.Partitions, p.describe(t.name, part.id, &part.queue, stall, since))
		}
	}
	return s
}

func (p *Producer) describe(topic string, partition int32, q *queue, stall string, since time.Time) pipeline.PartitionStatus {
	head := q.at(0)
	leaseLost := stall == "" && !p.leaseLostSince.IsZero()
	if leaseLost {
		stall, since = leaseStall, p.leaseLostSince
	}
	return pipeline.PartitionStatus{
		Topic:       topic,
		Partition:   partition,
		Queued:      q.len(),
		OldestSince: head.queued,
		Oldest:      head.message.Position,
		Stall:       stall,
		StallSince:  since,
		LeaseLost:   leaseLost,
	}
}
