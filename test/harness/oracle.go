package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/witness"
)

// OracleOptions say what the oracle looks at. An empty Slot gets a name of its
// own. Leave Temporary false where the server restarts or the oracle's
// connection may break: only a permanent slot survives that.
type OracleOptions = witness.OracleOptions

// Oracle tells what was committed to the outbox, independently of cdcpub.
type Oracle = witness.Oracle

// NewOracle creates the oracle's slot, which is dropped with the test.
func NewOracle(t testing.TB, url string, o OracleOptions) *Oracle {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	o.Slot = cmp.Or(o.Slot, unique("oracle"))
	oracle, err := witness.NewOracle(t.Context(), config, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		// The test may have stopped its server for good.
		if err := oracle.Close(ctx); err != nil {
			t.Log(err)
		}
	})
	return oracle
}

// ConfirmedFlushLSN reads a slot's confirmed position.
func ConfirmedFlushLSN(ctx context.Context, url, slot string) (pglogrepl.LSN, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var position *string
	err = conn.QueryRow(ctx, "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = $1", slot).Scan(&position)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, fmt.Errorf("slot %s does not exist", slot)
	case err != nil:
		return 0, err
	case position == nil:
		return 0, fmt.Errorf("slot %s has no confirmed_flush_lsn", slot)
	}
	return pglogrepl.ParseLSN(*position)
}
