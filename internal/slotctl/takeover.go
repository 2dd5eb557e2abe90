package slotctl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/slotmon"
)

// CheckTakeover finds the slot and returns it if nobody holds it or its holder
// has one of the application_names. Errors: *UnknownSlotError, *RefusedError.
func CheckTakeover(ctx context.Context, conn *pgx.Conn, name string, applications []string) (*slotmon.Slot, error) {
	_, slot, err := Find(ctx, conn, name)
	switch {
	case err != nil:
		return nil, err
	case !slot.Active:
		return slot, nil
	case slot.Holder == nil:
		return nil, &RefusedError{Slot: name, Message: held(slot), Cure: "try again"}
	case !slices.Contains(applications, slot.Holder.ApplicationName):
		return nil, &RefusedError{Slot: name,
			Message: fmt.Sprintf("%s, which is not a cdcpub (%s)", held(slot), quotedList(applications)),
			Cure:    fmt.Sprintf("if that process is to lose the slot, give its application_name: --from %q", slot.Holder.ApplicationName)}
	}
	return slot, nil
}

func quotedList(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return "application_name " + strings.Join(quoted, " or ")
}

// HolderChangedError says that somebody else holds the slot than the one who
// was to be ended. Nobody was.
type HolderChangedError struct {
	Slot string
	// Now is the present holder, nil if the slot is free.
	Now *slotmon.Holder
}

func (e *HolderChangedError) Error() string {
	now := "nobody holds it now"
	if e.Now != nil {
		now = "it is held by " + Holder(e.Now) + " now"
	}
	return fmt.Sprintf("slot %s has changed hands meanwhile: %s; nobody was ended, look again", e.Slot, now)
}

// End ends the walsender that holds the slot, if it is still this one. One
// statement compares and ends. Errors: *HolderChangedError, *RightsError.
func End(ctx context.Context, conn *pgx.Conn, slot string, holder *slotmon.Holder) error {
	const end = `SELECT pg_terminate_backend(a.pid) FROM pg_replication_slots s JOIN pg_stat_activity a ON a.pid = s.active_pid
		WHERE s.slot_name = $1 AND s.active_pid = $2 AND a.application_name = $3`
	var signalled bool
	err := conn.QueryRow(ctx, end, slot, holder.PID, holder.ApplicationName).Scan(&signalled)
	switch {
	case err == nil:
		return nil // not signalled: the process had ended by itself
	case errors.Is(err, pgx.ErrNoRows):
		_, found, err := Find(ctx, conn, slot)
		if err != nil {
			return err
		}
		return &HolderChangedError{Slot: slot, Now: found.Holder}
	case sqlState(err) == insufficientPrivilege:
		return terminateRight(ctx, conn, holder, err)
	}
	return fmt.Errorf("end pid %d: %w", holder.PID, err)
}

// terminateRight says what is missing: only superusers may end a superuser's
// process.
func terminateRight(ctx context.Context, conn *pgx.Conn, holder *slotmon.Holder, cause error) error {
	rights := &RightsError{What: fmt.Sprintf("end pid %d", holder.PID), Cause: cause}
	var superuser bool
	const owner = "SELECT rolsuper FROM pg_stat_activity a JOIN pg_roles r ON r.oid = a.usesysid WHERE a.pid = $1"
	err := conn.QueryRow(ctx, owner, holder.PID).Scan(&superuser)
	switch {
	case err != nil && !errors.Is(err, pgx.ErrNoRows):
		return errors.Join(rights, err)
	case superuser:
		rights.Cure = "the process belongs to a superuser, which only a superuser may end: connect as one (--url)"
	default:
		rights.Cure = "as a superuser: GRANT pg_signal_backend TO " + pgx.Identifier{conn.Config().User}.Sanitize()
	}
	return rights
}

// pollInterval is how often the server is asked again.
const pollInterval = 200 * time.Millisecond

// AwaitRelease waits until the process with that pid no longer holds the slot,
// and returns the slot as it is then: free, or held by another. It ends with
// ctx, whose cause it returns.
func AwaitRelease(ctx context.Context, conn *pgx.Conn, name string, pid int) (*slotmon.Slot, error) {
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		_, slot, err := Find(ctx, conn, name)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, err
		case !slot.Active || slot.Holder != nil && slot.Holder.PID != pid:
			return slot, nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// AwaitHolder waits until somebody holds the slot, or until patience is over,
// and returns the slot as it is then.
func AwaitHolder(ctx context.Context, conn *pgx.Conn, name string, patience time.Duration) (*slotmon.Slot, error) {
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	over := time.After(patience)
	for {
		_, slot, err := Find(ctx, conn, name)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil, slot.Active:
			return slot, err
		}
		select {
		case <-poll.C:
		case <-over:
			return slot, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
