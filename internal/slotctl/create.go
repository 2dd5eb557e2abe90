package slotctl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/slotmon"
)

// New describes a slot to be created: logical, with plugin pgoutput, in the
// connection's database.
type New struct {
	Name string
	// Failover has standbys keep a copy of the slot (PostgreSQL 17 and newer).
	Failover bool
	// Timeout bounds the creation, which waits for every write transaction that
	// is running.
	Timeout time.Duration
}

// BlockedError says that a slot was not created in time, because write
// transactions were still running. Nothing is left of it.
type BlockedError struct {
	Timeout time.Duration
	// Writers describe the oldest of them; empty if none can be seen.
	Writers   []string
	OnStandby bool
}

func (e *BlockedError) Error() string {
	who := "look for long ones in pg_stat_activity (xact_start) and pg_prepared_xacts"
	switch {
	case e.OnStandby:
		who = "they run on the primary, where SELECT pg_log_standby_snapshot() helps once they have ended"
	case len(e.Writers) > 0:
		who = "the oldest are " + strings.Join(e.Writers, ", ")
	}
	return fmt.Sprintf("not finished within %s: it waits for every write transaction that is running; %s; end them, or try again with a longer --timeout", e.Timeout, who)
}

// CheckCreate finds what forbids to create the slot. publications must exist:
// what was written before a publication was created cannot be decoded with it,
// so a slot must be the younger one. Errors: *RefusedError.
func CheckCreate(ctx context.Context, conn *pgx.Conn, slot New, publications []string) (*slotmon.Sample, error) {
	sample, err := slotmon.Read(ctx, conn, slotmon.Question{})
	if err != nil {
		return nil, err
	}
	refuse := func(cure, format string, args ...any) error {
		return &RefusedError{Slot: slot.Name, Message: fmt.Sprintf(format, args...), Cure: cure}
	}
	if there := sample.FindSlot(slot.Name); there != nil {
		return nil, refuse(fmt.Sprintf("look at it with `cdcpub slot status %s`", slot.Name), "exists: %s", Kind(there))
	}
	if slot.Failover && sample.Server.VersionNum < 170000 {
		return nil, refuse("create it without --failover, and again after each failover, or use the slot management of your cluster manager",
			"cannot be a failover slot: this server is PostgreSQL %s, and they exist since 17", sample.Server.Version)
	}
	if slot.Failover && sample.Server.InRecovery {
		return nil, refuse("connect to the primary", "cannot be a failover slot here: this server is a standby")
	}
	missing, err := missingPublications(ctx, conn, publications)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		return nil, refuse("create the publication first (`cdcpub init` does both, in this order), or name another with --publication",
			"would be older than its publication and could not be decoded: publication %s does not exist in database %s", strings.Join(missing, ", "), sample.Server.Database)
	}
	return sample, nil
}

// Kind says what a slot is: logical, plugin pgoutput, database shop.
func Kind(slot *slotmon.Slot) string {
	if slot.Type != "logical" {
		return slot.Type
	}
	return fmt.Sprintf("logical, plugin %s, database %s", slot.Plugin, slot.Database)
}

func missingPublications(ctx context.Context, conn *pgx.Conn, names []string) ([]string, error) {
	const missing = "SELECT name FROM unnest($1::text[]) name WHERE name NOT IN (SELECT pubname FROM pg_publication)"
	rows, err := conn.Query(ctx, missing, names)
	if err != nil {
		return nil, fmt.Errorf("look for publications: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Create creates the slot and returns its confirmed_flush_lsn: transactions
// whose commit lies before it will not be seen. The time limit is the server's:
// a client that only stops waiting would leave the server at it, and the slot
// half made. Errors: *BlockedError, *RightsError.
func Create(ctx context.Context, conn *pgx.Conn, slot New) (pglogrepl.LSN, error) {
	call := "pg_create_logical_replication_slot($1, 'pgoutput')"
	if slot.Failover {
		call = "pg_create_logical_replication_slot($1, 'pgoutput', failover => true)"
	}
	var lsn string
	limit := fmt.Sprintf("%dms", max(1, slot.Timeout.Milliseconds()))
	err := withStatementTimeout(ctx, conn, limit, func() error {
		return conn.QueryRow(ctx, "SELECT lsn::text FROM "+call, slot.Name).Scan(&lsn)
	})
	switch {
	case err == nil:
		return pglogrepl.ParseLSN(lsn)
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	}
	return 0, slot.explain(ctx, conn, err)
}

// explain adds the cure to refusals that everybody meets once.
func (n *New) explain(ctx context.Context, conn *pgx.Conn, err error) error {
	switch sqlState(err) {
	case queryCanceled:
		return n.blocked(ctx, conn)
	case wrongState:
		return fmt.Errorf("%w; set wal_level = logical in postgresql.conf and restart PostgreSQL", err)
	case limitExceeded:
		return fmt.Errorf("%w; drop slots that nobody uses or raise max_replication_slots", err)
	case insufficientPrivilege:
		return replicationRight(conn, "create slot "+n.Name, err)
	case invalidName:
		return &RefusedError{Slot: n.Name, Message: "cannot be created: " + serverText(err), Cause: err,
			Cure: "choose lower-case letters, digits and underscores, 63 at most"}
	}
	return err
}

// blocked names the oldest write transactions, for which the slot waits.
func (n *New) blocked(ctx context.Context, conn *pgx.Conn) error {
	const writers = `SELECT text FROM (
			SELECT xact_start AS began, format('pid %s (user %s, application_name %L, since %s)', pid, usename, application_name, xact_start) AS text
			FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()
			UNION ALL
			SELECT prepared, format('prepared transaction %L (user %s, since %s)', gid, owner, prepared) FROM pg_prepared_xacts
		) writers ORDER BY began LIMIT 3`
	blocked := &BlockedError{Timeout: n.Timeout}
	rows, err := conn.Query(ctx, writers)
	if err != nil {
		return errors.Join(blocked, err)
	}
	if blocked.Writers, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		return errors.Join(blocked, err)
	}
	if err := conn.QueryRow(ctx, "SELECT pg_is_in_recovery()").Scan(&blocked.OnStandby); err != nil {
		return errors.Join(blocked, err)
	}
	return blocked
}
