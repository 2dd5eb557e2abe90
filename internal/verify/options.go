package verify

import "time"

// Options says what the history and the topics are judged against. The zero
// value of every field is the strictest.
type Options struct {
	// Partitions gives the number of partitions of every topic that the
	// history leads to. Required.
	Partitions map[string]int32
	// Expect says how a row should look in Kafka.
	Expect Expectation
	// EventIDHeader names the header that identifies a record; "id" when empty.
	EventIDHeader string
	// Quarantined lists the event ids that the quarantine took: they may be
	// missing from the topic and must not be in it. Events without an id are
	// listed as "".
	Quarantined map[string]bool
	// Shared says that other producers write to the topic too: records that no
	// row explains are counted there and are no violation. Nil: no topic is.
	Shared func(topic string) bool
	// Rewinds limits how often a partition may start over, which is the number
	// of restarts (sessions less one). -1: no limit.
	Rewinds int
	// Incomplete says that the publisher was stopped or stands still: rows
	// behind the last one of their partition are pending, not lost. A gap
	// before the last one is a loss all the same.
	Incomplete bool
	// AllowEmpty accepts a history without rows. Otherwise it is an input
	// fault: a check of nothing proves nothing.
	AllowEmpty bool
	// Confirmed are samples of the running slot, each taken before its End
	// offsets: whatever was confirmed must lie below them.
	Confirmed []Sample
	// Restarts are samples taken while no publisher ran, in the order of time:
	// what was written after one must not have been confirmed by then.
	Restarts []Sample
	// MaxPerKind limits how many violations of one kind are listed; counts are
	// always complete. 20 when 0.
	MaxPerKind int
}

// Expectation says how a row should look in Kafka. A nil function stands for
// the product's default, so the zero value is the default configuration.
// The functions must be deterministic and must not keep or change the row.
type Expectation struct {
	// Topic defaults to "outbox.event." + aggregate type.
	Topic func(Row) string
	// Key defaults to the bytes of the aggregate id.
	Key func(Row) []byte
	// Value defaults to the payload, nil (a tombstone) for NULL.
	Value func(Row) []byte
	// Headers defaults to DefaultHeaders. The order counts.
	Headers func(Row) []Header
	// Timestamp defaults to the commit time. It is compared in milliseconds.
	Timestamp func(Row) time.Time
	// Partition defaults to PartitionOf.
	Partition func(key []byte, partitions int32) int32
}

const (
	defaultMaxPerKind    = 20
	defaultEventIDHeader = "id"
)

func (o Options) withDefaults() Options {
	if o.EventIDHeader == "" {
		o.EventIDHeader = defaultEventIDHeader
	}
	if o.MaxPerKind == 0 {
		o.MaxPerKind = defaultMaxPerKind
	}
	o.Expect = o.Expect.withDefaults()
	return o
}

func (o Options) shared(topic string) bool { return o.Shared != nil && o.Shared(topic) }

func (e Expectation) withDefaults() Expectation {
	if e.Topic == nil {
		e.Topic = func(r Row) string { return "outbox.event." + r.AggregateType }
	}
	if e.Key == nil {
		e.Key = func(r Row) []byte { return []byte(r.AggregateID) }
	}
	if e.Value == nil {
		e.Value = func(r Row) []byte { return r.Payload }
	}
	if e.Headers == nil {
		e.Headers = DefaultHeaders
	}
	if e.Timestamp == nil {
		e.Timestamp = func(r Row) time.Time { return r.CommitTime }
	}
	if e.Partition == nil {
		e.Partition = PartitionOf
	}
	return e
}
