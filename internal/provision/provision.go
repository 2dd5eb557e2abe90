// Package provision creates what publishing needs in PostgreSQL, where it is
// missing: outbox tables, publication, slot, in this order. A slot that is
// older than its publication cannot be decoded, so the slot comes last.
package provision

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Plan names what must exist. Names are as in the catalogs, unquoted.
type Plan struct {
	Tables      []Table
	Columns     Columns
	Publication string
	Slot        string
	// SlotTimeout bounds the creation of the slot, which waits for every write
	// transaction that is running.
	SlotTimeout time.Duration
}

// Table is a qualified table name.
type Table struct{ Schema, Name string }

func (t Table) String() string { return t.Schema + "." + t.Name }

func (t Table) quoted() string { return pgx.Identifier{t.Schema, t.Name}.Sanitize() }

// UnusableSlotError says that the slot exists and cannot be read by cdcpub: it
// is lost, has another plugin or database, or is two-phase.
type UnusableSlotError struct{ Slot string }

func (e *UnusableSlotError) Error() string {
	return fmt.Sprintf("slot %s exists but cannot be used: it is lost, belongs to another database, is two-phase or has another plugin than pgoutput (look: SELECT * FROM pg_replication_slots WHERE slot_name = '%s'); if nobody needs it, SELECT pg_drop_replication_slot('%s') and run init again; what it should have held must be published by other means", e.Slot, e.Slot, e.Slot)
}

// Step is one thing that was looked at.
type Step struct {
	Object string // "table public.outbox"
	Done   string // "created" or what was found
}

// Run creates what is missing and reports each step when it is done. It may be
// called again at any time: what exists is left as it is, except that missing
// tables are added to the publication.
func Run(ctx context.Context, conn *pgx.Conn, plan Plan, report func(Step)) error {
	for _, table := range plan.Tables {
		if err := plan.table(ctx, conn, table, report); err != nil {
			return err
		}
	}
	if err := plan.publication(ctx, conn, report); err != nil {
		return err
	}
	return plan.slot(ctx, conn, report)
}

func (p *Plan) table(ctx context.Context, conn *pgx.Conn, table Table, report func(Step)) error {
	object := "table " + table.String()
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", table.quoted()).Scan(&exists); err != nil {
		return fmt.Errorf("%s: %w", object, err)
	}
	if exists {
		report(Step{object, "exists"})
		return nil
	}
	if _, err := conn.Exec(ctx, p.TableSQL(table)); err != nil {
		return fmt.Errorf("create %s: %w", object, err)
	}
	report(Step{object, "created"})
	return nil
}

func (p *Plan) publication(ctx context.Context, conn *pgx.Conn, report func(Step)) error {
	object := "publication " + p.Publication
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_publication WHERE pubname = $1)", p.Publication).Scan(&exists); err != nil {
		return fmt.Errorf("%s: %w", object, err)
	}
	if !exists {
		if _, err := conn.Exec(ctx, p.PublicationSQL()); err != nil {
			return fmt.Errorf("create %s: %w", object, err)
		}
		report(Step{object, "created"})
		return nil
	}
	report(Step{object, "exists"})
	for _, table := range p.Tables {
		if err := p.publish(ctx, conn, table, report); err != nil {
			return err
		}
	}
	return nil
}

// publish adds the table to an existing publication that does not contain it,
// neither itself nor, for a partitioned table, through its leaves.
func (p *Plan) publish(ctx context.Context, conn *pgx.Conn, table Table, report func(Step)) error {
	const published = `SELECT EXISTS (SELECT FROM pg_publication_tables t
		WHERE t.pubname = $1 AND to_regclass(format('%I.%I', t.schemaname, t.tablename)) IN
			(SELECT to_regclass($2) UNION SELECT relid FROM pg_partition_tree(to_regclass($2))))`
	var exists bool
	if err := conn.QueryRow(ctx, published, p.Publication, table.quoted()).Scan(&exists); err != nil {
		return fmt.Errorf("publication %s: %w", p.Publication, err)
	}
	if exists {
		return nil
	}
	add := fmt.Sprintf("ALTER PUBLICATION %s ADD TABLE %s", pgx.Identifier{p.Publication}.Sanitize(), table.quoted())
	if _, err := conn.Exec(ctx, add); err != nil {
		return fmt.Errorf("add table %s to publication %s: %w", table, p.Publication, err)
	}
	report(Step{"publication " + p.Publication, "table " + table.String() + " added"})
	return nil
}

