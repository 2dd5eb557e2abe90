package wal

import (
	"errors"
	"fmt"

	"github.com/jackc/pglogrepl"
)

// StopError says that the stream cannot go on until a human has acted. What
// it means for data and what to do next are part of it.
type StopError struct {
	Reason  Reason
	Slot    string
	Message string // what happened and what it means for data
	Cure    string // what to do next
	Cause   error  // the server's own words, if any
	// CommitLSN is that of the transaction which cannot be read on, for
	// RowUnreadable; 0 if it is not known.
	CommitLSN pglogrepl.LSN
}

// Reason tells StopErrors apart.
type Reason uint8

// The reasons, each with what a supervisor may do about it.
const (
	SlotMissing         Reason = iota + 1 // a new slot would begin now: never created silently
	SlotLost                              // WAL that the slot needs is gone
	SlotUnusable                          // another plugin, another database, two-phase, physical
	SlotAhead                             // confirmed_flush_lsn lies beyond the server's WAL
	ServerChanged                         // another system identifier
	PublicationMissing                    //
	PublicationTooNew                     // created after the slot
	PublicationUnusable                   // without a table, with a row filter, without inserts
	PublicationChanged                    // rows may have been skipped meanwhile
	TableUnusable                         // missing, UNLOGGED, without a configured column
	AccessDenied                          // wrong password, no REPLICATION, no CONNECT
	RowUnreadable                         // text that PostgreSQL cannot convert to UTF-8
)

func (e *StopError) Error() string {
	text := e.Message
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text + "; " + e.Cure
}

func (e *StopError) Unwrap() error { return e.Cause }

// SlotInUseError says that another process reads the slot. Whoever holds the
// slot publishes; the others wait.
type SlotInUseError struct {
	Slot            string
	PID             int
	ApplicationName string // empty when the role may not see it
	Address         string
	// SystemID is the system identifier of the server that says so.
	SystemID string
	Cause    error
}

func (e *SlotInUseError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("slot %s is in use by another process; waiting as standby until it is free", e.Slot)
	}
	holder := fmt.Sprintf("pid %d", e.PID)
	if e.ApplicationName != "" {
		holder += fmt.Sprintf(", application_name %q", e.ApplicationName)
	}
	if e.Address != "" {
		holder += ", from " + e.Address
	}
	return fmt.Sprintf("slot %s is in use by %s; waiting as standby until it is free (if nothing is published, /status of the holder says why; to end it, which also accepts what it may wait for: SELECT pg_terminate_backend(%d))", e.Slot, holder, e.PID)
}

func (e *SlotInUseError) Unwrap() error { return e.Cause }

// UnreachableError says that no connection could be made. The slot keeps the
// WAL meanwhile.
type UnreachableError struct {
	Address string
	Text    string // one line
	Cause   error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("PostgreSQL at %s cannot be reached: %s; trying again, nothing is lost while the slot keeps its WAL", e.Address, e.Text)
}

func (e *UnreachableError) Unwrap() error { return e.Cause }

// Ends of a stream that a new connection may cure.
var (
	// ErrServerStopping: PostgreSQL is shutting down and waits for us. We let
	// go so that it can.
	ErrServerStopping = errors.New("PostgreSQL is shutting down")
	// ErrSilent: nothing was heard for longer than wal_sender_timeout and no
	// walsender of ours is alive.
	ErrSilent = errors.New("PostgreSQL has not been heard for longer than wal_sender_timeout")
	// ErrSlotTaken: the walsender of this connection no longer holds the slot.
	ErrSlotTaken = errors.New("the slot is no longer held by this connection")
	// ErrServerEnded: the server ended the stream without an error.
	ErrServerEnded = errors.New("PostgreSQL ended the replication stream")
)
