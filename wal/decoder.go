package wal

import (
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"
)

// Decoder turns pgoutput messages (protocol version 1, text format) into
// events. It is pure: no clock, no connection, no logger. Every length is
// checked; malformed input is a *MalformedError, never a panic, and nothing is
// skipped but what pgoutput says about things that are not outbox rows.
//
// After an error the Decoder must not be used again. It is not safe for
// concurrent use. Format: PostgreSQL documentation, "Logical Replication
// Message Formats".
type Decoder struct {
	tables    Tables
	relations map[uint32]*relation
	// bases has the built-in base type of each type that users created, "" for
	// those without one. A relation follows the types of its columns.
	bases map[uint32]string
	// open is the LSN of the open transaction's commit record as Begin
	// announced it, 0 between transactions.
	open  pglogrepl.LSN
	arena arena
}

// Tables decides what the rows of a relation are to us.
type Tables interface {
	// Classify is called once for each description of a relation.
	Classify(*Relation) Class
}

// Class is what a relation of the publication is to the stream.
type Class uint8

const (
	// Unknown relations stop the stream at their first row: nobody can say
	// whether they hold outbox rows.
	Unknown Class = iota
	// Outbox relations are outbox tables or partitions of one.
	Outbox
	// Foreign relations are in the publication but are not an outbox table.
	Foreign
)

type relation struct {
	*Relation
	class Class
}

// NewDecoder returns a Decoder for a new replication connection: pgoutput
// describes every relation again on each.
func NewDecoder(tables Tables) *Decoder {
	return &Decoder{tables: tables, relations: make(map[uint32]*relation), bases: make(map[uint32]string)}
}

// InTransaction reports whether a Begin has been decoded and its Commit not.
func (d *Decoder) InTransaction() bool { return d.open != 0 }

// postgresEpoch is 2000-01-01 in microseconds since 1970-01-01.
const postgresEpoch = 946684800 * 1000000

func commitTime(microseconds uint64) time.Time {
	return time.UnixMicro(int64(microseconds) + postgresEpoch).UTC()
}

// Decode decodes one pgoutput message that starts at the given LSN and appends
// what it means to the batch. It keeps no reference to message.
func (d *Decoder) Decode(start pglogrepl.LSN, message []byte, to *Batch) error {
	in := reader{rest: message}
	kind := in.byte()
	switch kind {
	case 'B':
		d.begin(&in, to)
	case 'C':
		d.commit(&in, to)
	case 'R':
		d.describe(&in)
	case 'I':
		d.insert(&in, start, to)
	case 'U':
		d.update(&in)
	case 'D':
		d.relation(&in)
		in.tag('K', 'O')
		in.skipTuple()
	case 'T':
		truncate(&in)
	case 'O':
		in.lsn()
		in.string()
	case 'Y':
		d.describeType(&in)
	case 'b', 'P', 'K', 'r', 'p':
		in.fail("two-phase message %q: the slot was created with two_phase = true, which this protocol version cannot read", kind)
	default:
		in.fail("unknown message type %q", kind)
	}
	if in.end(); in.err != nil {
		return d.malformed(start, kind, message, in.err)
	}
	return nil
}

// malformed adds what names the message; errors that are not about its bytes
// pass as they are.
func (d *Decoder) malformed(start pglogrepl.LSN, kind byte, message []byte, err error) error {
	if unknown, ok := err.(*UnknownRelationError); ok {
		unknown.LSN = start
		return unknown
	}
	head := message[:min(len(message), 64)]
	return &MalformedError{LSN: start, CommitLSN: d.open, Type: kind, Head: append([]byte(nil), head...), Cause: err}
}

func (d *Decoder) begin(in *reader, to *Batch) {
	commit, at, xid := in.lsn(), in.uint64(), in.uint32()
	in.end()
	switch {
	case in.err != nil:
	case d.open != 0:
		in.fail("a transaction begins within another")
	case commit == 0:
		in.fail("a transaction without a commit LSN")
	default:
		d.open = commit
		to.add(Event{Kind: Begin, LSN: commit, CommitTime: commitTime(at), XID: xid})
	}
}

func (d *Decoder) commit(in *reader, to *Batch) {
	in.byte()
	commit, end, at := in.lsn(), in.lsn(), in.uint64()
	in.end()
	switch {
	case in.err != nil:
	case d.open == 0:
		in.fail("a commit outside a transaction")
	case commit != d.open:
		in.fail("commit at %s of a transaction that announced %s", commit, d.open)
	case end <= commit:
		in.fail("commit at %s ends at %s", commit, end)
	default:
		d.open = 0
		to.add(Event{Kind: Commit, LSN: end, CommitTime: commitTime(at)})
	}
}

