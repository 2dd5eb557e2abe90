package slotctl

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/spelling"
	"github.com/cdcpub/cdcpub/slotmon"
)

// UnknownSlotError says that the server has no slot of that name.
type UnknownSlotError struct {
	Slot string
	// Names are the slots that it has, the nearest first.
	Names []string
}

// shownNames bounds the list of names in a message.
const shownNames = 5

func (e *UnknownSlotError) Error() string {
	if len(e.Names) == 0 {
		return fmt.Sprintf("slot %s does not exist: this server has no slot at all", e.Slot)
	}
	text := strings.Join(e.Names[:min(len(e.Names), shownNames)], ", ")
	if more := len(e.Names) - shownNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("slot %s does not exist on this server; it has, nearest first: %s", e.Slot, text)
}

// Find samples the server and returns the slot of that name, or an
// *UnknownSlotError.
func Find(ctx context.Context, conn *pgx.Conn, name string) (*slotmon.Sample, *slotmon.Slot, error) {
	sample, err := slotmon.Read(ctx, conn, slotmon.Question{})
	if err != nil {
		return nil, nil, err
	}
	slot := sample.FindSlot(name)
	if slot == nil {
		return nil, nil, Unknown(sample, name)
	}
	return sample, slot, nil
}

// Unknown is the error for a slot that the sample does not have.
func Unknown(sample *slotmon.Sample, name string) *UnknownSlotError {
	names := make([]string, 0, len(sample.Slots))
	for _, slot := range sample.Slots {
		names = append(names, slot.Name)
	}
	return &UnknownSlotError{Slot: name, Names: spelling.Sorted(name, names)}
}

// position evaluates an SQL expression of type pg_lsn.
func position(ctx context.Context, conn *pgx.Conn, expression string) (pglogrepl.LSN, error) {
	var text string
	if err := conn.QueryRow(ctx, "SELECT ("+expression+")::text").Scan(&text); err != nil {
		return 0, fmt.Errorf("read %s: %w", expression, err)
	}
	return pglogrepl.ParseLSN(text)
}

// withStatementTimeout runs f while the session has another statement_timeout,
// for example 30s, or 0 for none. ctx still bounds what f asks.
func withStatementTimeout(ctx context.Context, conn *pgx.Conn, timeout string, f func() error) error {
	var before string
	if err := conn.QueryRow(ctx, "SELECT current_setting('statement_timeout')").Scan(&before); err != nil {
		return err
	}
	const set = "SELECT set_config('statement_timeout', $1, false)"
	if _, err := conn.Exec(ctx, set, timeout); err != nil {
		return err
	}
	err := f()
	if conn.IsClosed() {
		return err
	}
	if _, resetErr := conn.Exec(ctx, set, before); resetErr != nil && err == nil {
		return resetErr
	}
	return err
}
