package kafka

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/cdcpub/cdcpub/internal/pipeline"
)

// Client is what outlives a session: the producer ids and epochs used last,
// what the topics looked like when they were first seen, and the counters. It
// holds no connection. Safe for concurrent use.
type Client struct {
	config Config
	// session numbers the newest Producer; older ones are superseded.
	session atomic.Uint64
	// unfenced: the newest session goes without a fence. The next one does not
	// wait for it.
	unfenced atomic.Bool

	mu         sync.Mutex
	producers  map[*Producer]struct{}
	closed     bool
	identities map[topicPartition]identity
	topics     map[string]topicFacts
	// claims are the identities that the coordinator gave last, by
	// transactional id.
	claims map[string]identity
	// fences are the times at which sessions were fenced, the newest few.
	fences []time.Time

	tally tally
}

type topicPartition struct {
	topic     string
	partition int32
}

// topicFacts is what must not change while records are keyed into a topic.
type topicFacts struct {
	// id is zero when the cluster is older than Kafka 2.8 (KIP-516).
	id         sarama.Uuid
	partitions int32
}

// NewClient returns a Client for a Config, whose defaults it sets. The error
// lists all that is wrong with it. Nothing is sent yet.
func NewClient(config Config) (*Client, error) {
	config.SetDefaults()
	if err := config.Validate(); err != nil {
		return nil, err
	}
	return &Client{
		config:     config,
		producers:  make(map[*Producer]struct{}),
		identities: make(map[topicPartition]identity),
		topics:     make(map[string]topicFacts),
		claims:     make(map[string]identity),
		tally:      newTally(),
	}, nil
}

// NewProducer starts a session. It never fails: while Kafka cannot be reached
// it goes on trying, and says so in Status. From now on the Producers made
// before are superseded and send nothing more.
//
// Whether the slot is leased is asked before every write to a broker; while it
// is not, none is made.
//
// transactionalID is shared by all publishers of the same slot and by nobody
// else: whoever starts a session with it shuts the others out. Empty: only the
// sessions of this Client are shut out.
func (c *Client) NewProducer(transactionalID string, slot pipeline.Slot, log *zap.Logger) *Producer {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := newProducer(c, c.session.Add(1), transactionalID, slot, log)
	c.producers[p] = struct{}{}
	if c.closed {
		p.abort()
	}
	go p.run()
	return p
}

// Close cuts the connections of every Producer that was not closed. It is
// their Close with a context that has ended.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for p := range c.producers {
		p.abort()
	}
}

// forget drops p after its end.
func (c *Client) forget(p *Producer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.producers, p)
}

// superseded says whether a later session than the given one has started.
func (c *Client) superseded(session uint64) bool {
	return c.session.Load() != session
}

// nextEpoch returns the identity to use next on a partition: the one used last
// there by any session of this process, one epoch on. It returns false when
// another producer id is needed, since there was none or its epochs are used
// up.
//
// Brokers keep the epoch per partition and refuse anything older from the
// first batch of the newer epoch on (KIP-360; ProducerAppendInfo), so what an
// earlier session still has on its way cannot be appended after that.
func (c *Client) nextEpoch(tp topicPartition) (identity, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, ok := c.identities[tp]
	if !ok || id.epoch == math.MaxInt16 {
		return identity{}, false
	}
	id.epoch++
	c.identities[tp] = id
	return id, true
}

// setIdentity records a new producer id for a partition, unless a later
// session than the given one has started: that one chooses for itself.
func (c *Client) setIdentity(session uint64, tp topicPartition, id identity) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.superseded(session) {
		c.identities[tp] = id
	}
}

// isNew says whether no earlier claim was given the identity, and remembers it.
func (c *Client) isNew(transactionalID string, id identity) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, known := c.claims[transactionalID]
	if known && last.producer == id.producer && last.epoch >= id.epoch {
		return false
	}
	c.claims[transactionalID] = id
	return true
}

func (c *Client) setUnfenced(unfenced bool) { c.unfenced.Store(unfenced) }

// fenced notes that a session was shut out and says what that means. Once is a
// takeover. Again and again is two publishers that both have their slot, which
// can only be slots of two servers.
func (c *Client) fenced(transactionalID string, now time.Time) error {
	const often, within = 3, 5 * time.Minute
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fences = append(c.fences, now)
	if len(c.fences) > often {
		c.fences = c.fences[1:]
	}
	if len(c.fences) < often || now.Sub(c.fences[0]) > within {
		return &FencedError{TransactionalID: transactionalID}
	}
	c.fences = nil
	return &StopError{
		Partition: -1,
		What:      fmt.Sprintf("another publisher took over transactional id %q %d times within %v, while PostgreSQL gave the slot to this one", transactionalID, often, within),
		Means:     "two publishers write to the same topics from two slots of the same name: of a server and of its copy, for instance a restored backup",
		Next:      "stop the one that should not publish, or give it another slot",
		Cause:     &FencedError{TransactionalID: transactionalID},
	}
}
