package router

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cdcpub/cdcpub/wal"
)

// Error says why a row cannot become a record. It is about this row (or, when a
// column is missing, about every row of this table); sending the row again
// gives the same Error. The caller hands it to its policy for poison rows.
type Error struct {
	// Table is the qualified name under which the row arrived. For a partition
	// that is the leaf, unless the publication publishes via the root.
	Table string
	// Column is the first column at fault, empty when it is none of them.
	Column string
	// EventID is the event id as PostgreSQL prints it, shortened when very
	// long, empty when unknown.
	EventID string
	// Topic is the topic, also an illegal one, empty when not known yet.
	Topic string
	// Reason is a clause that names the column and, where it helps, the value.
	Reason string
	// Hint is the next step for the operator.
	Hint string
}

// Error returns one sentence and the next step.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("cannot publish ")
	if e.EventID == "" {
		b.WriteString("a row")
	} else {
		b.WriteString("event ")
		b.WriteString(printable(e.EventID))
	}
	if e.Table != "" {
		b.WriteString(" of table ")
		b.WriteString(printable(e.Table))
	}
	b.WriteString(": ")
	b.WriteString(e.Reason)
	if e.Hint != "" {
		b.WriteString("; next step: ")
		b.WriteString(e.Hint)
	}
	return b.String()
}

// fault is what the parsers below Route report: the parts of an Error that they
// know. Route adds the table and the event.
type fault struct {
	column, topic, reason, hint string
}

// Rows cannot be repaired in the WAL, so this is the end of most hints.
const (
	giveUpHint = "to give the row up knowingly, see README, 'A row that cannot be published'"
	poisonHint = "change the configuration so that the row can be published; " + giveUpHint
)

func columnFault(column, reason string) *fault {
	return &fault{column: column, reason: "column " + column + " " + reason, hint: poisonHint}
}

func (p *plan) fail(row wal.Row, f *fault) *Error {
	e := &Error{Table: p.table, Column: f.column, Topic: f.topic, Reason: f.reason, Hint: f.hint}
	if p.eventID.index >= 0 && p.eventID.index < len(row.Values) {
		e.EventID = shorten(row.Values[p.eventID.index])
	}
	return e
}

func errNoRelation() *Error {
	return &Error{Reason: "the row comes without its relation", Hint: "report this as a defect of the decoder"}
}

const maxShown = 256

// shorten keeps an error message bounded whatever the row holds.
func shorten(value []byte) string {
	if len(value) <= maxShown {
		return string(value)
	}
	return fmt.Sprintf("%s... (%d bytes)", value[:maxShown], len(value))
}

// printable quotes what would break a log line or hide its end.
func printable(s string) string {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' || c == '"' {
			return strconv.Quote(s)
		}
	}
	return s
}
