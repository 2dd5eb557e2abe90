package harness

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestStandbyFollowsAndKeepsAFailoverSlotThatIsConsumed(t *testing.T) {
	primary := Postgres(t, "17")
	standby := Standby(t, primary)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := execute(ctx, primary.URL("postgres"),
		"SELECT pg_create_logical_replication_slot('s', 'pgoutput', false, false, true)",
		"CREATE TABLE t (i int)"); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, standby.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = poll(ctx, "the slot is ready on the standby", func(ctx context.Context) (ready bool, err error) {
		// Nobody consumes it, so it is moved by hand.
		if err := execute(ctx, primary.URL("postgres"), "SELECT pg_log_standby_snapshot()",
			"SELECT pg_replication_slot_advance('s', pg_current_wal_lsn())"); err != nil {
			return false, err
		}
		err = conn.QueryRow(ctx, `SELECT pg_is_in_recovery() AND to_regclass('t') IS NOT NULL AND EXISTS
			(SELECT FROM pg_replication_slots WHERE slot_name = 's' AND synced AND NOT temporary)`).Scan(&ready)
		return ready, err
	})
	if err != nil {
		t.Fatal(err)
	}
}
