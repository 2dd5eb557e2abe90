package kafka

import (
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"

	"github.com/IBM/sarama"
)

// conn is the connection of a link: requests are handled one after the other.
type conn struct {
	session *simulated
	broker  int32
	link    *link
	queued  []*job // not yet written
	wire    []*request
	broken  error
}

// request is a job on the network.
type request struct {
	job     *job
	parts   []sentBatch
	terms   []int // of the leader that appended
	answers []verdict
	// answered: the response is made; waiting: it waits for the replicas.
	answered, waiting bool
}

// take moves what the producer has put into the link.
func (c *conn) take() {
	jobs := c.link.jobs.take(nil)
	if c.broken == nil {
		c.queued = append(c.queued, jobs...)
		return
	}
	for _, j := range jobs {
		c.deliver(produced{job: j, err: c.broken, broken: true})
	}
}

func (c *conn) deliver(p produced) { c.session.producer.answers.put(p) }

// depart writes the oldest request, as link.send does.
func (c *conn) depart() *request {
	j := c.queued[0]
	c.queued = c.queued[1:]
	if err := c.session.producer.sendGate(); err != nil {
		c.deliver(produced{job: j, err: err})
		return nil
	}
	if c.session.expired {
		c.session.w.problem("session %d writes although the server has given its slot up by the timeout", c.session.number)
	}
	r := &request{job: j}
	for _, part := range j.parts {
		r.parts = append(r.parts, written(c.session.number, part))
	}
	c.wire = append(c.wire, r)
	return r
}

func written(session int, part *partition) sentBatch {
	wire := &part.batch.wire
	b := sentBatch{
		partition: part.id, session: session, identity: identity{wire.ProducerID, wire.ProducerEpoch},
		sequence: wire.FirstSequence, first: wire.FirstTimestamp.UnixMilli(),
		rows: make([]int32, len(wire.Records)), records: make([]sarama.Record, len(wire.Records)),
	}
	headers := make([]sarama.RecordHeader, len(wire.Records))
	pointers := make([]*sarama.RecordHeader, len(wire.Records))
	for i, r := range wire.Records {
		b.rows[i] = int32(binary.BigEndian.Uint32(r.Value))
		b.records[i] = *r
		headers[i] = sarama.RecordHeader{Key: append([]byte(nil), r.Headers[0].Key...), Value: r.Headers[0].Value}
		pointers[i] = &headers[i]
		b.records[i].Headers = pointers[i : i+1]
	}
	return b
}

// arrive lets the broker handle the oldest request that it has not.
func (c *conn) arrive(r *request, rng *rand.Rand) {
	w := c.session.w
	r.waiting = rng.IntN(4) == 0
	for i := range r.parts {
		b := &r.parts[i]
		p := &w.cluster.partitions[b.partition]
		r.terms = append(r.terms, p.term)
		var v verdict
		switch {
		case p.leader != c.broker:
			v = verdict{code: sarama.ErrNotLeaderForPartition, offset: -1}
		case !w.healing && rng.IntN(100) < w.faults:
			var kind class
			v, kind = w.cluster.fault(b, rng)
			w.count(faultEvents[kind])
		default:
			v = w.cluster.judge(b, rng)
			w.countVerdict(v.code)
		}
		if kind := classify(v.code).class; kind == classBump || kind == classFresh {
			c.session.spoilt[b.partition] = true
		}
		r.answers = append(r.answers, v)
	}
	r.answered = !r.waiting
	if r.answered {
		c.replicate(r)
	}
}

// replicate ends the wait for the replicas. A leader that was deposed
// meanwhile cannot say what has become of the batch.
func (c *conn) replicate(r *request) {
	r.answered, r.waiting = true, false
	for i := range r.answers {
		p := &c.session.w.cluster.partitions[r.parts[i].partition]
		switch v := &r.answers[i]; {
		case !v.appended:
		case p.term != r.terms[i]:
			*v = verdict{code: sarama.ErrNotLeaderForPartition, offset: -1}
		default:
			p.replicate()
		}
	}
}

// next is the oldest request without answer.
func (c *conn) next() *request {
	if len(c.wire) > 0 && !c.wire[0].answered && !c.wire[0].waiting {
		return c.wire[0]
	}
	return nil
}

// answer delivers the oldest answer.
func (c *conn) answer(rng *rand.Rand) {
	r := c.wire[0]
	c.wire = c.wire[1:]
	response := &sarama.ProduceResponse{Blocks: map[string]map[int32]*sarama.ProduceResponseBlock{simulatedTopic: {}}}
	for i, v := range r.answers {
		if !c.session.w.healing && rng.IntN(100) == 0 {
			c.session.w.count(evIncomplete)
			continue
		}
		block := &sarama.ProduceResponseBlock{Err: v.code, Offset: v.offset}
		for _, index := range v.culprits {
			block.RecordErrors = append(block.RecordErrors, sarama.ProduceResponseRecordError{BatchIndex: index})
		}
		response.Blocks[simulatedTopic][r.parts[i].partition] = block
	}
	c.deliver(produced{job: r.job, response: response})
}

// cut ends the connection. What was written may still arrive, unless the
// broker itself is gone.
func (c *conn) cut(cause error) {
	if c.broken != nil {
		return
	}
	c.broken = cause
	lost := cause
	if errors.Is(cause, errNotSent) {
		lost = io.EOF
	}
	for _, r := range c.wire {
		c.deliver(produced{job: r.job, err: lost, broken: true})
	}
	c.abandon()
	for _, j := range c.queued {
		c.deliver(produced{job: j, err: cause, broken: true})
	}
	c.queued = nil
	c.take()
}

// abandon leaves the requests that the broker has not handled to the network.
func (c *conn) abandon() {
	late := &conn{session: c.session, broker: c.broker}
	for _, r := range c.wire {
		if !r.answered && !r.waiting {
			late.wire = append(late.wire, r)
		}
	}
	c.wire = nil
	if len(late.wire) > 0 {
		c.session.w.late = append(c.session.w.late, late)
	}
}
