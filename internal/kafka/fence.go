package kafka

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/IBM/sarama"
)

// fenceGrace is the default of Config.FenceGrace.
const fenceGrace = 10 * time.Second

// refusedInterval is the pause before a coordinator is asked again that has
// refused.
const refusedInterval = time.Minute

// fenceRenewal is how often a session takes the next epoch without need. The
// coordinator forgets an id that was not used for transactional.id.expiration.ms
// (7 days), and would give the successor another producer id, which shuts
// nobody out.
const fenceRenewal = 6 * time.Hour

// fence shuts out what earlier publishers of the same slot still have on their
// way, in other processes too. A session takes its producer id from the
// transaction coordinator, by a transactional.id that all publishers of the
// slot share. The coordinator gives the same producer id and the next epoch
// (KIP-98), and from the first batch of the newer epoch on a partition's
// leader refuses the older ones. No transaction is ever begun, so nothing of
// their cost is paid: the fence is one request per session, and one look at
// PostgreSQL.
//
// Invariant: no batch is sent under an identity before PostgreSQL was asked,
// after the coordinator's answer, who has the slot, and has said that it is this
// session. So an identity that is used was taken while the slot was ours: the
// session had the slot before it asked the coordinator, and still had it when
// that had answered. The slot has one holder at a time, hence the epochs that are
// used have the order in which their sessions had the slot, whatever was held up
// on its way, and what is refused is always the earlier holder. A claim that
// comes late, when another session has the slot, gives an epoch beyond that
// one's, but it is never used, and so no partition knows it. The exception is a
// session that takes the slot a second time, to confirm what lies in front of an
// unconvertible text: one that had the slot in between has the later epoch, and
// the session ends when it is refused.
//
// Without the look, a session that has lost the slot without hearing of it could
// take an epoch beyond its successor's and write behind it. What it hears on the
// replication connection would not do: a message may have been sent before the
// slot was lost. Neither does the lease, which the server does not know of when
// it ends a session by force.
//
// Owned by the producer's goroutine.
type fence struct {
	// id is the transactional.id; "" when there is no fence.
	id string
	// held is what may be used; number counts that, 0 before.
	held   identity
	number uint64
	// taken is what the coordinator gave last. unproven: PostgreSQL has not said
	// since that the slot is ours.
	taken    identity
	unproven bool
	// asking: a claim or a look is on its way. The next one may start at retryAt,
	// and starts at renewAt in any case.
	asking           bool
	attempts         int
	retryAt, renewAt time.Time
	// since is when the claim that has not succeeded yet began, not counting
	// the time in which no broker answered.
	since time.Time
	// waived: partitions that have used what is held go without a fence, until a
	// claim succeeds.
	waived bool
	// waiting are partitions in phaseIdentity that need more than held.
	waiting []*partition
}

// claim asks the coordinator for an identity: another than previous, which is
// what this session has, or whatever comes next when it has none.
type claim struct {
	id       string
	previous identity
	gate     func() error
	// brokers are the addresses of the newest metadata.
	brokers []string
}

var noIdentity = identity{producer: -1, epoch: -1}

// FencedError ends a Producer: another publisher has taken the producer id,
// and with it the right to publish. It arrives as pipeline.Result.Err. A new
// session takes it back, and gets one only if PostgreSQL gives it the slot.
type FencedError struct{ TransactionalID string }

// Stopped is false: a new session is the cure, or the standby's place.
func (e *FencedError) Stopped() bool { return false }

func (e *FencedError) Error() string {
	return fmt.Sprintf("kafka: another publisher has taken over the producer id of transactional id %q; nothing more is sent by this session; PostgreSQL says who holds the slot", e.TransactionalID)
}

// claim asks the coordinator, or PostgreSQL about what that has given, if there
// is reason to and it is time.
func (p *Producer) claim(now time.Time) {
	f := &p.fence
	if f.id == "" || f.asking {
		return
	}
	due := f.retryAt
	if f.number > 0 && len(f.waiting) == 0 && !f.waived && !f.unproven {
		due = later(due, f.renewAt)
	}
	if due.After(now) {
		p.wake(due)
		return
	}
	if p.gate() != nil {
		p.wake(now.Add(leaseInterval))
		return
	}
	f.asking = true
	if f.unproven {
		p.claims.jobs.put(controlJob{look: p.slot.Look})
		return
	}
	if f.since.IsZero() {
		f.since = now
	}
	previous := noIdentity
	if f.number > 0 {
		previous = f.held
	}
	p.claims.jobs.put(controlJob{claim: &claim{f.id, previous, p.gate, slices.Collect(maps.Values(p.brokers))}})
}

