package kafka

import (
	"time"

	"github.com/IBM/sarama"

	"github.com/cdcpub/cdcpub/internal/pipeline"
	"github.com/cdcpub/cdcpub/router"
)

// accept queues messages by topic and partition.
func (p *Producer) accept(messages []pipeline.Message, now time.Time) {
	if p.dead {
		return
	}
	defer p.giveBack(messages)
	for i := range messages {
		record := &messages[i].Record
		t := p.topics[record.Topic]
		if t == nil {
			t = newTopic(record.Topic, &p.pool)
			p.topics[record.Topic] = t
			p.lookupSoon(t)
		}
		e := entry{message: messages[i], queued: now, size: recordSize(record)}
		if t.partitions == nil {
			t.pending.push(e)
			if err := router.CheckTopicName(t.name); err != nil && t.illegal == nil {
				p.rejectTopic(t, err, now)
			}
			continue
		}
		p.enqueue(t, e, now)
	}
}

// giveBack keeps a slice for Send.
func (p *Producer) giveBack(messages []pipeline.Message) {
	clear(messages)
	select {
	case p.sent <- messages[:0]:
	default:
	}
}

func (p *Producer) enqueue(t *topic, e entry, now time.Time) {
	part := t.partitions[partitionOf(e.message.Record.Key, int32(len(t.partitions)))]
	part.queue.push(e)
	switch {
	case part.phase == phaseIdle:
		p.makeReady(part)
	case part.lingering && part.queue.bytes >= p.policy.batchBytes:
		part.until, part.lingering = now, false
	}
}

func (p *Producer) makeReady(part *partition) {
	part.phase = phaseReady
	p.ready = append(p.ready, part)
}

// enlist puts a partition where its phase belongs.
func (p *Producer) enlist(part *partition) {
	switch part.phase {
	case phaseReady:
		p.ready = append(p.ready, part)
	case phaseWaiting:
		p.waiting = append(p.waiting, part)
	}
}

// release makes those ready whose time has come.
func (p *Producer) release(now time.Time) {
	kept := p.waiting[:0]
	for _, part := range p.waiting {
		if part.until.After(now) {
			kept = append(kept, part)
			p.wake(part.until)
			continue
		}
		part.lingering = false
		p.makeReady(part)
	}
	clear(p.waiting[len(kept):])
	p.waiting = kept
}

// dispatch sends what may be sent: the partitions that are ready, those with
// the same leader in one request.
func (p *Producer) dispatch(now time.Time) {
	p.release(now)
	if len(p.ready) == 0 {
		return
	}
	if err := p.gate(); err != nil {
		p.gated(err, now)
		return
	}
	p.leaseLostSince = time.Time{}
	ready := p.ready
	p.ready, p.readySpare = p.readySpare[:0], nil
	for _, part := range ready {
		p.try(part, now)
		p.enlist(part)
	}
	for _, part := range p.waiting {
		p.wake(part.until)
	}
	for _, l := range p.filled {
		p.submit(l, now)
	}
	clear(p.filled)
	p.filled = p.filled[:0]
	clear(ready)
	p.readySpare = ready
}

// gated notes that nothing may be sent, which ends this producer if a later
// one has started.
func (p *Producer) gated(err error, now time.Time) {
	if err == errSuperseded {
		part := p.ready[0]
		p.fail(&StopError{
			Topic: part.topic.name, Partition: part.id, Cause: err,
			What:  "a later session of this process publishes already",
			Means: "what this session has not sent is left to the later one",
			Next:  "nothing is to be done",
		})
		return
	}
	if p.leaseLostSince.IsZero() {
		p.leaseLostSince = now
	}
	p.wake(now.Add(leaseInterval))
}

// try puts the partition's batch into a request of its leader's link, or sets
// the phase that says what is missing.
func (p *Producer) try(part *partition, now time.Time) {
	t := part.topic
	if part.needs > t.done {
		part.phase = phaseTopic
		t.waiting = append(t.waiting, part)
		p.lookupSoon(t)
		return
	}
	if p.lingers(part, now) {
		return
	}
	l := p.linkTo(t.leaders[part.id])
	if l == nil {
		p.failed(part, classify(sarama.ErrLeaderNotAvailable), now)
		return
	}
	if !p.room(l) {
		return
	}
	if p.fence.outdated(part) {
		part.identified = false
	}
	if !part.identified && !p.identify(part, now) {
		return
	}
	if part.batch == nil && !p.assemble(part, now) {
		return
	}
	if p.place(part, l, now) {
		part.phase, part.sent, part.sentTo = phaseInFlight, now, l.address
	}
}

