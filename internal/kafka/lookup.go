package kafka

import (
	"time"

	"github.com/IBM/sarama"

	"github.com/cdcpub/cdcpub/internal/pipeline"
)

// maxLookup bounds the topics of one metadata request.
const maxLookup = 500

// lookup starts the next metadata request if one is due: for topics where a
// partition waits for it, for the regular comparison, or to see whether the cluster answers
// at all. There is never more than one on its way.
func (p *Producer) lookup(now time.Time) {
	if p.lookingUp {
		return
	}
	if p.lookupAt.After(now) {
		p.wake(p.lookupAt)
		return
	}
	var due []*topic
	next := now.Add(p.config.TopicCheckInterval)
	for _, t := range p.topics {
		if t.illegal != nil {
			continue
		}
		at := t.lookupAt
		if t.done >= t.wanted {
			at = later(at, t.checkAt)
		}
		switch {
		case at.After(now):
			next = earlier(next, at)
		case len(due) < maxLookup:
			due = append(due, t)
		default:
			next = now
		}
	}
	if len(due) > 0 {
		for _, t := range due {
			t.started++
		}
		p.lookingUp = true
		p.control.jobs.put(controlJob{lookup: due})
		return
	}
	if !p.probeAt.After(now) {
		p.lookingUp = true
		p.control.jobs.put(controlJob{probe: true})
		return
	}
	p.lookupAt = earlier(next, p.probeAt)
	p.wake(p.lookupAt)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// lookupSoon makes lookup consider t now.
func (p *Producer) lookupSoon(t *topic) {
	if p.lookupAttempts == 0 {
		p.lookupAt = earlier(p.lookupAt, t.lookupAt)
	}
}

// replied takes the answer of the control connection.
func (p *Producer) replied(r controlled, now time.Time) {
	if p.dead {
		return
	}
	switch {
	case r.job.identify != nil:
		p.identified(r, now)
	case r.job.claim != nil:
		p.claimed(r, now)
	case r.job.look != nil:
		p.looked(r.err, now)
	case r.job.limit != nil:
		p.limited(r)
	default:
		p.lookedUp(r, now)
	}
}

// limited reports a record that is too large, now that the limit is known;
// without the right to describe the topic it stays 0. A record that was accepted
// meanwhile is not reported: nothing would ever take that back.
func (p *Producer) limited(r controlled) {
	rejection := r.job.limit
	part := p.topics[rejection.Message.Record.Topic].partitions[rejection.Partition]
	if !part.rejected || part.queue.at(0).message.Seq != rejection.Message.Seq {
		return
	}
	rejection.Limit = r.limit
	p.outcomes = append(p.outcomes, pipeline.Result{Rejected: rejection})
}

// identified gives the partition its new producer id.
func (p *Producer) identified(r controlled, now time.Time) {
	part := r.job.identify
	if r.err != nil {
		p.failed(part, classifyError(r.err), now)
		p.enlist(part)
		return
	}
	p.client.setIdentity(p.session, topicPartition{part.topic.name, part.id}, r.identity)
	part.identify(r.identity)
	p.makeReady(part)
}

// lookedUp takes the metadata of topics, or the outcome of a probe.
func (p *Producer) lookedUp(r controlled, now time.Time) {
	p.lookingUp = false
	p.probeAt = now.Add(p.config.TopicCheckInterval)
	p.reach(r.err, now)
	if r.err != nil {
		p.lookupAttempts++
		limit := p.policy.backoffMax
		if mayNotBeHurried(r.err) {
			limit = p.policy.operatorMax // a password that is tried too often locks an account
		}
		p.lookupAt = now.Add(p.policy.backoff(p.lookupAttempts, limit))
		p.probeAt = now
		for _, t := range p.topics {
			if t.done < t.wanted && t.illegal == nil {
				p.lookupFailed(t, classifyError(r.err), now)
				t.lookupAt = now
			}
		}
		return
	}
	p.lookupAttempts = 0
	p.lookupAt = now
	p.reap(now)
	if r.job.probe {
		return
	}
	clear(p.brokers)
	for _, b := range r.metadata.Brokers {
		p.brokers[b.ID()] = b.Addr()
	}
	found := make(map[string]*sarama.TopicMetadata, len(r.metadata.Topics))
	for _, m := range r.metadata.Topics {
		found[m.Name] = m
	}
	for _, t := range r.job.lookup {
		p.learn(t, found[t.name], now)
	}
}

// reach notes whether a broker has answered.
func (p *Producer) reach(err error, now time.Time) {
	p.connected = err == nil
	switch {
	case p.connected:
		p.disconnectedSince = time.Time{}
	case p.disconnectedSince.IsZero():
		p.disconnectedSince = now
	}
	p.report.reach(err)
}

// learn takes the metadata of one topic.
func (p *Producer) learn(t *topic, m *sarama.TopicMetadata, now time.Time) {
	code := sarama.ErrUnknownTopicOrPartition
	if m != nil {
		code = m.Err
	}
	if m != nil && len(m.Partitions) == 0 && code == sarama.ErrNoError {
		code = sarama.ErrLeaderNotAvailable
	}
	if code != sarama.ErrNoError {
		r := classify(code)
		if r.class == classReject && t.pending.len() > 0 {
			p.rejectTopic(t, code, now)
			return
		}
		t.want()
		p.lookupFailed(t, r, now)
		return
	}
	if err := p.client.checkTopic(t.name, factsOf(m)); err != nil {
		p.fail(err)
		return
	}
	t.update(m, now, p.config.TopicCheckInterval)
	for i := range t.pending.len() {
		p.enqueue(t, *t.pending.at(i), now)
	}
	t.pending.pop(t.pending.len())
	kept := t.waiting[:0]
	for _, part := range t.waiting {
		if part.needs > t.done {
			kept = append(kept, part)
		} else {
			p.makeReady(part)
		}
	}
	clear(t.waiting[len(kept):])
	t.waiting = kept
}

// lookupFailed notes that the topic's metadata could not be had.
func (p *Producer) lookupFailed(t *topic, r rule, now time.Time) {
	t.failed(r, now, &p.policy)
}

// rejectTopic gives the first record of a topic that cannot exist to the
// policy.
func (p *Producer) rejectTopic(t *topic, cause error, now time.Time) {
	p.outcomes = append(p.outcomes, pipeline.Result{Rejected: t.reject(cause, now)})
}
