package verify

import (
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"
)

// Row is one outbox row as the database's own history shows it. A history is
// a slice of rows in commit order, and in row order within a transaction.
type Row struct {
	// CommitEnd is the end LSN of the commit record of the row's transaction.
	CommitEnd  pglogrepl.LSN
	CommitTime time.Time

	EventID       string
	AggregateType string
	AggregateID   string
	Version       int64
	EventType     string
	// Payload is nil for NULL; an empty payload is not nil.
	Payload []byte
	// Columns holds every column by name, nil for NULL. It may be nil to save
	// memory when no expectation reads it.
	Columns map[string]*string
}

// Record is one Kafka record as a consumer saw it.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	// Key and Value are nil when null on the wire.
	Key, Value []byte
	Headers    []Header
	Timestamp  time.Time
}

// Header is one record header. A nil Value is a null header.
type Header struct {
	Key   string
	Value []byte
}

// TopicPartition names one partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String returns topic/partition, as Kafka's own tools print it.
func (p TopicPartition) String() string { return fmt.Sprintf("%s/%d", p.Topic, p.Partition) }

// Sample is the slot's position beside the topic's content at one moment.
//
// As a proof that nothing was confirmed early, Confirmed is read from the
// server first and the end offsets afterwards: what was confirmed before must
// be in the topic by then. As the description of a restart, both are read
// while no publisher runs.
type Sample struct {
	// Confirmed is confirmed_flush_lsn from pg_replication_slots.
	Confirmed pglogrepl.LSN
	// End is the end offset (high watermark) of each partition: the offset
	// that the next record gets. A partition that is not listed was empty.
	End map[TopicPartition]int64
}
