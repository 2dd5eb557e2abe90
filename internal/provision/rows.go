package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/internal/human"
)

// unpublished says how many rows a new slot may never deliver. Those that were
// written since it was created are counted too.
func (r *runner) unpublished(ctx context.Context) error {
	for i, table := range r.Tables {
		if !r.found.tables[i].Exists {
			continue
		}
		number, err := r.rows(ctx, table, r.found.tables[i].OID)
		if err != nil {
			return fmt.Errorf("count the rows of table %s: %w", table, err)
		}
		if number != "" {
			r.report(Step{Object: "table " + table.String(), Done: "contains " + number + "; those written before the slot was created will not be published"})
		}
	}
	return nil
}

// rows is the number of rows in words, empty for none. It is an estimate if
// counting takes too long or is not allowed.
func (r *runner) rows(ctx context.Context, table Table, oid uint32) (string, error) {
	var number int64
	limit := r.CountTimeout
	if limit == 0 {
		limit = 5 * time.Second
	}
	err := pgx.BeginFunc(ctx, r.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = '"+timeSetting(limit)+"'"); err != nil {
			return err
		}
		return tx.QueryRow(ctx, "SELECT count(*) FROM "+table.sql()).Scan(&number)
	})
	var refused *pgconn.PgError
	switch {
	case err == nil && number == 0:
		return "", nil
	case err == nil:
		return human.Plural(number, "row"), nil
	case errors.As(err, &refused) && (refused.Code == "57014" || refused.Code == "42501"): // query_canceled, insufficient_privilege
		return r.estimate(ctx, oid)
	}
	return "", err
}

// estimate adds what the planner believes of each leaf; -1 is not known.
func (r *runner) estimate(ctx context.Context, oid uint32) (string, error) {
	var number int64
	err := r.conn.QueryRow(ctx, `SELECT coalesce(sum(greatest(reltuples, 0)), 0)::bigint FROM pg_class
		WHERE relkind = 'r' AND oid IN (SELECT $1::oid UNION SELECT relid FROM pg_partition_tree($1::oid))`, oid).Scan(&number)
	switch {
	case err != nil:
		return "", err
	case number == 0:
		return "an unknown number of rows", nil
	}
	return "about " + human.Plural(number, "row"), nil
}
