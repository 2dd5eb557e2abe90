package slotctl

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pglogrepl"
)

// counter counts the rows of the transactions whose commit record starts before
// a position. It is pure, and reads of each pgoutput message (PostgreSQL
// documentation, "Logical Replication Message Formats") only what that needs.
type counter struct {
	to     pglogrepl.LSN
	limit  int64
	tables map[uint32]string

	rows         int64
	transactions int64
	byTable      map[string]int64
	open         bool // a transaction has begun
	counted      bool // a row of it was counted
}

func newCounter(to pglogrepl.LSN, limit int64) *counter {
	return &counter{to: to, limit: limit, tables: map[uint32]string{}, byTable: map[string]int64{}}
}

// outcome says whether to go on after a message.
type outcome uint8

const (
	goOn    outcome = iota
	through         // a transaction at or beyond the position begins
	capped          // the limit was reached
)

var (
	errTruncatedMessage = errors.New("it ends too early")
	errTwoPhase         = errors.New("the slot has two_phase = true, and its rows may still be rolled back")
)

// message takes in one pgoutput message.
func (c *counter) message(data []byte) (outcome, error) {
	if len(data) == 0 {
		return goOn, fmt.Errorf("empty message: %w", errTruncatedMessage)
	}
	kind, rest := data[0], data[1:]
	var next outcome
	var err error
	switch kind {
	case 'B':
		next, err = c.begin(rest)
	case 'C':
		if !c.open {
			err = errors.New("it ends no transaction")
		}
		c.open = false
	case 'R':
		err = c.describe(rest)
	case 'I', 'U', 'D':
		next, err = c.change(rest)
	case 'T':
		next, err = c.truncate(rest)
	case 'O', 'Y', 'M':
	case 'b', 'P', 'K', 'r', 'p':
		err = errTwoPhase
	default:
		err = errors.New("the type is unknown")
	}
	if err != nil {
		return goOn, fmt.Errorf("message of type %q: %w", kind, err)
	}
	return next, nil
}

func (c *counter) begin(rest []byte) (outcome, error) {
	if len(rest) < 8 {
		return goOn, errTruncatedMessage
	}
	if pglogrepl.LSN(binary.BigEndian.Uint64(rest)) >= c.to {
		return through, nil
	}
	c.open, c.counted = true, false
	return goOn, nil
}

func (c *counter) describe(rest []byte) error {
	if len(rest) < 4 {
		return errTruncatedMessage
	}
	schema, rest2, ok := bytes.Cut(rest[4:], []byte{0})
	name, _, ok2 := bytes.Cut(rest2, []byte{0})
	if !ok || !ok2 {
		return errTruncatedMessage
	}
	if len(schema) == 0 {
		schema = []byte("pg_catalog")
	}
	c.tables[binary.BigEndian.Uint32(rest)] = string(schema) + "." + string(name)
	return nil
}

// change counts one row, inserted, updated or deleted.
func (c *counter) change(rest []byte) (outcome, error) {
	if len(rest) < 4 {
		return goOn, errTruncatedMessage
	}
	table, known := c.tables[binary.BigEndian.Uint32(rest)]
	switch {
	case !known:
		return goOn, errors.New("its table was not described")
	case !c.open:
		return goOn, errors.New("it is outside a transaction")
	case c.rows >= c.limit:
		return capped, nil
	}
	if !c.counted {
		c.counted = true
		c.transactions++
	}
	c.rows++
	c.byTable[table]++
	return goOn, nil
}

// truncate counts as one row of each table: it is an event too.
func (c *counter) truncate(rest []byte) (outcome, error) {
	if len(rest) < 5 || uint64(len(rest)-5) < 4*uint64(binary.BigEndian.Uint32(rest)) {
		return goOn, errTruncatedMessage
	}
	for i := range binary.BigEndian.Uint32(rest) {
		if next, err := c.change(rest[5+4*i:]); err != nil || next != goOn {
			return next, err
		}
	}
	return goOn, nil
}

// TableCount is the number of rows of one table.
type TableCount struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
}

// count returns what was counted so far, most rows first.
func (c *counter) count() Count {
	var tables []TableCount
	for _, name := range slices.Sorted(maps.Keys(c.byTable)) {
		tables = append(tables, TableCount{name, c.byTable[name]})
	}
	slices.SortStableFunc(tables, func(a, b TableCount) int { return int(b.Rows - a.Rows) })
	return Count{Rows: c.rows, Transactions: c.transactions, Tables: tables}
}
