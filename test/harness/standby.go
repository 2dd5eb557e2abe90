package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/cdcpub/cdcpub/internal/pgserver"
)

// standbySlot is the physical slot that a Standby reads from.
const standbySlot = "standby"

// Standby starts a physical standby of primary, on which failover slots are
// synchronised (PostgreSQL 17 and newer), and closes it at the test's end. The
// primary is stopped and started again meanwhile: the standby is a copy of its
// data directory. More settings have the form name=value. Failover slots need
// hot_standby_feedback, which is on.
func Standby(t testing.TB, primary *pgserver.Server, settings ...string) *pgserver.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	dir, err := copyOf(ctx, primary)
	if dir != "" {
		t.Cleanup(func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		})
	}
	if err != nil {
		t.Fatalf("copy the primary: %v", err)
	}
	options, err := serverOptions(strconv.Itoa(primary.Installation().Major), settings)
	if err != nil {
		t.Fatal(err)
	}
	options.Installation, options.Dir = primary.Installation(), dir
	for name, value := range map[string]string{
		"primary_conninfo":             fmt.Sprintf("host=127.0.0.1 port=%d user=postgres dbname=postgres", primary.Port()),
		"primary_slot_name":            standbySlot,
		"hot_standby_feedback":         "on",
		"wal_receiver_status_interval": "1s",
	} {
		options.Settings[name] = value
	}
	if primary.Installation().Major >= 17 {
		options.Settings["sync_replication_slots"] = "on"
	}
	standby, err := pgserver.Start(ctx, options)
	if err != nil {
		t.Fatalf("start the standby: %v", err)
	}
	closeAtEnd(t, standby)
	return standby
}

// copyOf makes the slot for a standby, copies the primary's data directory
// while it is stopped, and turns the copy into a standby's.
func copyOf(ctx context.Context, primary *pgserver.Server) (dir string, err error) {
	create := "SELECT pg_create_physical_replication_slot('" + standbySlot + "', true)"
	if err := execute(ctx, primary.URL("postgres"), create); err != nil {
		return "", err
	}
	if err := primary.Stop(pgserver.Fast, startTimeout); err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp("", "cdcpub-standby-"); err != nil {
		return "", err
	}
	if err := errors.Join(os.Chmod(dir, 0o755), copyData(ctx, filepath.Join(primary.Dir(), "data"), filepath.Join(dir, "data"))); err != nil {
		return dir, err
	}
	return dir, primary.Start(ctx)
}

// copyData copies a data directory with its owner and makes a standby's of it.
// Slots are not taken over: they belong to the primary.
func copyData(ctx context.Context, from, to string) error {
	if out, err := exec.CommandContext(ctx, "cp", "-a", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("cp -a %s: %w: %s", from, err, out)
	}
	slots, err := filepath.Glob(filepath.Join(to, "pg_replslot", "*"))
	if err != nil {
		return err
	}
	for _, stale := range append(slots, filepath.Join(to, "postmaster.pid")) {
		if err := os.RemoveAll(stale); err != nil {
			return err
		}
	}
	owner, err := os.Stat(to)
	if err != nil {
		return err
	}
	signal := filepath.Join(to, "standby.signal")
	if err := os.WriteFile(signal, nil, 0o600); err != nil {
		return err
	}
	stat := owner.Sys().(*syscall.Stat_t)
	return os.Chown(signal, int(stat.Uid), int(stat.Gid))
}
