package slotmon_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/slotmon"
)

func serverFacts(t *testing.T, c *cluster) {
	s := c.read(t, slotmon.Question{})
	server := s.Server
	if server.VersionNum/10000 != c.major || !strings.HasPrefix(server.Version, c.server.Installation().Version) || strings.Contains(server.Version, " ") {
		t.Errorf("version %q, %d", server.Version, server.VersionNum)
	}
	if server.Database != "shop" || server.InRecovery || server.WAL == 0 || len(server.SystemID) < 18 {
		t.Errorf("unexpected %+v", server)
	}
	if time.Since(server.Now).Abs() > time.Minute || server.Started.After(server.Now) || time.Since(s.Taken) > time.Minute {
		t.Errorf("now %s, started %s, taken %s", server.Now, server.Started, s.Taken)
	}
	if server.MaxSlots != 20 || server.MaxWALSenders != 20 || server.AutovacuumFreeze != 200_000_000 || server.MaxSlotWALKeepSize != -1 || server.IdleSlotTimeout != 0 {
		t.Errorf("settings: %+v", server)
	}
	if server.WALDirectoryBytes == nil || *server.WALDirectoryBytes < 16<<20 {
		t.Errorf("pg_wal has %v bytes", server.WALDirectoryBytes)
	}
	if s.Unseen != nil {
		t.Errorf("a superuser does not see %q", s.Unseen)
	}
	if s.Publication != nil {
		t.Errorf("nobody asked for the publication %+v", s.Publication)
	}
}

// withRole makes a role for the test.
func (c *cluster) withRole(t *testing.T, role, grants string) {
	t.Helper()
	exec(t, c.shop, "CREATE ROLE "+pgx.Identifier{role}.Sanitize()+" LOGIN")
	if grants != "" {
		exec(t, c.shop, grants)
	}
}

func bareRole(t *testing.T, c *cluster) {
	c.withRole(t, `mon"itor`, "")
	c.newSlot(t, "seen", logical("seen"))
	c.hold(t, "seen", "cdcpub/seen")
	writer := connect(t, c.server.URL("shop"))
	exec(t, writer, "BEGIN", "INSERT INTO orders VALUES (1)")
	exec(t, c.shop, "BEGIN", "INSERT INTO orders VALUES (2)", "PREPARE TRANSACTION 'waits'")
	conn := connect(t, c.url(t, `mon"itor`, "shop", nil))
	s := read(t, conn, slotmon.Question{})
	exec(t, writer, "ROLLBACK")
	exec(t, c.shop, "ROLLBACK PREPARED 'waits'")

	slot := s.FindSlot("seen")
	if slot == nil || slot.RetainedBytes == nil || slot.Holder == nil {
		t.Fatalf("slot %+v", slot)
	}
	// These three are open to everybody.
	if h := slot.Holder; h.PID == 0 || h.User != "postgres" || h.ApplicationName != "cdcpub/seen" {
		t.Errorf("holder %+v", h)
	}
	if h := slot.Holder; h.Since != nil || h.SentLSN != nil || h.Address != "" || h.State != "" {
		t.Errorf("more is open to everybody than we say: %+v", h)
	}
	if len(s.Transactions) != 1 || s.Transactions[0].GID != "waits" {
		t.Errorf("transactions %+v", s.Transactions)
	}
	if s.Server.WALDirectoryBytes != nil || s.Server.Volume.FreeBytes != nil || !strings.Contains(s.Server.Volume.Unknown, "pg_monitor") {
		t.Errorf("pg_wal %v, volume %+v", s.Server.WALDirectoryBytes, s.Server.Volume)
	}
	if s.Server.SystemID == "" {
		t.Error("no system identifier")
	}
	if len(s.Unseen) != 3 {
		t.Errorf("unseen %q", s.Unseen)
	}
	for _, text := range s.Unseen {
		if !strings.HasSuffix(text, `: GRANT pg_monitor TO "mon""itor"`) {
			t.Errorf("unseen %q", text)
		}
	}
	s = read(t, conn, slotmon.Question{Volume: slotmon.VolumeSource{FreeCommand: []string{"echo", "5"}}})
	if v := s.Server.Volume; v.FreeBytes == nil || *v.FreeBytes != 5 || len(s.Unseen) != 2 {
		t.Errorf("with a command: volume %+v, unseen %q", v, s.Unseen)
	}
}

