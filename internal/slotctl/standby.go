package slotctl

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/slotmon"
)

// Standby is a server that should have the slot after a failover. Connect makes
// a connection to it, which is closed after each look.
type Standby struct {
	Name    string
	Connect func(context.Context) (*pgx.Conn, error)
}

// look asks one standby for the slot, and if it is not ready why.
func (s *Standby) look(ctx context.Context, slot string, primary horizon) (ready bool, reason string) {
	conn, err := s.Connect(ctx)
	if err != nil {
		return false, fmt.Sprintf("cannot be asked: %v", err)
	}
	defer hangUp(ctx, conn)
	sample, err := slotmon.Read(ctx, conn, slotmon.Question{})
	if err != nil {
		return false, fmt.Sprintf("cannot be asked: %v", err)
	}
	copied := slotmon.Standby{Slot: sample.FindSlot(slot)}
	if copied.Ready() && sample.Server.InRecovery {
		return true, ""
	}
	return false, whyNotReady(ctx, conn, sample, copied.Slot, primary)
}

// hangUp closes a connection, also after ctx has ended, but waits for the server
// only briefly.
func hangUp(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// whyNotReady says what can be read by SQL about a standby that does not have
// the slot, of which copied is its copy, or nil. What cannot be known is said.
func whyNotReady(ctx context.Context, conn *pgx.Conn, sample *slotmon.Sample, copied *slotmon.Slot, primary horizon) string {
	switch {
	case !sample.Server.InRecovery:
		return "is not a standby: it is not in recovery"
	case sample.Server.VersionNum < 170000:
		return "is PostgreSQL " + sample.Server.Version + ": failover slots exist since 17"
	}
	settings, err := readSyncSettings(ctx, conn)
	if err != nil {
		return fmt.Sprintf("its settings cannot be read: %v", err)
	}
	if reason := settings.wrong(); reason != "" {
		return reason
	}
	switch {
	case copied == nil:
		return "has no copy of the slot yet; it looks for new ones every 0.2 to 30 s, a minute after an error, and its log says why it cannot" + settings.unknown
	case copied.Synced == nil || !*copied.Synced:
		return "has another slot of the same name, which was created there: drop that one"
	case copied.Lost():
		return "its copy is invalidated (invalidation_reason in pg_replication_slots there says by what); it is made anew when the cause is gone"
	}
	own, err := readHorizon(ctx, conn, copied.Name)
	if err != nil {
		return fmt.Sprintf("its copy cannot be read: %v", err)
	}
	return fmt.Sprintf("has a temporary copy of the slot, and keeps it only when the slot on the primary (%s) has reached what the standby still has (%s); it moves when somebody reads it and confirms", primary, own)
}

// syncSettings decide whether a standby has failover slots at all (PostgreSQL
// documentation, "Replication Slot Synchronization").
type syncSettings struct {
	sync, feedback, connected bool
	physicalSlot              string
	hasDatabase               bool   // primary_conninfo has a dbname, or may have one
	unknown                   string // what the role may not see
}

func readSyncSettings(ctx context.Context, conn *pgx.Conn) (s syncSettings, err error) {
	const open = `SELECT current_setting('sync_replication_slots')::bool, current_setting('hot_standby_feedback')::bool,
		current_setting('primary_slot_name'), EXISTS (SELECT FROM pg_stat_wal_receiver)`
	if err := conn.QueryRow(ctx, open).Scan(&s.sync, &s.feedback, &s.physicalSlot, &s.connected); err != nil {
		return s, err
	}
	const secret = `SELECT current_setting('primary_conninfo') ~* '(^|[[:space:]?&])dbname[[:space:]]*=|^postgres(ql)?://[^/]*/[^?]'`
	err = conn.QueryRow(ctx, secret).Scan(&s.hasDatabase)
	if sqlState(err) == insufficientPrivilege {
		s.hasDatabase, err = true, nil
		s.unknown = fmt.Sprintf("; whether primary_conninfo has a dbname, as it must, is unknown: GRANT pg_read_all_settings TO %s there", pgx.Identifier{conn.Config().User}.Sanitize())
	}
	return s, err
}

// wrong names the setting that must be another, or nothing.
func (s *syncSettings) wrong() string {
	switch {
	case !s.sync:
		return "sync_replication_slots is off: set it to on there"
	case !s.feedback:
		return "hot_standby_feedback is off: set it to on there"
	case s.physicalSlot == "":
		return "primary_slot_name is empty: give the standby a physical slot of the primary"
	case !s.hasDatabase:
		return "primary_conninfo has no dbname: add one, for example dbname=postgres"
	case !s.connected:
		return "is not connected to the primary: it has no walreceiver" + s.unknown
	}
	return ""
}

// horizon is what a slot still needs of the catalogs and of the WAL.
type horizon struct{ catalogXmin, restartLSN string }

func (h horizon) String() string {
	return "catalog_xmin " + h.catalogXmin + ", restart_lsn " + h.restartLSN
}

func readHorizon(ctx context.Context, conn *pgx.Conn, slot string) (h horizon, err error) {
	const own = "SELECT coalesce(catalog_xmin::text, 'none'), coalesce(restart_lsn::text, 'none') FROM pg_replication_slots WHERE slot_name = $1"
	err = conn.QueryRow(ctx, own, slot).Scan(&h.catalogXmin, &h.restartLSN)
	return h, err
}
