package kafka

import (
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/cdcpub/cdcpub/internal/pipeline"
)

// answered settles the requests that came back. All acknowledgements of a
// round go out as one result.
func (p *Producer) answered(answers []produced, now time.Time) {
	total := 0
	for i := range answers {
		for _, part := range answers[i].job.parts {
			total += part.batch.count()
		}
	}
	var acked []uint64
	for i := range answers {
		a := &answers[i]
		p.inFlight--
		a.job.link.outstanding--
		if a.broken {
			p.cut(a.job.link)
		}
		if a.response != nil && !p.connected {
			p.reach(nil, now)
		}
		for _, part := range a.job.parts {
			if p.dead {
				break
			}
			if acked == nil {
				acked = make([]uint64, 0, total)
			}
			o := outcomeOf(a, part)
			p.client.tally.attempted(o)
			acked = p.settle(part, o, acked, now)
		}
	}
	if len(acked) > 0 {
		p.outcomes = append(p.outcomes, pipeline.Result{Acked: acked})
	}
}

// cut ends a link that has failed; linkTo makes another.
func (p *Producer) cut(l *link) {
	l.cancel()
	for id, current := range p.links {
		if current == l {
			delete(p.links, id)
		}
	}
}

// idleLink is after how long without requests we close a link ourselves.
// Brokers do it after 10 minutes (connections.max.idle.ms) and what is between
// us earlier; the next batch would then fail once, and its fate be unknown.
const idleLink = 3 * time.Minute

// reap closes the links that are idle.
func (p *Producer) reap(now time.Time) {
	for _, l := range p.links {
		if l.outstanding == 0 && now.Sub(l.usedAt) > idleLink {
			p.cut(l)
		}
	}
}

// outcomeOf finds the partition's share of an answer.
func outcomeOf(a *produced, part *partition) outcome {
	if a.err != nil {
		if isEncodingError(a.err) && len(a.job.parts) > 1 {
			return outcome{rule: rule{class: classApart}}
		}
		err := a.err
		var named *connectError
		switch {
		case errors.As(err, &named):
		case isTimeout(err):
			err = fmt.Errorf("broker %s has not answered in time: it hangs, or the network swallows what is sent", a.job.link.address)
		case a.broken:
			err = fmt.Errorf("broker %s: %w", a.job.link.address, err)
		}
		return outcome{rule: classifyError(err), cause: err}
	}
	block := a.response.GetBlock(part.topic.name, part.id)
	if block == nil {
		return outcome{rule: classifyError(errIncomplete), cause: errIncomplete}
	}
	if block.Err == sarama.ErrNoError {
		return outcome{offset: block.Offset}
	}
	r := classify(block.Err)
	o := outcome{rule: r, offset: -1}
	text := ""
	if block.ErrorMessage != nil {
		text = *block.ErrorMessage
	}
	for _, culprit := range block.RecordErrors {
		o.culprits = append(o.culprits, culprit.BatchIndex)
		if culprit.BatchIndexErrorMessage != nil && part.batch.count() == 1 {
			text = *culprit.BatchIndexErrorMessage
		}
	}
	o.cause = &toldError{r.String(), block.Err}
	if text != "" {
		o.cause = &toldError{fmt.Sprintf("%s (the broker says: %s)", r, text), block.Err}
	}
	return o
}

// settle applies an outcome to its partition and appends what it acknowledges.
func (p *Producer) settle(part *partition, o outcome, acked []uint64, now time.Time) []uint64 {
	kept := part.batch
	e := part.settle(o, now, &p.policy)
	if e.acked > 0 {
		p.client.tally.acknowledged(part.topic.name, kept.payload, &part.queue, e.acked, now)
		for i := range e.acked {
			acked = append(acked, part.queue.at(i).message.Seq)
		}
		part.drop(e.acked)
	}
	if kept != nil && part.batch == nil {
		p.recycle(kept)
	}
	p.apply(part, e, now)
	p.enlist(part)
	return acked
}

// apply does what an effect asks for.
func (p *Producer) apply(part *partition, e effect, now time.Time) {
	t := part.topic
	if e.recheck {
		part.needs = t.want()
		p.lookupSoon(t)
	}
	if e.truncated {
		p.log.Error("Kafka has lost records that it had acknowledged: the offsets named here hold other records now; compare the topic with the outbox table and publish what is missing by other means; a replica that lacked them has become the leader, see unclean.leader.election.enable and min.insync.replicas",
			zap.String("event", "kafka_log_truncated"), zap.String("topic", t.name), zap.Int32("partition", part.id),
			zap.Int64("first_offset", e.lostFrom), zap.Int64("last_offset", e.lostTo))
		t.checkAt = now
	}
	if e.rejection != nil {
		if e.oversize {
			p.control.jobs.put(controlJob{limit: e.rejection})
		} else {
			p.outcomes = append(p.outcomes, pipeline.Result{Rejected: e.rejection})
		}
	}
	if e.fenced && p.fence.id != "" {
		p.fenced()
		return
	}
	if e.fenced {
		p.fail(&StopError{
			Topic: t.name, Partition: part.id,
			What:  "another producer has taken over: " + part.stall,
			Means: "somebody else publishes to this partition with our producer id",
			Next:  "find the other publisher and decide which of the two stays",
		})
	}
}

// failed is a failure without a request.
func (p *Producer) failed(part *partition, r rule, now time.Time) {
	part.fail(r, now, &p.policy)
	p.apply(part, effect{recheck: true}, now)
}
