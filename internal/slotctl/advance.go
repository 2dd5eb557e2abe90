package slotctl

import (
	"context"
	"fmt"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/slotmon"
)

// Advance is a way for confirmed_flush_lsn to go. Transactions whose commit
// record starts in [From, To) are skipped.
type Advance struct {
	Slot     *slotmon.Slot
	From, To pglogrepl.LSN
}

// flushedEnd is how far the server lets a slot advance.
const flushedEnd = "CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END"

// CheckAdvance finds the slot and what forbids to advance it. Without to the
// target is the present end of the WAL. Errors: *UnknownSlotError, *RefusedError.
func CheckAdvance(ctx context.Context, conn *pgx.Conn, name string, to *pglogrepl.LSN) (*Advance, error) {
	sample, slot, err := Find(ctx, conn, name)
	if err != nil {
		return nil, err
	}
	refuse := func(cure, format string, args ...any) (*Advance, error) {
		return nil, &RefusedError{Slot: name, Message: fmt.Sprintf(format, args...), Cure: cure}
	}
	switch {
	case slot.Type != "logical":
		return refuse("", "is a %s slot and has no confirmed_flush_lsn", slot.Type)
	case slot.Active:
		return nil, active(slot, nil)
	case slot.Lost():
		return refuse(fmt.Sprintf("`cdcpub slot drop %s` and create a new one", name), "is lost and cannot be moved any more")
	case syncedHere(sample, slot):
		return refuse("advance it on the primary: the copy follows", "is a copy that this standby keeps of the primary's slot")
	case slot.Database != sample.Server.Database:
		return refuse("give a connection to that database with --url", "belongs to database %s, and the connection is to %s", slot.Database, sample.Server.Database)
	case slot.ConfirmedFlushLSN == nil:
		return refuse("try again when it has finished", "is being created at this moment")
	}
	end, err := position(ctx, conn, flushedEnd)
	if err != nil {
		return nil, err
	}
	a := &Advance{Slot: slot, From: pglogrepl.LSN(*slot.ConfirmedFlushLSN)}
	if a.To = max(end, a.From); to != nil {
		a.To = *to
	}
	switch {
	case a.From > end:
		return refuse(fmt.Sprintf("see `cdcpub slot status %s`; a slot cannot go back: drop it and create a new one", name),
			"stands at %s, beyond the end of the server's WAL, %s: every row until then will be skipped as it is", a.From, end)
	case a.To > end:
		return refuse("name an LSN up to that end, or `now`", "cannot go to %s: the server's WAL ends at %s, %d bytes before it", a.To, end, a.To-end)
	case a.To < a.From:
		return refuse("a slot cannot go back: what was confirmed before must be published by other means, for example from the outbox table",
			"cannot go to %s: its confirmed_flush_lsn is %s, %d bytes after it", a.To, a.From, a.From-a.To)
	}
	return a, nil
}

// Run moves the slot and returns its confirmed_flush_lsn. The server decodes
// the WAL in between, so it may take a while. Errors: *RefusedError,
// *UnknownSlotError, *RightsError.
func (a *Advance) Run(ctx context.Context, conn *pgx.Conn) (pglogrepl.LSN, error) {
	err := withStatementTimeout(ctx, conn, "0", func() error {
		_, err := conn.Exec(ctx, "SELECT pg_replication_slot_advance($1, $2::text::pg_lsn)", a.Slot.Name, a.To.String())
		return err
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case err != nil:
		return 0, changed(ctx, conn, a.Slot.Name, "advance", err)
	}
	_, slot, err := Find(ctx, conn, a.Slot.Name)
	if err != nil {
		return 0, err
	}
	return pglogrepl.LSN(*slot.ConfirmedFlushLSN), nil
}
