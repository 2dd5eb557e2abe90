package publisher

import (
	"errors"
	"fmt"

	"github.com/cdcpub/cdcpub/internal/pipeline"
	"github.com/cdcpub/cdcpub/wal"
)

// verdict is what the end of a session means.
type verdict uint8

const (
	retry    verdict = iota // a new session may cure it
	wait                    // another process publishes: stand by
	refused                 // stop; found by looking before anything was read
	decision                // stop; a human must decide before the next start
)

// stopped is implemented by errors of the producer that no new session cures.
type stopped interface{ Stopped() bool }

// classify is the one place where the end of a session gets its meaning.
func classify(err error) verdict {
	var inUse *wal.SlotInUseError
	if errors.As(err, &inUse) {
		return wait
	}
	var stop *wal.StopError
	if errors.As(err, &stop) {
		switch stop.Reason {
		// What the slot should have held is gone, or is another server's:
		// starting again without a decision would hide a gap.
		case wal.SlotLost, wal.SlotAhead, wal.ServerChanged, wal.PublicationChanged, wal.PublicationTooNew, wal.RowUnreadable:
			return decision
		}
		// Something is missing or misconfigured; nothing was lost yet.
		return refused
	}
	var moved *movedError
	if errors.As(err, &moved) {
		return decision
	}
	// Bytes that make no sense today make none tomorrow, and to skip them
	// could lose rows.
	var malformed *wal.MalformedError
	if errors.As(err, &malformed) {
		return decision
	}
	// The catalogs were read again, and explain it no better.
	var unknown *stillUnknownError
	if errors.As(err, &unknown) {
		return decision
	}
	// The row is in the WAL as it is; only another configuration can publish it.
	var unpublishable *pipeline.UnpublishableError
	if errors.As(err, &unpublishable) {
		return decision
	}
	// The topic's limits or a policy must change.
	var rejected *pipeline.RejectedError
	if errors.As(err, &rejected) {
		return decision
	}
	// Fenced by another producer, or the topic is not the one it was.
	var stops stopped
	if errors.As(err, &stops) && stops.Stopped() {
		return decision
	}
	return retry
}

// stillUnknownError is a row of a relation that the catalogs do not explain,
// although they were read again at the same row.
type stillUnknownError struct{ *wal.UnknownRelationError }

func (e *stillUnknownError) Error() string {
	return fmt.Sprintf("%v; the catalogs were read again and still do not name it; the LSN stays before this transaction and nothing behind the row is sent; if the table is a partition of an outbox table that was detached, attach it again until the transaction is published; if it is another table, add it to the publication again until then; if it was dropped, nobody can say whether it held outbox rows: give the transaction up as for a row of it, see README, 'A row that cannot be published'",
		e.UnknownRelationError)
}

func (e *stillUnknownError) Unwrap() error { return e.UnknownRelationError }

// StoppedError ends Run: a human must act.
type StoppedError struct {
	Err error
	// Decision says that a restart without a human's decision would hide a gap
	// or fail in the same way; otherwise the start was refused by a check.
	Decision bool
}

func (e *StoppedError) Error() string { return e.Err.Error() }
func (e *StoppedError) Unwrap() error { return e.Err }
