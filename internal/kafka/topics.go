package kafka

import (
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"github.com/cdcpub/cdcpub/internal/pipeline"
)

// topic is what a session knows of a topic. Owned by the producer's goroutine.
type topic struct {
	name string
	// pending holds what came before the partition count was known.
	pending queue
	// partitions has one entry per partition; nil while the count is unknown.
	partitions []*partition
	leaders    []int32
	// absent says of each partition which replicas were missing at the newest
	// lookup; "" when all were in sync.
	absent []string

	// started counts the lookups of this topic, done is the number of the
	// newest one that succeeded, and wanted the one that somebody waits for.
	started, done, wanted uint64
	// lookupAt is when the next lookup may start, attempts how many failed.
	lookupAt time.Time
	attempts int
	// checkAt is when the topic is compared again though nobody waits.
	checkAt time.Time
	// waiting are the partitions in phaseTopic.
	waiting []*partition

	// illegal: no topic of this name can exist. The head of pending was given
	// to the policy, and nothing will cure it.
	illegal    error
	stall      string
	stallSince time.Time
}

// lookupPause keeps the lookups of a topic apart, however often it fails.
const lookupPause = 20 * time.Millisecond

// newTopic is a topic that nothing is known of yet.
func newTopic(name string, pool *entryPool) *topic {
	return &topic{name: name, wanted: 1, pending: queue{pool: pool}}
}

// want asks for a lookup that starts from now on, and returns its number.
func (t *topic) want() uint64 {
	t.wanted = t.started + 1
	return t.wanted
}

// failed notes an unsuccessful lookup.
func (t *topic) failed(r rule, now time.Time, pol *policy) {
	t.attempts++
	limit := pol.backoffMax
	if r.class == classOperator {
		limit = pol.operatorMax
	}
	t.lookupAt = now.Add(pol.backoff(t.attempts, limit))
	if t.stall == "" {
		t.stallSince = now
	}
	t.stall = r.String()
}

// update takes the topic's metadata from a lookup that succeeded.
func (t *topic) update(m *sarama.TopicMetadata, now time.Time, interval time.Duration) {
	if t.partitions == nil {
		t.partitions = make([]*partition, len(m.Partitions))
		t.leaders = make([]int32, len(m.Partitions))
		t.absent = make([]string, len(m.Partitions))
		for i := range t.partitions {
			t.partitions[i] = newPartition(t, int32(i))
		}
	}
	for i := range t.leaders {
		t.leaders[i] = noLeader
	}
	for _, p := range m.Partitions {
		if p.ID >= 0 && int(p.ID) < len(t.leaders) {
			t.leaders[p.ID] = p.Leader
			t.absent[p.ID] = missingReplicas(p)
		}
	}
	t.done = t.started
	t.attempts, t.stall, t.stallSince = 0, "", time.Time{}
	t.checkAt = now.Add(interval)
	t.lookupAt = now.Add(lookupPause)
}

// noLeader is the leader of a partition without one.
const noLeader int32 = -1

// factsOf are what may not change.
func factsOf(m *sarama.TopicMetadata) topicFacts {
	return topicFacts{id: m.Uuid, partitions: int32(len(m.Partitions))}
}

// reject gives the first record of a topic that cannot exist to the policy.
func (t *topic) reject(cause error, now time.Time) *pipeline.Rejection {
	t.illegal = cause
	t.stall, t.stallSince = "rejected: "+cause.Error(), now
	head := t.pending.at(0)
	return &pipeline.Rejection{
		Message:   head.message,
		Partition: -1,
		Cause:     cause,
		Size:      batchOverhead + head.size,
	}
}

// topicChangedError is a StopError that comes from what this process remembers
// of a topic. It arrives as pipeline.Result.Err.
type topicChangedError struct{ *StopError }

// Remembered says that a process which remembers nothing goes on here.
func (e topicChangedError) Remembered() bool { return true }

// Unwrap returns the StopError.
func (e topicChangedError) Unwrap() error { return e.StopError }

// checkTopic compares a topic with what it was when this process first saw it.
func (c *Client) checkTopic(name string, now topicFacts) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	first, seen := c.topics[name]
	switch {
	case !seen:
		c.topics[name] = now
	case first.id == sarama.Uuid{}:
		first.id = now.id
		c.topics[name] = first
	}
	if !seen {
		return nil
	}
	if (first.id != sarama.Uuid{}) && (now.id != sarama.Uuid{}) && first.id != now.id {
		return topicChangedError{&StopError{
			Topic: name, Partition: -1,
			What:  fmt.Sprintf("was deleted and created again (topic id %s, now %s)", first.id, now.id),
			Means: "all records published to it before are gone, and consumers start again from what is published now",
			Next:  "decide whether the old events must be published again, then restart the publisher to accept the new topic",
		}}
	}
	if first.partitions != now.partitions {
		return topicChangedError{&StopError{
			Topic: name, Partition: -1,
			What:  fmt.Sprintf("has %d partitions, it had %d", now.partitions, first.partitions),
			Means: "keys move to other partitions, so the order of an aggregate's events is not guaranteed across the change",
			Next:  "let the consumers finish what is in the topic, then restart the publisher to accept the new count",
		}}
	}
	return nil
}

// ForgetTopics forgets what the topics looked like: they are compared with what
// the next session finds. For a process that has lost its slot to another one,
// which remembers them from then on.
func (c *Client) ForgetTopics() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.topics)
}
