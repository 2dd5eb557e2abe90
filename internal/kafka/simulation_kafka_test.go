package kafka

import (
	"math"
	"math/rand/v2"

	"github.com/IBM/sarama"
)

// modelCluster is Kafka as far as a producer can tell: one topic, leaders, the
// producer state that they derive from their logs, and a transaction
// coordinator. Sources: UnifiedLog.append, ProducerAppendInfo,
// ProducerStateManager and TransactionMetadata of Apache Kafka, KIP-98, KIP-360.
type modelCluster struct {
	partitions []modelPartition
	nextID     int64

	// The coordinator's entry for the transactional id; the epoch before the
	// newest is noEpoch unless the holder itself asked for the newest.
	holder                identity
	previousEpoch         int16
	known                 bool
	coordinatorAway       bool
	refusesTransactional  bool
	largestBatch          int // records; more are MESSAGE_TOO_LARGE
	bad                   map[int32]bool
	forgotten, idReplaced bool // at any time
}

const noEpoch int16 = -1

// modelPartition is the log of one partition at its leader.
type modelPartition struct {
	leader  int32
	term    int // counts the leaders
	batches []logged
	end     int64
	// replicated is the high watermark, in batches.
	replicated int
	// forgotten: batches below this index left no producer state.
	forgotten int
}

// logged is a batch in a log.
type logged struct {
	sentBatch
	offset int64
}

// sentBatch is what a request holds for one partition. The producer reuses
// its memory, so it is copied when it is written to the network.
type sentBatch struct {
	partition int32
	session   int // which wrote it
	identity
	sequence int32
	rows     []int32
	records  []sarama.Record
	first    int64 // FirstTimestamp in milliseconds
}

func (b *sentBatch) last() int32 { return b.sequence + int32(len(b.rows)) - 1 }

// rememberedBatches is ProducerStateEntry.NUM_BATCHES_TO_RETAIN.
const rememberedBatches = 5

// verdict is what a leader says to a batch.
type verdict struct {
	code     sarama.KError
	offset   int64
	culprits []int32
	// appended: the answer has to wait for the replicas.
	appended bool
}

// judge is what the leader of the partition does with a batch when nothing is
// out of order.
func (c *modelCluster) judge(b *sentBatch, rng *rand.Rand) verdict {
	if v, ok := c.validate(b, rng); !ok {
		return v
	}
	p := &c.partitions[b.partition]
	newest, count := -1, 0
	for i := len(p.batches) - 1; i >= p.forgotten; i-- {
		have := &p.batches[i]
		if have.producer != b.producer {
			continue
		}
		if newest < 0 {
			newest = i
		}
		if have.epoch != p.batches[newest].epoch || count == rememberedBatches {
			break
		}
		count++
		if have.epoch == b.epoch && have.sequence == b.sequence && have.last() == b.last() {
			return verdict{code: sarama.ErrNoError, offset: have.offset, appended: true}
		}
	}
	if newest >= 0 {
		known := &p.batches[newest]
		switch {
		case b.epoch < known.epoch:
			return verdict{code: sarama.ErrInvalidProducerEpoch, offset: -1}
		case b.epoch > known.epoch && b.sequence != 0, b.epoch == known.epoch && b.sequence != known.last()+1:
			return verdict{code: sarama.ErrOutOfOrderSequenceNumber, offset: -1}
		}
	}
	offset := p.end
	p.batches = append(p.batches, logged{*b, offset})
	p.end += int64(len(b.rows))
	return verdict{code: sarama.ErrNoError, offset: offset, appended: true}
}

// validate is LogValidator: it comes before the producer state is looked at.
func (c *modelCluster) validate(b *sentBatch, rng *rand.Rand) (verdict, bool) {
	var culprits []int32
	for i, row := range b.rows {
		if c.bad[row] {
			culprits = append(culprits, int32(i))
		}
	}
	switch {
	case len(b.rows) > c.largestBatch:
		return verdict{code: sarama.ErrMessageSizeTooLarge, offset: -1}, false
	case len(culprits) == 1 && len(b.rows) == 1 && b.rows[0]%2 == 0: // it is its size
		return verdict{code: sarama.ErrMessageSizeTooLarge, offset: -1}, false
	case len(culprits) > 0 && rng.IntN(3) == 0: // a broker before 2.4 names none
		return verdict{code: classReject.any(rng), offset: -1}, false
	case len(culprits) > 0:
		return verdict{code: sarama.ErrInvalidRecord, offset: -1, culprits: culprits}, false
	}
	return verdict{}, true
}

// replicate moves the high watermark to the end.
func (p *modelPartition) replicate() { p.replicated = len(p.batches) }

// move gives the partition another leader, which may lack what was not
// replicated.
func (p *modelPartition) move(leader int32, truncate bool) {
	p.leader = leader
	p.term++
	if truncate {
		p.batches = p.batches[:p.replicated]
		p.end = 0
		if n := len(p.batches); n > 0 {
			p.end = p.batches[n-1].offset + int64(len(p.batches[n-1].rows))
		}
		p.forgotten = min(p.forgotten, len(p.batches))
	}
	p.replicate()
}

// newProducerID answers InitProducerId without a transactional id.
func (c *modelCluster) newProducerID() identity {
	c.nextID++
	return identity{producer: c.nextID}
}

// take answers InitProducerId with the transactional id
// (TransactionMetadata.prepareIncrementProducerEpoch).
func (c *modelCluster) take(previous identity) (identity, sarama.KError) {
	switch {
	case !c.known || c.holder.epoch == math.MaxInt16-1:
		c.known, c.previousEpoch = true, noEpoch
		c.holder = c.newProducerID()
	case previous == noIdentity:
		c.previousEpoch = noEpoch
		c.holder.epoch++
	case previous.producer != c.holder.producer:
		return identity{}, sarama.ErrProducerFenced
	case previous.epoch == c.holder.epoch:
		c.previousEpoch = c.holder.epoch
		c.holder.epoch++
	case previous.epoch != c.previousEpoch:
		return identity{}, sarama.ErrProducerFenced
	}
	return c.holder, sarama.ErrNoError
}

// codesByClass has the error codes that a fault is drawn from. A broker that
// says DUPLICATE_SEQUENCE_NUMBER without having the batch would lie.
var codesByClass = func() map[class][]sarama.KError {
	codes := make(map[class][]sarama.KError)
	for _, r := range rules {
		codes[r.class] = append(codes[r.class], r.code)
	}
	codes[classRetry] = append(codes[classRetry], 999)
	delete(codes, classDuplicate)
	return codes
}()

func (c class) any(rng *rand.Rand) sarama.KError {
	codes := codesByClass[c]
	return codes[rng.IntN(len(codes))]
}

// faultClasses are weighted by repetition.
var faultClasses = []class{
	classRetry, classRetry, classRetry, classRetry, classOperator, classReject, classSplit, classBump, classBump, classFresh, classFresh, classFenced,
}

// fault is an answer out of the ordinary: the code says less than the truth
// where it may, and the batch was appended or not.
func (c *modelCluster) fault(b *sentBatch, rng *rand.Rand) (verdict, class) {
	code := faultClasses[rng.IntN(len(faultClasses))].any(rng)
	r := classify(code)
	v := verdict{code: code, offset: -1}
	if r.unsure && rng.IntN(2) == 0 {
		c.judge(b, rng)
	}
	if r.class == classReject && rng.IntN(2) == 0 {
		v.culprits = []int32{int32(rng.IntN(len(b.rows)))}
	}
	return v, r.class
}
