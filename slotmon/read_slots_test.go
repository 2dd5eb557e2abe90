package slotmon_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/slotmon"
)

func freshSlot(t *testing.T, c *cluster) {
	c.newSlot(t, "fresh", logical("fresh"))
	sample := c.read(t, slotmon.Question{})
	s := sample.FindSlot("fresh")
	if s == nil {
		t.Fatal("the slot is not in the sample")
	}
	if s.Plugin != "pgoutput" || s.Type != "logical" || s.Database != "shop" || s.Temporary || s.Active || s.TwoPhase || s.Holder != nil || s.Lost() {
		t.Errorf("unexpected %+v", s)
	}
	if s.RestartLSN == nil || s.ConfirmedFlushLSN == nil || s.RetainedBytes == nil || s.ConfirmedLagBytes == nil {
		t.Fatalf("numbers are missing: %+v", s)
	}
	if got, want := *s.RetainedBytes, int64(sample.Server.WAL-*s.RestartLSN); got != want || got < 0 {
		t.Errorf("retained %d, want %d", got, want)
	}
	if got, want := *s.ConfirmedLagBytes, int64(sample.Server.WAL-*s.ConfirmedFlushLSN); got != want || got < 0 {
		t.Errorf("confirmed lag %d, want %d", got, want)
	}
	if s.WALStatus == nil || *s.WALStatus != "reserved" {
		t.Errorf("wal_status %v", s.WALStatus)
	}
	if s.SafeWALSize != nil {
		t.Errorf("safe_wal_size %d without a limit", *s.SafeWALSize)
	}
	if s.CatalogXminAge == nil || *s.CatalogXminAge < 0 || s.XminAge != nil {
		t.Errorf("age of catalog_xmin %v, of xmin %v", s.CatalogXminAge, s.XminAge)
	}
	if s.Spill == nil || *s.Spill != (slotmon.Spill{}) {
		t.Errorf("spill %+v", s.Spill)
	}
	if has := s.Conflicting != nil; has != (c.major >= 16) {
		t.Errorf("conflicting: %v", has)
	}
	for name, has := range map[string]bool{"failover": s.Failover != nil, "synced": s.Synced != nil, "inactive_since": s.InactiveSince != nil} {
		if has != (c.major >= 17) {
			t.Errorf("%s: %v", name, has)
		}
	}
	if s.InactiveSince != nil && (s.InactiveSince.After(sample.Server.Now) || s.InactiveSince.Before(sample.Server.Started)) {
		t.Errorf("inactive since %s", s.InactiveSince)
	}
}

func physicalSlot(t *testing.T, c *cluster) {
	c.newSlot(t, "physical", "SELECT pg_create_physical_replication_slot('physical')")
	s := c.slot(t, "physical")
	if s.Type != "physical" || s.Plugin != "" || s.Database != "" {
		t.Errorf("unexpected %+v", s)
	}
	if s.RestartLSN != nil || s.RetainedBytes != nil || s.ConfirmedFlushLSN != nil || s.ConfirmedLagBytes != nil ||
		s.WALStatus != nil || s.SafeWALSize != nil || s.CatalogXminAge != nil || s.Spill != nil {
		t.Errorf("it has numbers: %+v", s)
	}
	if s.Lost() {
		t.Error("it is taken for lost")
	}
}

func twoPhaseSlot(t *testing.T, c *cluster) {
	c.newSlot(t, "two_phase", "SELECT pg_create_logical_replication_slot('two_phase', 'pgoutput', false, true)")
	if s := c.slot(t, "two_phase"); !s.TwoPhase {
		t.Errorf("unexpected %+v", s)
	}
}

