package publisher

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/wal"
)

// withoutDecoding explains a slot that is missing on a server that can have
// none: below wal_level = logical PostgreSQL creates no logical slot, and with
// one it does not start (PostgreSQL documentation, "Logical Decoding
// Concepts"). Any other error it returns as it is.
func (p *Publisher) withoutDecoding(ctx context.Context, err error) error {
	stop, ok := errors.AsType[*wal.StopError](err)
	if !ok || stop.Reason != wal.SlotMissing {
		return err
	}
	level, failed := p.walLevel(ctx)
	if failed != nil || level == "" || level == "logical" {
		return err
	}
	return &wal.StopError{
		Reason: wal.SlotMissing, Slot: stop.Slot,
		Message: fmt.Sprintf("slot %s does not exist and cannot exist on this server: its wal_level is %s, with which there is no logical decoding", stop.Slot, level),
		Cure:    "as a superuser ALTER SYSTEM SET wal_level = logical, then restart PostgreSQL (RDS and Aurora: parameter rds.logical_replication, Cloud SQL: flag cloudsql.logical_decoding); then `cdcpub init -c <your config>`",
	}
}

// walLevel asks on a short connection of its own.
func (p *Publisher) walLevel(ctx context.Context) (string, error) {
	config, err := p.config.WAL.Connect(ctx)
	if err != nil {
		return "", err
	}
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	results, err := conn.Exec(ctx, "SHOW wal_level").ReadAll()
	if err != nil || len(results) != 1 || len(results[0].Rows) != 1 {
		return "", err
	}
	return string(results[0].Rows[0][0]), nil
}