// lingers makes a partition wait for more records, if it may.
func (p *Producer) lingers(part *partition, now time.Time) bool {
	linger := p.config.Linger
	if linger == 0 || part.batch != nil || part.stall != "" || part.queue.bytes >= p.policy.batchBytes {
		return false
	}
	until := part.queue.at(0).queued.Add(linger)
	if !until.After(now) {
		return false
	}
	part.wait(until)
	part.lingering = true
	return true
}

// linkTo returns the link to a broker, nil if there is no such broker.
func (p *Producer) linkTo(broker int32) *link {
	address, ok := p.brokers[broker]
	if !ok {
		return nil
	}
	l := p.links[broker]
	if l == nil || l.address != address {
		if l != nil {
			l.cancel()
		}
		l = startLink(p.ctx, p.dialer, address, gates{p.gate, p.sendGate}, p.answers.put)
		p.links[broker] = l
	}
	return l
}

// identify gives the partition an identity, or asks the cluster for one.
func (p *Producer) identify(part *partition, now time.Time) bool {
	if p.fence.covers(part) {
		return p.identifyFenced(part, now)
	}
	tp := topicPartition{part.topic.name, part.id}
	if part.renewal == renewEpoch {
		if id, ok := p.client.nextEpoch(tp); ok {
			part.identify(id)
			return true
		}
	}
	part.phase = phaseIdentity
	p.control.jobs.put(controlJob{identify: part})
	return false
}

// assemble makes the partition's next batch. It returns false when there is
// none now.
func (p *Producer) assemble(part *partition, now time.Time) bool {
	b := p.takeBatch()
	ok, err := part.assemble(b, &p.policy)
	switch {
	case err != nil:
		p.recycle(b)
		p.apply(part, part.stuck(err, now), now)
		return false
	case !ok:
		p.recycle(b)
		return p.identify(part, now) && p.assemble(part, now)
	}
	return true
}

func (p *Producer) takeBatch() *batch {
	n := len(p.spare)
	if n == 0 {
		return new(batch)
	}
	b := p.spare[n-1]
	p.spare = p.spare[:n-1]
	return b
}

// recycle keeps the arenas of a batch that is resolved.
func (p *Producer) recycle(b *batch) {
	b.release()
	if len(p.spare) < spareBatches {
		p.spare = append(p.spare, b)
	}
}

// room says whether a batch can go to l now. While it cannot, the partition
// stays ready and its records gather.
func (p *Producer) room(l *link) bool {
	return l.open != nil || l.outstanding < p.config.MaxInFlightPerBroker
}

// place adds the batch to the request that is open at l. The partition stays
// ready when the link has all the requests it may have.
func (p *Producer) place(part *partition, l *link, now time.Time) bool {
	full := l.open != nil && (part.alone || l.open.alone || l.open.bytes+part.batch.size > maxRequestBytes)
	if full {
		p.submit(l, now)
	}
	if !p.room(l) {
		return false
	}
	if l.open == nil {
		l.outstanding++
		l.open = &job{link: l, alone: part.alone, request: &sarama.ProduceRequest{
			Version:      produceVersion,
			RequiredAcks: sarama.WaitForAll,
			Timeout:      int32(p.config.RequestTimeout.Milliseconds()),
		}}
		p.filled = append(p.filled, l)
	}
	l.open.request.AddBatch(part.topic.name, part.id, &part.batch.wire)
	l.open.parts = append(l.open.parts, part)
	l.open.bytes += part.batch.size
	return true
}

// produceVersion is the newest Produce version we speak: 8 names the bad
// records of a batch (KIP-467), 9 is the last whose answers we use.
const produceVersion = 9

// submit hands the open request of l to its goroutine.
func (p *Producer) submit(l *link, now time.Time) {
	if l.open == nil {
		return
	}
	p.inFlight++
	l.usedAt = now
	l.jobs.put(l.open)
	l.open = nil
}
