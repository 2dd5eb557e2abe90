package kafka

import (
	"errors"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/cdcpub/cdcpub/internal/latency"
)

// Counters say what all Producers of a Client have done since it was made.
type Counters struct {
	// Topics has what was acknowledged, by topic. A topic beyond the first
	// 1000 is counted under OtherTopics, which may also be the name of a topic.
	Topics map[string]Acknowledged
	// Errors has the attempts to deliver a record batch that failed, by the
	// name of the error code, "NOT_ENOUGH_REPLICAS", by Transport, or by
	// OtherErrors. Transport and OtherErrors are always there. A batch that was
	// not sent for reasons of our own, and a repeat that the broker recognised
	// (DUPLICATE_SEQUENCE_NUMBER), are not failures.
	Errors map[string]uint64
	// CommitToAck has, for every acknowledged record, the time from the commit
	// of its row by PostgreSQL's clock to the acknowledgement by ours;
	// OccurredToAck the same from the time that its column occurred_at names,
	// for records that have it. An interval below zero, from clocks that
	// differ, is 0.
	CommitToAck, OccurredToAck latency.Histogram
}

// Acknowledged counts records of one topic that all in-sync replicas have, also
// those that a session sent again because the one before could not confirm
// them. Bytes are those of keys, values and headers.
type Acknowledged struct{ Records, Bytes uint64 }

// Names in Counters for what has no name of its own.
const (
	OtherTopics = "other"
	OtherErrors = "other"
	// Transport: the connection failed before an answer came.
	Transport = "transport"
)

// maxCountedTopics bounds Counters.Topics: names come from rows.
const maxCountedTopics = 1000

// Counters returns a copy. Safe from any goroutine.
func (c *Client) Counters() Counters {
	c.tally.mu.Lock()
	defer c.tally.mu.Unlock()
	counters := c.tally.counters
	counters.Topics, counters.Errors = maps.Clone(counters.Topics), maps.Clone(counters.Errors)
	return counters
}

// tally is where the Producers of a Client count.
type tally struct {
	mu       sync.Mutex
	counters Counters
}

func newTally() tally {
	return tally{counters: Counters{
		Topics: make(map[string]Acknowledged),
		Errors: map[string]uint64{Transport: 0, OtherErrors: 0},
	}}
}

// acknowledged counts the first n records of the queue, whose keys, values and
// headers are so many bytes.
func (t *tally) acknowledged(topic string, bytes int, q *queue, n int, now time.Time) {
	micros := now.UnixMicro()
	t.mu.Lock()
	defer t.mu.Unlock()
	counted, known := t.counters.Topics[topic]
	if !known && len(t.counters.Topics) >= maxCountedTopics {
		topic = OtherTopics
		counted = t.counters.Topics[topic]
	}
	counted.Records += uint64(n)
	counted.Bytes += uint64(bytes)
	t.counters.Topics[topic] = counted
	for i := range n {
		message := &q.at(i).message
		t.counters.CommitToAck.Observe(elapsed(message.Committed, micros))
		if at := message.Record.OccurredAt; at != 0 {
			t.counters.OccurredToAck.Observe(elapsed(at, micros))
		}
	}
}

// elapsed is the time between two instants in microseconds, as far as a
// Duration can hold it.
func elapsed(from, to int64) time.Duration {
	return time.Duration(max(0, min(to-from, math.MaxInt64/1000))) * time.Microsecond
}

// attempted counts an attempt that failed.
func (t *tally) attempted(o outcome) {
	if name := o.failure(); name != "" {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.counters.Errors[name]++
	}
}

// failure names the outcome for Counters.Errors, empty if it is none of them.
func (o outcome) failure() string {
	switch {
	case o.rule.class == 0, o.rule.class == classDuplicate, o.rule.class == classApart:
		return ""
	case o.rule.name == unknownCode:
		return OtherErrors
	case o.rule.name != "":
		return o.rule.name
	case errors.Is(o.cause, errLeaseLost), errors.Is(o.cause, errClosed), errors.Is(o.cause, errSuperseded):
		return ""
	case isEncodingError(o.cause), errors.Is(o.cause, errIncomplete):
		return OtherErrors
	}
	return Transport
}