// claimed takes the coordinator's answer.
func (p *Producer) claimed(r controlled, now time.Time) {
	f := &p.fence
	f.asking = false
	err := r.err
	if err == nil && !p.client.isNew(f.id, r.identity) {
		// It has lost its memory. Under an identity that was used a first batch
		// would be taken for a repeat.
		err = fmt.Errorf("%w: it gave an identity twice", errNoCoordinator)
	}
	switch answer := answerTo(err); {
	case err == nil:
		f.taken, f.attempts, f.since = r.identity, 0, time.Time{}
		f.unproven = true
	case answer == claimFenced:
		p.fenced()
	case answer == claimRefused:
		f.retryAt = now.Add(refusedInterval)
		p.setWaived(err, now)
	default:
		p.claimLater(err, answer == claimPostponed || answer == claimUnheard && p.connected, now)
	}
}

// looked takes PostgreSQL's answer. There is no going on without it: a look that
// fails is no smaller sign of a lost slot than one that finds it lost. The
// stream ends the session in both cases, unless it hears from PostgreSQL.
func (p *Producer) looked(err error, now time.Time) {
	f := &p.fence
	f.asking = false
	if err != nil {
		f.attempts++
		f.retryAt = now.Add(p.policy.backoff(f.attempts, p.policy.backoffMax))
		for _, part := range f.waiting {
			part.stalled(unprovenStall+err.Error(), now)
		}
		return
	}
	f.held, f.unproven, f.attempts = f.taken, false, 0
	f.number++
	f.renewAt = now.Add(fenceRenewal)
	p.setWaived(nil, now)
}

// claimLater tries again. Records wait for that a while only; without any
// broker nothing could be sent anyway.
func (p *Producer) claimLater(err error, reached bool, now time.Time) {
	f := &p.fence
	f.attempts++
	limit := p.policy.backoffMax
	if f.waived {
		limit = p.policy.operatorMax
	}
	f.retryAt = now.Add(p.policy.backoff(f.attempts, limit))
	for _, part := range f.waiting {
		part.stalled("producer id: "+classifyError(err).String(), now)
	}
	switch {
	case !reached:
		f.since = now
	case f.number > 0 && len(f.waiting) == 0: // a renewal: what is held serves for days
	case now.Sub(f.since) >= p.config.FenceGrace:
		p.setWaived(err, now)
	}
}

// claimAnswer is what an error says of a claim.
type claimAnswer uint8

const (
	claimHeldBack  claimAnswer = iota // by the lease: nobody was asked
	claimUnheard                      // no broker answered
	claimPostponed                    // not now
	claimRefused                      // not without a change by a human
	claimFenced                       // another publisher has the id
)

func answerTo(err error) claimAnswer {
	var code sarama.KError
	switch {
	case errors.Is(err, errLeaseLost), errors.Is(err, errSuperseded):
		return claimHeldBack
	case errors.Is(err, errNoCoordinator):
		return claimPostponed
	case !errors.As(err, &code):
		return claimUnheard
	}
	switch r := classify(code); {
	case code == sarama.ErrProducerFenced || code == sarama.ErrInvalidProducerEpoch || code == sarama.ErrInvalidProducerIDMapping:
		return claimFenced
	case code == sarama.ErrTransactionalIDAuthorizationFailed || r.class == classOperator:
		return claimRefused
	default:
		return claimPostponed
	}
}

// fenced ends this producer.
func (p *Producer) fenced() {
	p.fail(p.client.fenced(p.fence.id, time.Now()))
}

// setWaived gives up the fence for a reason, or with nil takes it up, and lets
// the partitions go on that waited.
func (p *Producer) setWaived(reason error, now time.Time) {
	f := &p.fence
	f.waived = reason != nil
	p.client.setUnfenced(f.waived)
	p.report.fence(f.id, reason)
	for _, part := range f.waiting {
		p.makeReady(part)
	}
	clear(f.waiting)
	f.waiting = f.waiting[:0]
	p.wake(now)
}

// covers says whether the fence, and not the partition itself, decides about
// its next identity.
func (f *fence) covers(part *partition) bool {
	return f.id != "" && (!f.waived || part.claim < f.number)
}

// identifyFenced gives the partition the newest identity of the session, or
// has another one claimed when the partition has used that already.
func (p *Producer) identifyFenced(part *partition, now time.Time) bool {
	f := &p.fence
	if part.claim < f.number {
		part.identify(f.held)
		part.claim = f.number
		return true
	}
	part.phase = phaseIdentity
	f.waiting = append(f.waiting, part)
	p.claim(now)
	return false
}

// outdated says that the partition should take the newest identity of the
// session, for which it must not have a batch whose fate is open.
func (f *fence) outdated(part *partition) bool {
	return f.id != "" && part.claim < f.number && part.batch == nil && part.unsure == 0
}
