package wal

import (
	"time"

	"github.com/jackc/pglogrepl"
)

// Kind says what an Event is.
type Kind uint8

// The kinds of events, in the order in which a transaction shows them.
const (
	// Begin opens a transaction. Event.LSN is the LSN of its commit record
	// (the first half of every Position); CommitTime and XID are set.
	Begin Kind = iota + 1
	// Insert is one INSERT of the open transaction. Event.LSN is the row's LSN:
	// not unique and not monotonic across transactions, good for messages only.
	Insert
	// Commit closes the open transaction. Event.LSN is its end LSN, the only
	// position of a transaction that may ever be confirmed.
	Commit
	// Keepalive carries in Event.LSN how far the server has read its WAL. It
	// may be confirmed once everything received before it is acknowledged.
	Keepalive
)

// Event is one decoded step of the replication stream. It is a struct, not an
// interface, so that a row costs no allocation of its own.
type Event struct {
	Kind       Kind
	LSN        pglogrepl.LSN
	CommitTime time.Time
	XID        uint32
	Row        Row
}

// Row is one inserted row. Values has one entry per Relation.Columns, in text
// format as PostgreSQL printed it; nil is NULL, an empty non-nil slice is the
// empty string. The bytes are never written again after the Row was made, so
// they may be kept as long as needed; the Values slice itself belongs to the
// Batch and is valid until Batch.Release.
type Row struct {
	Relation *Relation
	Values   [][]byte
}

// Relation describes the table of a Row. It is immutable: when the table
// changes, even within a transaction, later rows point to a new Relation.
type Relation struct {
	ID      uint32
	Schema  string
	Name    string
	Columns []Column
}

// Column is one published column of a Relation.
type Column struct {
	Name     string
	TypeOID  uint32
	Modifier int32
	// Base is the built-in type, as pg_type.typname has it, that a domain is
	// over, at whatever depth. It is empty for every other type, and for a
	// domain over a type that is not built in.
	Base string
}

// String returns the qualified name, unquoted, as operators write it.
func (r *Relation) String() string { return r.Schema + "." + r.Name }
