package slotmon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// reading is one call of Read.
type reading struct {
	ctx  context.Context
	conn *pgconn.PgConn
}

// batch is statements for one round trip, which are one transaction. They run
// in order, and each sees the server as it is when its turn comes.
type batch struct {
	reading
	statements pgconn.Batch
	pending    []pending
}

type pending struct {
	what   string
	decode func(rows [][][]byte) error
}

// safeSQL makes the rest of the transaction read-only and closes it to objects
// that somebody put in front of pg_catalog: not only functions have names to
// resolve, operators do too. Times come in UTC, since JSON's form of them needs
// a zone offset of whole minutes, and text in UTF-8, which is what JSON is: a
// role or a database may have another client_encoding, and names would differ
// from themselves. All of it ends with the transaction.
const safeSQL = `SELECT pg_catalog.set_config('transaction_read_only', 'on', true),
	pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true),
	pg_catalog.set_config('TimeZone', 'UTC', true),
	pg_catalog.set_config('client_encoding', 'UTF8', true)`

func (r reading) begin() *batch {
	b := &batch{reading: r}
	b.add("the session's settings", safeSQL, func([][][]byte) error { return nil })
	return b
}

func (b *batch) add(what, sql string, decode func([][][]byte) error, args ...string) {
	values := make([][]byte, 0, len(args))
	for _, arg := range args {
		values = append(values, []byte(arg))
	}
	b.statements.ExecParams(sql, values, nil, nil, nil)
	b.pending = append(b.pending, pending{what, decode})
}

// ask adds a statement whose rows are one JSON value each, and returns where
// they will be once the batch has run. JSON names what it holds: a column that
// the server's version lacks is simply absent.
func ask[T any](b *batch, what, sql string, args ...string) *[]T {
	decoded := new([]T)
	b.add(what, sql, func(rows [][][]byte) error {
		*decoded = make([]T, len(rows))
		for i, row := range rows {
			if err := json.Unmarshal(row[0], &(*decoded)[i]); err != nil {
				return fmt.Errorf("unexpected answer %.200q: %w", row[0], err)
			}
		}
		return nil
	}, args...)
	return decoded
}

// run sends the statements and decodes the answers.
func (b *batch) run() error {
	results, err := b.conn.ExecBatch(b.ctx, &b.statements).ReadAll()
	if err != nil {
		return b.explain(results, err)
	}
	for i, p := range b.pending {
		if err := p.decode(results[i].Rows); err != nil {
			return fmt.Errorf("read %s: %w", p.what, err)
		}
	}
	return nil
}

// explain names the statement that the server refused. When the connection
// fails nobody can tell how far it came.
func (b *batch) explain(results []*pgconn.Result, err error) error {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return err
	}
	failed := slices.IndexFunc(results, func(r *pgconn.Result) bool { return r.Err != nil })
	if failed < 0 {
		failed = min(len(results), len(b.pending)-1)
	}
	return fmt.Errorf("read %s: %w", b.pending[failed].what, err)
}
