package pipeline

import (
	"context"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/cdcpub/cdcpub/router"
	"github.com/cdcpub/cdcpub/wal"
)

// Position names one outbox row for ever: the LSN of its transaction's commit
// record and the row's ordinal among the outbox INSERTs of that transaction,
// from 0.
type Position struct {
	CommitLSN pglogrepl.LSN
	Ordinal   int
}

// Message is a record on its way to Kafka, with what names it in an error.
type Message struct {
	// Seq increases by one per message of a session, in commit order.
	Seq      uint64
	Record   router.Record
	Position Position
	Table    *wal.Relation
	// Committed is the commit time of the row's transaction by the server's
	// clock, in microseconds since 1970. It does not go to Kafka: only metrics
	// look at it.
	Committed int64
}

// Producer delivers messages to Kafka in order. One per session: after an
// error, or when the stream is lost, it is closed and a new one is made.
type Producer interface {
	// Send queues messages, in order, and takes ownership of the slice. It
	// returns an empty one for the next call, or nil. It does not wait for the
	// network: what may be outstanding is bounded by the caller's window. Called
	// from one goroutine. After Close it is a no-op.
	Send(messages []Message) []Message
	// Results yields every outcome. It must be read until closed. It is closed
	// after Close, when no more outcome can come.
	Results() <-chan Result
	// Status describes what is outstanding. Safe from any goroutine.
	Status() ProducerStatus
	// Close stops sending at once, waits until ctx ends for the answers to
	// what is in flight, and releases the rest. Queued messages that were not
	// sent never will be.
	Close(ctx context.Context)
}

// Slot is what a producer must know of the slot that its session reads. Safe for
// concurrent use.
type Slot interface {
	// Leased says whether PostgreSQL was heard so lately that nobody else has
	// the slot, unless it was taken away by force. It does not block.
	Leased() bool
	// Look asks PostgreSQL who has the slot. Nil proves that this session had it
	// at some time after the call had begun. Any error proves nothing; after
	// some time another call may.
	Look(ctx context.Context) error
}

// Result is one outcome. Exactly one of its fields is set.
type Result struct {
	// Acked lists the Seqs that all in-sync replicas have acknowledged.
	Acked []uint64
	// Rejected names a record that the broker will not take. Nothing behind it
	// in its partition is sent; the same record is tried again at long
	// intervals. It comes as Rejected again after each such attempt, with the
	// limit as it then is, or its Seq comes as Acked if the broker's mind has
	// changed. What cannot be tried again comes once.
	Rejected *Rejection
	// Err ends the producer: it sends nothing any more and this is the last
	// Result. Its class is in the error (see Stopped).
	Err error
}

// Rejection describes one record that the broker refuses for what it is.
type Rejection struct {
	Message   Message
	Partition int32
	// Cause is the broker's error code and text.
	Cause error
	// Size is the encoded size of a batch with this record alone, in bytes,
	// as far as known; Limit is the limit it exceeds, 0 when it is not a
	// matter of size.
	Size, Limit int
	// MayBePublished says that the fate of an earlier attempt is unknown, so
	// that the record may be in the topic already.
	MayBePublished bool
}

// ProducerStatus is a snapshot of what is outstanding.
type ProducerStatus struct {
	// Connected is true when the cluster answered last time.
	Connected bool
	// DisconnectedSince is when it stopped to, or when the session began;
	// zero while it is connected.
	DisconnectedSince time.Time
	Partitions        []PartitionStatus
}

// PartitionStatus describes one partition with something outstanding.
type PartitionStatus struct {
	Topic     string
	Partition int32 // -1: not yet assigned, the topic's metadata is missing
	// Queued counts the messages without acknowledgement, in flight or not.
	Queued int
	// OldestSince is when the oldest of them was queued.
	OldestSince time.Time
	Oldest      Position
	// Stall is the cause when the head of the partition did not go through at
	// the last attempt, empty otherwise. StallSince is when that began.
	Stall      string
	StallSince time.Time
	// LeaseLost says that Stall is the end of the lease: nothing may be sent
	// to any partition.
	LeaseLost bool
}