// hold streams from a slot until the test ends or release is called.
func (c *cluster) hold(t *testing.T, slot, application string) *pgconn.PgConn {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), c.url(t, "postgres", "shop", map[string]string{"replication": "database", "application_name": application}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	err = pglogrepl.StartReplication(t.Context(), conn, slot, 0, pglogrepl.StartReplicationOptions{
		PluginArgs: []string{"proto_version '1'", "publication_names 'nothing'"}})
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func confirm(t *testing.T, conn *pgconn.PgConn, lsn pglogrepl.LSN) {
	t.Helper()
	err := pglogrepl.SendStandbyStatusUpdate(t.Context(), conn, pglogrepl.StandbyStatusUpdate{WALWritePosition: lsn, WALFlushPosition: lsn, WALApplyPosition: lsn})
	if err != nil {
		t.Fatal(err)
	}
}

func heldSlot(t *testing.T, c *cluster) {
	c.newSlot(t, "held", logical("held"))
	conn := c.hold(t, "held", "cdcpub/held")
	confirm(t, conn, pglogrepl.LSN(*c.slot(t, "held").ConfirmedFlushLSN))
	var s *slotmon.Slot
	c.eventually(t, "the status update is seen", func() bool {
		s = c.slot(t, "held")
		return s.Holder != nil && s.Holder.ReplyTime != nil
	})
	h := s.Holder
	if !s.Active || h.PID != int(conn.PID()) || h.User != "postgres" || h.ApplicationName != "cdcpub/held" || h.Address != "127.0.0.1" {
		t.Errorf("active %v, holder %+v", s.Active, h)
	}
	if h.Since == nil || time.Since(*h.Since).Abs() > time.Hour || h.State == "" || h.SentLSN == nil || h.FlushLSN == nil || *h.FlushLSN != *s.ConfirmedFlushLSN {
		t.Errorf("holder %+v", h)
	}
	conn.Close(t.Context())
	c.eventually(t, "the slot is released", func() bool { s = c.slot(t, "held"); return !s.Active })
	if s.Holder != nil {
		t.Errorf("a released slot has a holder: %+v", s.Holder)
	}
}

func heldBySession(t *testing.T, c *cluster) {
	session := connect(t, c.url(t, "postgres", "shop", map[string]string{"application_name": "by-hand"}))
	exec(t, session, "SELECT pg_create_logical_replication_slot('of_session', 'pgoutput', true)")
	s := c.slot(t, "of_session")
	if h := s.Holder; !s.Temporary || !s.Active || h == nil || h.PID != int(session.PgConn().PID()) || h.ApplicationName != "by-hand" ||
		h.State != "idle" || h.Since == nil || h.SentLSN != nil || h.ReplyTime != nil {
		t.Errorf("temporary %v, active %v, holder %+v", s.Temporary, s.Active, h)
	}
	exec(t, session, "SELECT pg_drop_replication_slot('of_session')")
}

func slotAhead(t *testing.T, c *cluster) {
	c.newSlot(t, "ahead", logical("ahead"))
	conn := c.hold(t, "ahead", "broken")
	confirm(t, conn, 0xFFFF_0000_0000)
	c.eventually(t, "the slot is confirmed beyond the WAL", func() bool {
		lag := c.slot(t, "ahead").ConfirmedLagBytes
		return lag != nil && *lag < 0
	})
	s := c.slot(t, "ahead")
	if s.ConfirmedFlushLSN.String() != "FFFF/0" || *s.RetainedBytes < 0 {
		t.Errorf("confirmed %s, retained %d", s.ConfirmedFlushLSN, *s.RetainedBytes)
	}
	conn.Close(t.Context())
}

func lostSlot(t *testing.T, c *cluster) {
	c.newSlot(t, "dying", logical("dying"))
	c.newSlot(t, "unused", "SELECT pg_create_physical_replication_slot('unused')")
	exec(t, c.shop, "ALTER SYSTEM SET max_slot_wal_keep_size = '32MB'", "SELECT pg_reload_conf()")
	c.eventually(t, "the limit holds", func() bool {
		return c.read(t, slotmon.Question{}).Server.MaxSlotWALKeepSize == 32<<20
	})
	s := c.slot(t, "dying")
	if s.SafeWALSize == nil || *s.SafeWALSize <= 0 || *s.SafeWALSize > 3*16<<20 {
		t.Errorf("safe_wal_size %v of a fresh slot", s.SafeWALSize)
	}
	for range 5 {
		exec(t, c.shop, "INSERT INTO orders VALUES (1)", "SELECT pg_switch_wal()")
	}
	s = c.slot(t, "dying")
	if s.WALStatus == nil || *s.WALStatus != "unreserved" || s.SafeWALSize == nil || *s.SafeWALSize > 0 || s.Lost() {
		t.Errorf("before the checkpoint: %+v", s)
	}
	if unused := c.slot(t, "unused"); unused.SafeWALSize != nil || unused.WALStatus != nil {
		t.Errorf("a slot that needs no WAL is in danger: %+v", unused)
	}
	if s.RetainedBytes == nil || *s.RetainedBytes < 4*16<<20 {
		t.Errorf("before the checkpoint it retains %v", s.RetainedBytes)
	}
	exec(t, c.shop, "CHECKPOINT")
	s = c.slot(t, "dying")
	if s.WALStatus == nil || *s.WALStatus != "lost" || !s.Lost() {
		t.Errorf("after the checkpoint: %+v", s)
	}
	if s.RestartLSN != nil || s.RetainedBytes != nil || s.SafeWALSize != nil || s.ConfirmedFlushLSN == nil || s.ConfirmedLagBytes == nil {
		t.Errorf("a lost slot has the wrong numbers: %+v", s)
	}
	if reason := s.InvalidationReason; c.major >= 17 && (reason == nil || *reason != "wal_removed") || c.major < 17 && reason != nil {
		t.Errorf("invalidation_reason %v", reason)
	}
}

func TestSlotLostByIdleTimeoutRetainsNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 18, "idle_replication_slot_timeout=1s")
	c.newSlot(t, "idle", logical("idle"))
	if got := c.read(t, slotmon.Question{}).Server.IdleSlotTimeout; got != time.Second {
		t.Errorf("idle_replication_slot_timeout %s", got)
	}
	var s *slotmon.Slot
	c.eventually(t, "the slot is lost", func() bool {
		exec(t, c.shop, "CHECKPOINT")
		s = c.slot(t, "idle")
		return s.Lost()
	})
	if *s.WALStatus != "lost" || s.InvalidationReason == nil || *s.InvalidationReason != "idle_timeout" {
		t.Errorf("unexpected %+v", s)
	}
	if s.RestartLSN == nil {
		t.Error("the server shows no restart_lsn: this test proves nothing")
	}
	if s.RetainedBytes != nil {
		t.Errorf("it retains %d", *s.RetainedBytes)
	}
}

