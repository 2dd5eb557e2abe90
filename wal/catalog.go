package wal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
)

// catalog asks the server over the replication connection, before it streams.
// Rows come as JSON, so that a column that a version lacks is simply absent.
type catalog struct {
	ctx  context.Context
	conn *pgconn.PgConn
}

// query returns the first column of every row, decoded.
func query[T any](c *catalog, sql string) ([]T, error) {
	results, err := c.conn.Exec(c.ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	var rows []T
	for _, row := range results[0].Rows {
		var decoded T
		if err := json.Unmarshal(row[0], &decoded); err != nil {
			return nil, fmt.Errorf("unexpected answer %q: %w", row[0], err)
		}
		rows = append(rows, decoded)
	}
	return rows, nil
}

// backend is a server process. A pid alone is not: a server in a container that
// is started again counts from the beginning.
type backend struct {
	PID   int    `json:"pid"`
	Began string `json:"began"`
}

func (c *catalog) backend() (backend, error) {
	found, err := query[backend](c, "SELECT pg_catalog.row_to_json(b) FROM (SELECT pid, extract(epoch FROM backend_start)::text AS began FROM pg_catalog.pg_stat_activity WHERE pid = pg_catalog.pg_backend_pid()) b")
	switch {
	case err != nil:
		return backend{}, fmt.Errorf("read the walsender's pid: %w", err)
	case len(found) == 0:
		return backend{}, errors.New("read the walsender's pid: pg_stat_activity does not have it")
	}
	return found[0], nil
}

type slotRow struct {
	Plugin             string  `json:"plugin"`
	SlotType           string  `json:"slot_type"`
	Database           string  `json:"database"`
	Active             bool    `json:"active"`
	ActivePID          int     `json:"active_pid"`
	RestartLSN         *string `json:"restart_lsn"`
	ConfirmedFlushLSN  *string `json:"confirmed_flush_lsn"`
	WALStatus          string  `json:"wal_status"`
	TwoPhase           bool    `json:"two_phase"`
	InvalidationReason string  `json:"invalidation_reason"`

	confirmed pglogrepl.LSN
}

// checkSlot refuses every slot from which rows could be lost or misread.
func (c *Config) checkSlot(cat *catalog, system pglogrepl.IdentifySystemResult) (*slotRow, error) {
	rows, err := query[slotRow](cat, "SELECT row_to_json(s) FROM pg_catalog.pg_replication_slots s WHERE slot_name = "+quoteLiteral(c.Slot))
	if err != nil {
		return nil, c.explain(fmt.Errorf("read slot %s: %w", c.Slot, err))
	}
	if len(rows) == 0 {
		return nil, c.stop(SlotMissing, nil,
			"create it with `cdcpub init -c <your config>`; a new slot begins at its creation and will not contain outbox rows that were written before: publish those by other means, or accept the gap",
			"slot %s does not exist on this server", c.Slot)
	}
	slot := &rows[0]
	switch {
	case slot.SlotType != "logical":
		return nil, c.stop(SlotUnusable, nil, "name a logical slot in postgres.slot", "slot %s is a physical slot", c.Slot)
	case slot.Plugin != "pgoutput":
		return nil, c.stop(SlotUnusable, nil, "name a slot with plugin pgoutput in postgres.slot", "slot %s has plugin %s, not pgoutput", c.Slot, slot.Plugin)
	case slot.Database != system.DBName:
		return nil, c.stop(SlotUnusable, nil, "correct the database in postgres.url or postgres.slot",
			"slot %s belongs to database %s, the connection is to %s", c.Slot, slot.Database, system.DBName)
	case slot.TwoPhase:
		return nil, c.stop(SlotUnusable, nil, "create a slot without two_phase",
			"slot %s has two_phase = true: rows would arrive at PREPARE TRANSACTION and may still be rolled back", c.Slot)
	case slot.ConfirmedFlushLSN == nil && slot.Active: // being created
		return nil, c.slotInUse(cat, slot)
	case slot.RestartLSN == nil || slot.ConfirmedFlushLSN == nil || slot.WALStatus == "lost" || slot.InvalidationReason != "":
		return nil, c.slotLost(slot, system)
	}
	if slot.confirmed, err = pglogrepl.ParseLSN(*slot.ConfirmedFlushLSN); err != nil {
		return nil, fmt.Errorf("confirmed_flush_lsn of slot %s: %w", c.Slot, err)
	}
	if slot.confirmed > system.XLogPos {
		// Another publisher may have confirmed what was written in between.
		if system, err = pglogrepl.IdentifySystem(cat.ctx, cat.conn); err != nil {
			return nil, c.explain(fmt.Errorf("identify system: %w", err))
		}
	}
	if slot.confirmed > system.XLogPos {
		return nil, c.stop(SlotAhead, nil,
			"find out who confirmed it (a client that confirms too much, or a server restored to an earlier time), create a new slot, and publish again what is missing",
			"confirmed_flush_lsn of slot %s is %s, but the server's WAL ends at %s: every row until then would be skipped", c.Slot, slot.confirmed, system.XLogPos)
	}
	if slot.Active {
		return nil, c.slotInUse(cat, slot)
	}
	return slot, nil
}

func (c *Config) slotLost(slot *slotRow, system pglogrepl.IdentifySystemResult) error {
	gone := "all WAL before " + system.XLogPos.String()
	if slot.ConfirmedFlushLSN != nil {
		gone = fmt.Sprintf("the WAL from %s (the last confirmed position) to %s (now)", *slot.ConfirmedFlushLSN, system.XLogPos)
	}
	why := slot.InvalidationReason
	if why == "" {
		why = "wal_status " + slot.WALStatus
	}
	return c.stop(SlotLost, nil,
		fmt.Sprintf("drop the slot (`cdcpub slot drop %s`), create a new one (`cdcpub slot create %s`), then publish the rows of that range from the outbox table, if they are still in it; raise max_slot_wal_keep_size or alert earlier", c.Slot, c.Slot),
		"slot %s is lost (%s): %s can no longer be read through it, and unpublished outbox rows in that range will never arrive by themselves", c.Slot, why, gone)
}

func (c *Config) slotInUse(cat *catalog, slot *slotRow) error {
	type holder struct {
		ApplicationName string `json:"application_name"`
		Address         string `json:"client_addr"`
	}
	inUse := &SlotInUseError{Slot: c.Slot, PID: slot.ActivePID}
	holders, err := query[holder](cat, "SELECT row_to_json(a) FROM pg_catalog.pg_stat_activity a WHERE pid = "+strconv.Itoa(slot.ActivePID))
	if err == nil && len(holders) > 0 {
		inUse.ApplicationName, inUse.Address = holders[0].ApplicationName, holders[0].Address
	}
	return inUse
}