// describeType keeps what a domain is over: the message has the type's own OID,
// but schema and name of its base type (logicalrep_write_typ in proto.c). The
// schema pg_catalog is sent as the empty string.
func (d *Decoder) describeType(in *reader) {
	oid, schema, name := in.uint32(), in.string(), in.string()
	if in.end(); in.err != nil {
		return
	}
	if schema != "" {
		name = ""
	}
	d.bases[oid] = name
}

func (d *Decoder) describe(in *reader) {
	rel := &Relation{ID: in.uint32(), Schema: in.string(), Name: in.string()}
	if rel.Schema == "" {
		rel.Schema = "pg_catalog"
	}
	in.byte()
	n := in.count()
	for range n {
		in.byte()
		column := Column{Name: in.string(), TypeOID: in.uint32(), Modifier: int32(in.uint32())}
		if in.err != nil {
			return
		}
		column.Base = d.bases[column.TypeOID]
		rel.Columns = append(rel.Columns, column)
	}
	if in.err == nil {
		d.relations[rel.ID] = &relation{rel, d.tables.Classify(rel)}
	}
}

// relation reads a relation id and returns what was described under it.
func (d *Decoder) relation(in *reader) *relation {
	id := in.uint32()
	if in.err != nil {
		return nil
	}
	rel := d.relations[id]
	switch {
	case d.open == 0:
		in.fail("a row outside a transaction")
	case rel == nil:
		in.fail("a row of relation %d, which was not described", id)
	case rel.class == Unknown:
		in.err = &UnknownRelationError{Relation: rel.Relation, CommitLSN: d.open}
	}
	return rel
}

func (d *Decoder) insert(in *reader, start pglogrepl.LSN, to *Batch) {
	rel := d.relation(in)
	in.tag('N', 'N')
	if in.err != nil {
		return
	}
	if rel.class == Foreign {
		in.skipTuple()
		return
	}
	// One copy for all values: the driver writes over message at the next read.
	in.rest = d.arena.copy(in.rest)
	values := to.takeValues(len(rel.Columns))
	if n := in.count(); in.err == nil && n != len(values) {
		in.fail("%d values for the %d columns of %s", n, len(values), rel)
	}
	for i := range values {
		values[i] = in.value()
	}
	if in.end(); in.err == nil {
		to.add(Event{Kind: Insert, LSN: start, Row: Row{Relation: rel.Relation, Values: values}})
	}
}

func (d *Decoder) update(in *reader) {
	d.relation(in)
	if in.tag('N', 'K', 'O') != 'N' {
		in.skipTuple()
		in.tag('N', 'N')
	}
	in.skipTuple()
}

func truncate(in *reader) {
	n := in.uint32()
	in.byte()
	if in.err == nil && uint64(len(in.rest)) != 4*uint64(n) {
		in.fail("truncate of %d relations in %d bytes", n, len(in.rest))
		return
	}
	in.rest = nil
}

// MalformedError says that a message of the replication stream is not what
// pgoutput may send. The stream stops: reading on could lose rows.
type MalformedError struct {
	LSN       pglogrepl.LSN // of the message, 0 where the server gives none
	CommitLSN pglogrepl.LSN // of the open transaction, 0 outside one
	Type      byte
	Head      []byte // the first bytes of the message
	Cause     error
}

func (e *MalformedError) Error() string {
	return fmt.Sprintf("malformed replication message of type %q at LSN %s (transaction committed at %s): %v; it begins with % x",
		e.Type, e.LSN, e.CommitLSN, e.Cause, e.Head)
}

func (e *MalformedError) Unwrap() error { return e.Cause }

// UnknownRelationError says that the publication sent a row of a table that is
// neither an outbox table nor known as another table of the publication: a
// table or partition that came or went since the connection began.
type UnknownRelationError struct {
	Relation  *Relation
	LSN       pglogrepl.LSN
	CommitLSN pglogrepl.LSN
}

func (e *UnknownRelationError) Error() string {
	return fmt.Sprintf("row of table %s (oid %d) at LSN %s in the transaction committed at %s: not an outbox table and not a table that the publication names today",
		e.Relation, e.Relation.ID, e.LSN, e.CommitLSN)
}