func refused(t *testing.T, c *cluster) {
	blocker := connect(t, c.server.URL("shop"))
	exec(t, blocker, "BEGIN", "LOCK pg_catalog.pg_publication IN ACCESS EXCLUSIVE MODE")
	conn := connect(t, c.url(t, "postgres", "shop", map[string]string{"lock_timeout": "50ms"}))
	_, err := slotmon.Read(t.Context(), conn, slotmon.Question{Expected: &slotmon.Expected{Database: "shop"}})
	var answer *pgconn.PgError
	if !errors.As(err, &answer) || answer.Code != "55P03" || !strings.Contains(err.Error(), "read the publication: ") {
		t.Errorf("error %v", err)
	}
	exec(t, blocker, "ROLLBACK")
	read(t, conn, slotmon.Question{})
}

func endOfContext(t *testing.T, c *cluster) {
	blocker := connect(t, c.server.URL("shop"))
	exec(t, blocker, "BEGIN", "LOCK pg_catalog.pg_publication IN ACCESS EXCLUSIVE MODE")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	conn := connect(t, c.server.URL("shop"))
	_, err := slotmon.Read(ctx, conn, slotmon.Question{Expected: &slotmon.Expected{Database: "shop"}})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	exec(t, blocker, "ROLLBACK")
	if !conn.IsClosed() {
		t.Error("the connection is open")
	}
	if _, err := slotmon.Read(t.Context(), conn, slotmon.Question{}); err == nil {
		t.Error("a sample over a closed connection")
	}
}
