package router

import "time"

// Record is what goes to Kafka. It holds nothing that could not be repeated
// exactly tomorrow: no clock, no process identity, no session setting.
type Record struct {
	Topic string
	// Key decides the partition: the raw bytes of the aggregate id's text form.
	Key []byte
	// Value is the payload as PostgreSQL gave it. Nil is a tombstone.
	Value   []byte
	Headers []Header
	// Timestamp has millisecond precision on the wire.
	Timestamp time.Time
	// EventID is the value of the event id column, kept apart because every
	// error message about the record names it.
	EventID []byte
	// OccurredAt is when the event happened by the column Columns.OccurredAt,
	// in microseconds since 1970; 0 when that is not known. It does not go to
	// Kafka: only metrics look at it.
	OccurredAt int64
}

// Header is one Kafka record header. A nil Value is a null header.
type Header struct {
	Key   string
	Value []byte
}
