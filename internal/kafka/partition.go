package kafka

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/IBM/sarama"

	"github.com/cdcpub/cdcpub/internal/pipeline"
)

// phase says what a partition waits for.
type phase uint8

const (
	phaseIdle     phase = iota // for records
	phaseReady                 // for its turn
	phaseWaiting               // for the time in until
	phaseTopic                 // for the topic's metadata
	phaseIdentity              // for a producer id
	phaseInFlight              // for the broker's answer
	phaseStuck                 // for nothing: its head cannot be encoded
)

// identity is a producer id and epoch, as the brokers know us on one
// partition.
type identity struct {
	producer int64
	epoch    int16
}

// renewal says how the next identity is made from the last one.
type renewal uint8

const (
	renewEpoch renewal = iota // same producer id, next epoch
	renewID                   // another producer id
)

// policy is what partitions need of the configuration.
type policy struct {
	codec        sarama.CompressionCodec
	batchBytes   int
	backoffMin   time.Duration
	backoffMax   time.Duration
	operatorMax  time.Duration
	rejectedWait time.Duration
	// jitter returns a factor around 1.
	jitter func() float64
}

// backoff is the pause before attempt number n, counted from 1.
func (p *policy) backoff(n int, limit time.Duration) time.Duration {
	pause := limit
	if shift := n - 1; shift < 20 {
		pause = min(limit, p.backoffMin<<shift)
	}
	return time.Duration(float64(pause) * p.jitter())
}

// partition is the state of one topic-partition: what is queued, the batch on
// its way, and what is known about the head. It is a pure value: no clock, no
// network. Invariant: the records of a batch are the head of the queue, and no
// batch is made while another is unresolved, so nothing passes the head.
type partition struct {
	topic *topic
	id    int32

	queue queue
	phase phase
	until time.Time
	// lingering: phaseWaiting only for more records.
	lingering bool

	// batch is on its way to a broker since a time, or goes again as it is. Nil:
	// none was made yet.
	batch  *batch
	sentTo string
	sent   time.Time
	// identity is valid when identified; next is the sequence number of the
	// head under it.
	identity   identity
	identified bool
	renewal    renewal
	next       int32
	// claim is the number of the fence's claim that identity is from, 0 when
	// it is from none.
	claim uint64

	// attempts counts the failures since the last success, renewals those
	// that cost the identity.
	attempts, renewals int
	// unsure is how many records at the head may be in the log already.
	unsure int
	// suspects is how many records at the head hold the one that the broker
	// refused; innocent is how many of them are known to be good.
	suspects, innocent int
	// needs is the number of the topic's lookup to wait for: after a failure
	// the topic may be another one of the same name.
	needs uint64
	// maxBytes is the learned bound of a batch before compression, 0 when
	// there is none, and refusedBytes the size it must stay below.
	maxBytes, refusedBytes int
	// alone: the next request must hold this partition only.
	alone bool
	// rejected: the head was given to the policy.
	rejected bool
	// lastOffset is the offset of the newest acknowledged record.
	lastOffset int64

	// stall is why the head did not go through at the last attempt.
	stall       string
	stallSince  time.Time
	forOperator bool
}

func newPartition(t *topic, id int32) *partition {
	return &partition{topic: t, id: id, lastOffset: -1, queue: queue{pool: t.pending.pool}}
}

// outcome is the fate of the partition's batch in one attempt. The zero rule
// is success.
type outcome struct {
	rule rule
	// offset is the offset of the batch's first record, -1 when unknown.
	offset int64
	// culprits are the indexes of the bad records, if the broker said so.
	culprits []int32
	cause    error
}

// effect is what the owner of a partition has to do after an outcome.
type effect struct {
	// acked is how many records at the head of the queue are acknowledged.
	// The owner takes their sequence numbers, then calls drop.
	acked int
	// truncated is set when the log ended before a record that was
	// acknowledged. Of those, lostFrom to lostTo are the offsets that are known.
	truncated        bool
	lostFrom, lostTo int64
	// rejection is the record at fault. Its Limit is still to be looked up
	// if oversize is set.
	rejection *pipeline.Rejection
	oversize  bool
	// recheck asks for the topic's metadata before the next attempt.
	recheck bool
	// fenced ends the producer.
	fenced bool
}

// assemble makes the next batch in b, from the head of the queue. It returns
// an error when the head cannot be encoded, and false when another identity is
// needed first.
func (p *partition) assemble(b *batch, pol *policy) (bool, error) {
	limit := pol.batchBytes
	if p.maxBytes > 0 {
		limit = min(limit, p.maxBytes)
	}
	n, size := 0, batchOverhead
	for n < p.queue.len() && n < p.recordLimit() {
		e := p.queue.at(n)
		size += e.size + deltaAllowance
		if n > 0 && size > limit {
			break
		}
		if err := encodable(e); err != nil {
			if n == 0 {
				return false, err
			}
			break
		}
		n++
	}
	if int64(p.next)+int64(n) > math.MaxInt32 {
		p.identified = false
		return false, nil
	}
	b.fill(&p.queue, n, pol.codec)
	b.stamp(p.identity, p.next)
	p.batch = b
	return true, nil
}

// recordLimit is how many records the next batch may have while a culprit is
// looked for.
func (p *partition) recordLimit() int {
	switch {
	case p.suspects == 0:
		return math.MaxInt
	case p.innocent > 0:
		return p.innocent
	default:
		return max(1, p.suspects/2)
	}
}

