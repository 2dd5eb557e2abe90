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

// Drop drops the slot. The server refuses a slot that somebody holds by now.
// Errors: *RefusedError, *UnknownSlotError, *RightsError.
func Drop(ctx context.Context, conn *pgx.Conn, name string) error {
	_, err := conn.Exec(ctx, "SELECT pg_drop_replication_slot($1)", name)
	if err != nil {
		return changed(ctx, conn, name, "drop", err)
	}
	return nil
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