func (p *Plan) slot(ctx context.Context, conn *pgx.Conn, report func(Step)) error {
	object := "slot " + p.Slot
	var creating, unusable bool
	err := conn.QueryRow(ctx, `SELECT slot_type = 'logical' AND active AND confirmed_flush_lsn IS NULL,
		plugin IS DISTINCT FROM 'pgoutput' OR database <> current_database() OR two_phase OR wal_status = 'lost' OR restart_lsn IS NULL
		FROM pg_replication_slots WHERE slot_name = $1`, p.Slot).Scan(&creating, &unusable)
	switch {
	case err == nil && creating:
		return fmt.Errorf("%s: another session is creating it at this moment; try again when it has finished", object)
	case err == nil && unusable:
		return &UnusableSlotError{Slot: p.Slot}
	case err == nil:
		report(Step{object, "exists"})
		return nil
	case !errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("%s: %w", object, err)
	}
	lsn, err := p.createSlot(ctx, conn)
	if err != nil {
		return fmt.Errorf("create %s: %w", object, err)
	}
	report(Step{object, "created at LSN " + lsn})
	return p.unpublished(ctx, conn, report)
}

// createSlot leaves the time limit to the server: a client that only stops
// waiting would leave the server at it, and the slot half made.
func (p *Plan) createSlot(ctx context.Context, conn *pgx.Conn) (lsn string, err error) {
	const limit = "SELECT set_config('statement_timeout', $1, false)"
	if _, err := conn.Exec(ctx, limit, fmt.Sprintf("%dms", max(1, p.SlotTimeout.Milliseconds()))); err != nil {
		return "", err
	}
	err = conn.QueryRow(ctx, "SELECT lsn::text FROM pg_create_logical_replication_slot($1, 'pgoutput')", p.Slot).Scan(&lsn)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if _, resetErr := conn.Exec(ctx, "RESET statement_timeout"); resetErr != nil {
		return "", errors.Join(err, resetErr)
	}
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == "57014" { // query_canceled
		return "", p.blocked(ctx, conn)
	}
	return lsn, explain(err)
}

// blocked names the oldest write transactions, for which the slot waits.
func (p *Plan) blocked(ctx context.Context, conn *pgx.Conn) error {
	const writers = `SELECT text FROM (
			SELECT xact_start AS began, format('pid %s (user %s, application_name %L, since %s)', pid, usename, application_name, xact_start) AS text
			FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()
			UNION ALL
			SELECT prepared, format('prepared transaction %L (user %s, since %s)', gid, owner, prepared) FROM pg_prepared_xacts
		) writers ORDER BY began LIMIT 3`
	rows, err := conn.Query(ctx, writers)
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	who := "look for long ones in pg_stat_activity (xact_start) and pg_prepared_xacts"
	if len(found) > 0 {
		who = "the oldest are " + strings.Join(found, ", ")
	}
	return fmt.Errorf("not finished within %s: it waits for every write transaction that is running; %s; end them, or try again with a longer --timeout", p.SlotTimeout, who)
}

// unpublished says how many rows a new slot may never deliver. Those that were
// written since it was created are counted too.
func (p *Plan) unpublished(ctx context.Context, conn *pgx.Conn, report func(Step)) error {
	for _, table := range p.Tables {
		var rows int64
		if err := conn.QueryRow(ctx, "SELECT count(*) FROM "+table.quoted()).Scan(&rows); err != nil {
			return fmt.Errorf("count table %s: %w", table, err)
		}
		if rows > 0 {
			report(Step{"table " + table.String(), fmt.Sprintf("contains %d rows; those written before the slot was created will not be published", rows)})
		}
	}
	return nil
}

// explain adds the cure to refusals that everybody meets once.
func explain(err error) error {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return err // also nil
	}
	switch refused.Code {
	case "55000": // object_not_in_prerequisite_state
		return fmt.Errorf("%w; set wal_level = logical in postgresql.conf and restart PostgreSQL", err)
	case "53400": // configuration_limit_exceeded
		return fmt.Errorf("%w; drop slots that nobody uses or raise max_replication_slots", err)
	case "42501": // insufficient_privilege
		return fmt.Errorf("%w; as a superuser: ALTER ROLE ... REPLICATION", err)
	}
	return err
}

// PublicationSQL is the statement that creates the publication. Inserts only:
// deleting from the outbox then needs no replica identity. Via the root:
// partitions arrive under the table's own name.
func (p *Plan) PublicationSQL() string {
	names := make([]string, 0, len(p.Tables))
	for _, table := range p.Tables {
		names = append(names, table.quoted())
	}
	return fmt.Sprintf("CREATE PUBLICATION %s FOR TABLE %s WITH (publish = 'insert', publish_via_partition_root = true)",
		pgx.Identifier{p.Publication}.Sanitize(), strings.Join(names, ", "))
}