// identify gives the partition an identity that no batch has used yet.
func (p *partition) identify(id identity) {
	p.identity, p.identified, p.next = id, true, 0
	p.renewal = renewEpoch
	if p.batch != nil {
		p.batch.stamp(id, 0)
	}
}

// settle takes the outcome of the batch in flight and sets the next phase.
func (p *partition) settle(o outcome, now time.Time, pol *policy) effect {
	switch o.rule.class {
	case 0, classDuplicate:
		return p.succeed(o.offset)
	case classSplit, classReject:
		return p.refuse(o, now, pol)
	case classBump, classFresh:
		p.reidentify(o.rule, now, pol)
		return effect{}
	case classFenced:
		p.stalled(o.rule.String(), now)
		return effect{fenced: true}
	case classApart:
		p.alone, p.phase = true, phaseReady
		return effect{}
	default:
		p.fail(o.rule, now, pol)
		return effect{recheck: true}
	}
}

func (p *partition) succeed(offset int64) effect {
	n := p.batch.count()
	e := effect{acked: n}
	if offset >= 0 {
		if offset <= p.lastOffset {
			e.truncated, e.lostFrom, e.lostTo = true, offset, p.lastOffset
		}
		p.lastOffset = offset + int64(n) - 1
	}
	p.next += int32(n)
	p.unsure = max(0, p.unsure-n)
	p.innocent = max(0, p.innocent-n)
	p.suspects = max(0, p.suspects-n)
	p.maxBytes += (p.refusedBytes - p.maxBytes) / 16
	p.attempts, p.renewals = 0, 0
	p.alone, p.rejected = false, false
	p.stall, p.stallSince, p.forOperator = "", time.Time{}, false
	p.batch, p.phase = nil, phaseReady
	return e
}

// drop removes the first n records after they are acknowledged.
func (p *partition) drop(n int) {
	p.queue.pop(n)
	if p.queue.len() == 0 {
		p.phase = phaseIdle
	}
}

// fail keeps the batch for an identical repeat.
func (p *partition) fail(r rule, now time.Time, pol *policy) {
	p.attempts++
	limit := pol.backoffMax
	if p.forOperator = r.class == classOperator; p.forOperator {
		limit = pol.operatorMax
	}
	if p.batch != nil && r.unsure {
		p.unsure = max(p.unsure, p.batch.count())
	}
	p.wait(now.Add(pol.backoff(p.attempts, limit)))
	p.stalled(r.String(), now)
}

// reidentify keeps the records and gives up the identity. The first time this
// is free; when it does not help it backs off like any failure.
func (p *partition) reidentify(r rule, now time.Time, pol *policy) {
	p.identified = false
	if r.class == classFresh || p.renewals > 0 {
		p.renewal = renewID
	}
	p.attempts++
	p.renewals++
	p.stalled(r.String(), now)
	if p.renewals == 1 {
		p.phase = phaseReady
		return
	}
	p.wait(now.Add(pol.backoff(p.attempts, pol.backoffMax)))
}

// refuse narrows the search for the culprit, or finds it. Nothing of a refused
// batch is appended, and its sequence numbers are free again (ProducerAppendInfo
// sees a batch only after LogValidator accepted it).
func (p *partition) refuse(o outcome, now time.Time, pol *policy) effect {
	n, size := p.batch.count(), p.batch.size
	p.batch = nil
	if n > 1 {
		if o.rule.class == classSplit {
			p.maxBytes, p.refusedBytes = size/2, size
		} else {
			p.suspects, p.innocent = n, 0
			if first, ok := firstCulprit(o.culprits, n); ok {
				p.suspects, p.innocent = first+1, first
			}
		}
		p.stalled(o.rule.String(), now)
		p.phase = phaseReady
		return effect{}
	}
	cause := o.cause
	if cause == nil {
		cause = errors.New(o.rule.String())
	}
	p.wait(now.Add(pol.rejectedWait))
	return p.reject(cause, o.rule.class == classSplit, now)
}

func firstCulprit(culprits []int32, n int) (int, bool) {
	first := n
	for _, c := range culprits {
		if c >= 0 && int(c) < first {
			first = int(c)
		}
	}
	return first, first < n
}

// reject gives the head to the policy, again after each attempt that fails.
func (p *partition) reject(cause error, oversize bool, now time.Time) effect {
	p.stalled("rejected: "+cause.Error(), now)
	p.suspects, p.innocent = 1, 0
	p.rejected = true
	head := p.queue.at(0)
	return effect{oversize: oversize, rejection: &pipeline.Rejection{
		Message:        head.message,
		Partition:      p.id,
		Cause:          cause,
		Size:           batchOverhead + head.size,
		MayBePublished: p.unsure > 0,
	}}
}

// stuck is reject for a head that no broker has seen and that cannot change.
func (p *partition) stuck(cause error, now time.Time) effect {
	e := p.reject(fmt.Errorf("cannot be encoded: %w", cause), false, now)
	p.phase = phaseStuck
	return e
}

func (p *partition) wait(until time.Time) {
	p.phase, p.until, p.lingering = phaseWaiting, until, false
}

func (p *partition) stalled(cause string, now time.Time) {
	if p.stall == "" {
		p.stallSince = now
	}
	p.stall = cause
}
