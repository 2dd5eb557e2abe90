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

	"github.com/cdcpub/cdcpub/internal/slotctl"
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
	return fmt.Sprintf("slot %s exists but cannot be used: it is lost, belongs to another database, is two-phase or has another plugin than pgoutput (look: `cdcpub slot status %s`); if nobody needs it, `cdcpub slot drop %s` and run init again; what it should have held must be published by other means", e.Slot, e.Slot, e.Slot)
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
	lsn, err := slotctl.Create(ctx, conn, slotctl.New{Name: p.Slot, Timeout: p.SlotTimeout})
	if err != nil {
		return fmt.Errorf("create %s: %w", object, err)
	}
	report(Step{object, "created at LSN " + lsn.String()})
	return p.unpublished(ctx, conn, report)
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
