package pipeline

import (
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/cdcpub/cdcpub/wal"
)

// UnpublishableError is a row that cannot become a record. The stream stands
// still before its transaction.
type UnpublishableError struct {
	Position Position
	RowLSN   pglogrepl.LSN
	Table    *wal.Relation
	Cause    error
}

func (e *UnpublishableError) Error() string {
	return fmt.Sprintf("row %d of the transaction committed at LSN %s (row LSN %s): %v; the LSN stays before this transaction and nothing behind the row is sent",
		e.Position.Ordinal+1, e.Position.CommitLSN, e.RowLSN, e.Cause)
}

func (e *UnpublishableError) Unwrap() error { return e.Cause }

// ImpossibleError is a sequence of events or acknowledgements that cannot be:
// a defect, not a condition of the world. Going on could confirm too much, and
// a new session would send the same again.
type ImpossibleError struct{ Cause error }

func (e *ImpossibleError) Error() string {
	return fmt.Sprintf("this cannot be, and cdcpub stops before it does harm: %v; nothing was confirmed because of it; please report it as a defect with the log", e.Cause)
}

func (e *ImpossibleError) Unwrap() error { return e.Cause }

// Stopped says that a new session does not cure it.
func (e *ImpossibleError) Stopped() bool { return true }

func impossible(err error) error {
	if err == nil {
		return nil
	}
	return &ImpossibleError{err}
}

// RejectedError is a record that Kafka will not take. Nothing behind it in its
// partition was sent.
type RejectedError struct {
	Rejection Rejection
	Since     time.Time // when it was first reported
}

func (e *RejectedError) Error() string {
	r := &e.Rejection
	size := ""
	if r.Size > 0 {
		size = fmt.Sprintf(", %d bytes before compression", r.Size)
		if r.Limit > 0 {
			size += fmt.Sprintf(" where the topic's limit is %d", r.Limit)
		}
	}
	cure := "change the topic's limits so that it is accepted"
	if r.Limit > 0 {
		cure = "its limit has been raised meanwhile, so the next attempt should pass; if it does not, raise max.message.bytes of the topic further, and message.max.bytes of the brokers if that is lower"
		if enough := r.enough(); r.Limit < enough {
			cure = fmt.Sprintf("raise max.message.bytes of the topic to %d, and what consumers fetch with it", enough)
		}
	}
	maybe := ""
	if r.MayBePublished {
		maybe = "; the answer to an earlier attempt was lost, so it may be in the topic already"
	}
	return fmt.Sprintf("Kafka rejects event %s (row %d of the transaction committed at LSN %s, table %s, key %q, topic %s, partition %d%s): %v%s; the LSN stays before it, nothing behind it is sent, and it is tried again every minute: %s",
		r.Message.Record.EventID, r.Message.Position.Ordinal+1, r.Message.Position.CommitLSN, r.Message.Table,
		r.Message.Record.Key, r.Message.Record.Topic, r.Partition, size, r.Cause, maybe, cure)
}

// enough is a limit that the record passes whatever the codec makes of it: one
// that cannot compress its bytes adds less than 1 % and a header.
func (r *Rejection) enough() int { return r.Size + r.Size/100 + 1024 }

func (e *RejectedError) Unwrap() error { return e.Rejection.Cause }