func monitorRole(t *testing.T, c *cluster) {
	c.withRole(t, "monitor", "GRANT pg_monitor TO monitor")
	c.newSlot(t, "watched", logical("watched"))
	c.hold(t, "watched", "cdcpub/watched")
	writer := connect(t, c.server.URL("shop"))
	exec(t, writer, "BEGIN", "INSERT INTO orders VALUES (1)")
	conn := connect(t, c.url(t, "monitor", "shop", nil))
	s := read(t, conn, slotmon.Question{})
	if s.Unseen != nil || s.Server.WALDirectoryBytes == nil || len(s.Transactions) != 1 {
		t.Errorf("unseen %q, pg_wal %v, transactions %+v", s.Unseen, s.Server.WALDirectoryBytes, s.Transactions)
	}
	if h := s.FindSlot("watched").Holder; h.Since == nil || h.Address == "" || h.SentLSN == nil {
		t.Errorf("holder %+v", h)
	}
	exec(t, writer, "ROLLBACK")

	exec(t, c.shop, "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
	s = read(t, conn, slotmon.Question{})
	exec(t, c.shop, "GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC")
	want := []string{`the system identifier: GRANT EXECUTE ON FUNCTION pg_catalog.pg_control_system() TO "monitor"`}
	if s.Server.SystemID != "" || s.Server.WALDirectoryBytes == nil || !slices.Equal(s.Unseen, want) {
		t.Errorf("system identifier %q, unseen %q", s.Server.SystemID, s.Unseen)
	}
}

// hostilePath has a schema in front of pg_catalog with a view, a function and
// an operator that lie.
func hostilePath(t *testing.T, c *cluster) {
	c.newSlot(t, "honest", logical("honest"))
	exec(t, connect(t, c.server.URL("shop")), `CREATE SCHEMA evil`, `SET search_path = evil, pg_catalog`,
		`CREATE VIEW evil.pg_replication_slots AS SELECT 'forged'::name AS slot_name, NULL::int AS active_pid, NULL::xid AS xmin, NULL::xid AS catalog_xmin`,
		`CREATE FUNCTION evil.pg_current_wal_lsn() RETURNS pg_lsn LANGUAGE sql AS $$ SELECT '0/1'::pg_lsn $$`,
		`CREATE FUNCTION evil.pg_is_in_recovery() RETURNS bool LANGUAGE sql AS $$ SELECT true $$`,
		`CREATE FUNCTION evil.same(name, text) RETURNS bool LANGUAGE sql AS $$ SELECT false $$`,
		`CREATE OPERATOR evil.= (LEFTARG = name, RIGHTARG = text, FUNCTION = evil.same)`,
		`CREATE PUBLICATION honest FOR TABLE public.outbox`)
	q := slotmon.Question{Expected: &slotmon.Expected{Database: "shop", Publication: "honest", Tables: []slotmon.Table{{Schema: "public", Name: "outbox"}}}}
	conn := connect(t, c.url(t, "postgres", "shop", map[string]string{"options": "-c search_path=evil,pg_catalog -c TimeZone=Asia/Kolkata"}))
	exec(t, conn, "CREATE TEMP TABLE pg_publication (pubname name)")
	s := read(t, conn, q)
	if s.FindSlot("honest") == nil || s.FindSlot("forged") != nil || s.Server.WAL < 2 || s.Server.InRecovery {
		t.Errorf("slots %+v, WAL ends at %s", s.Slots, s.Server.WAL)
	}
	if p := s.Publication; p == nil || !p.Exists || p.Missing != nil {
		t.Errorf("publication %+v", p)
	}
	// What Read sets does not outlive it.
	for name, want := range map[string]string{"search_path": "evil,pg_catalog", "TimeZone": "Asia/Kolkata", "transaction_read_only": "off"} {
		var got string
		if err := conn.QueryRow(t.Context(), "SELECT pg_catalog.current_setting($1)", name).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q afterwards (%v)", name, got, err)
		}
	}
	exec(t, c.shop, "DROP PUBLICATION honest", "DROP SCHEMA evil CASCADE")
}

// otherEncoding: names with letters that are no ASCII, over a connection whose
// encoding a role, a database or a file has changed.
func otherEncoding(t *testing.T, c *cluster) {
	const name = "b\u00fccher"
	exec(t, c.shop, `CREATE DATABASE "`+name+`"`)
	exec(t, connect(t, c.server.URL(name)), `CREATE TABLE "`+name+`" (id int)`, `CREATE PUBLICATION "`+name+`" FOR TABLE "`+name+`"`)
	conn := connect(t, c.url(t, "postgres", name, map[string]string{"client_encoding": "LATIN1"}))
	s := read(t, conn, slotmon.Question{Expected: &slotmon.Expected{Database: name, Publication: name, Tables: []slotmon.Table{{Schema: "public", Name: name}}}})
	if p := s.Publication; s.Server.Database != name || p == nil || !p.Exists || p.Missing != nil {
		t.Errorf("database %q, publication %+v", s.Server.Database, p)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, c.shop, `DROP DATABASE "`+name+`" WITH (FORCE)`)
}
