package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/internal/human"
	"github.com/cdcpub/cdcpub/internal/slotctl"
)

// reader says how to connect for reading a slot.
func (a *action) reader(ctx context.Context) (*pgconn.Config, error) {
	return a.server.settings(ctx)
}

// published are the publications that the slot is read with: the named ones, or
// the configured one for the configured slot.
func (a *action) published(named []string) []string {
	configured := a.server.config.Postgres
	if len(named) == 0 && configured.Publication != "" && a.Slot == configured.Slot {
		return []string{configured.Publication}
	}
	return named
}

// counted says how many rows are, for example, not confirmed, and of which
// tables.
func counted(count slotctl.Count, are string) string {
	if count.Rows == 0 && count.Exact() {
		return "0 rows " + are + "."
	}
	text := fmt.Sprintf("%s in %s %s", human.Plural(count.Rows, "row"), human.Plural(count.Transactions, "transaction"), are)
	var tables []string
	for _, table := range count.Tables {
		tables = append(tables, table.Table+": "+human.Count(table.Rows))
	}
	if len(tables) > 0 {
		text += " (" + strings.Join(tables, ", ") + ")"
	}
	if !count.Exact() {
		return "At least " + text + ": " + count.Incomplete + "."
	}
	return text + "."
}
