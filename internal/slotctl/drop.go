package slotctl

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/slotmon"
)

// CheckDrop finds the slot and what forbids to drop it. Errors:
// *UnknownSlotError, *RefusedError.
func CheckDrop(ctx context.Context, conn *pgx.Conn, name string) (*slotmon.Sample, *slotmon.Slot, error) {
	sample, slot, err := Find(ctx, conn, name)
	switch {
	case err != nil:
		return nil, nil, err
	case slot.Active:
		return nil, nil, active(slot, nil)
	case syncedHere(sample, slot):
		return nil, nil, &RefusedError{Slot: name,
			Message: "is a copy that this standby keeps of the primary's slot, and cannot be dropped here",
			Cure:    "drop it on the primary: the copy goes with it"}
	}
	return sample, slot, nil
}

// syncedHere tells if the slot is a standby's copy. A promoted standby keeps
// the mark without a meaning (PostgreSQL documentation, "pg_replication_slots").
func syncedHere(sample *slotmon.Sample, slot *slotmon.Slot) bool {
	return sample.Server.InRecovery && slot.Synced != nil && *slot.Synced
}

// Drop drops the slot if it is still as CheckDrop found it: one that somebody
// has read meanwhile, or has made anew under the same name, is another one. One
// statement compares and drops. The server refuses a slot that somebody holds by
// now. Errors: *RefusedError, *UnknownSlotError, *RightsError.
func Drop(ctx context.Context, conn *pgx.Conn, slot *slotmon.Slot) error {
	const drop = `SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots
		WHERE slot_name = $1 AND slot_type = $2 AND coalesce(plugin, '') = $3 AND coalesce(database, '') = $4
			AND confirmed_flush_lsn IS NOT DISTINCT FROM $5::text::pg_lsn`
	var confirmed *string
	if slot.ConfirmedFlushLSN != nil {
		confirmed = new(slot.ConfirmedFlushLSN.String())
	}
	dropped, err := conn.Exec(ctx, drop, slot.Name, slot.Type, slot.Plugin, slot.Database, confirmed)
	switch {
	case err != nil:
		return changed(ctx, conn, slot.Name, "drop", err)
	case dropped.RowsAffected() == 0:
		return moved(ctx, conn, slot)
	}
	return nil
}

// moved says what has become of a slot that was not dropped.
func moved(ctx context.Context, conn *pgx.Conn, was *slotmon.Slot) error {
	_, now, err := Find(ctx, conn, was.Name)
	switch {
	case err != nil:
		return err
	case now.Active:
		return active(now, nil)
	}
	return &RefusedError{Slot: was.Name,
		Message: fmt.Sprintf("is not what it was when you were asked, and was not dropped: somebody has read it meanwhile, or made it anew (%s, confirmed_flush_lsn %s; it was %s, %s)",
			Kind(now), confirmedText(now), Kind(was), confirmedText(was)),
		Cure: "look again"}
}

func confirmedText(slot *slotmon.Slot) string {
	if slot.ConfirmedFlushLSN == nil {
		return "none"
	}
	return slot.ConfirmedFlushLSN.String()
}

// changed explains why the server refused what a check had allowed.
func changed(ctx context.Context, conn *pgx.Conn, name, verb string, err error) error {
	what := verb + " slot " + name
	switch sqlState(err) {
	case insufficientPrivilege:
		return replicationRight(conn, what, err)
	case objectInUse, undefinedObject:
		_, slot, findErr := Find(ctx, conn, name)
		switch {
		case findErr != nil:
			return findErr
		case slot.Active:
			return active(slot, err)
		}
	}
	return fmt.Errorf("%s: %w", what, err)
}
