package slots

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/slotmon"
	"github.com/cdcpub/cdcpub/test/harness"
)

// Every fault is told, with its severity, and taken back when it is cured.
func TestFaultsAreToldAndTakenBack(t *testing.T) {
	onEach(t, versions, func(t *testing.T, version string) {
		pg := harness.Postgres(t, version, "max_prepared_transactions=5", "max_wal_size=1GB")
		s := newStand(t, pg, "")
		s.slotIsNotWhatItShouldBe()
		s.readerDies()
		s.transactionHoldsWAL()
		s.publicationIsChanged()
		s.serverIsDown()
		s.slotIsLost()
		if version == "18" {
			s.idleTimeout()
		}
	})
}

const (
	dropOurs   = "SELECT pg_drop_replication_slot('ours')"
	createOurs = "SELECT pg_create_logical_replication_slot('ours', 'pgoutput')"
)

func (s *stand) slotIsNotWhatItShouldBe() {
	s.t.Helper()
	critical := func(id slotmon.FindingID, make, cure func()) {
		s.t.Helper()
		s.happens(fault{id: id, slot: "ours", severity: slotmon.Critical, atOnce: true, make: make, cure: cure})
	}
	again := func() { s.exec(dropOurs, createOurs) }
	critical(slotmon.SlotMissing, func() { s.exec(dropOurs) }, func() { s.exec(createOurs) })
	critical(slotmon.SlotTwoPhase, func() {
		s.exec(dropOurs, "SELECT pg_create_logical_replication_slot('ours', 'pgoutput', false, true)")
	}, again)
	critical(slotmon.SlotWrongPlugin, func() {
		s.exec(dropOurs, "SELECT pg_create_logical_replication_slot('ours', 'test_decoding')")
	}, again)
	critical(slotmon.SlotWrongDatabase, func() {
		s.exec(dropOurs, "CREATE DATABASE elsewhere")
		s.elsewhere(createOurs)
	}, func() {
		s.elsewhere(dropOurs)
		s.exec(createOurs)
	})
	critical(slotmon.SlotAhead, s.confirmImpossible, again)
}

// elsewhere executes a statement in the database elsewhere.
func (s *stand) elsewhere(statement string) {
	s.t.Helper()
	conn, err := pgx.Connect(s.ctx, s.pg.URL("elsewhere"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(s.ctx)
	if _, err := conn.Exec(s.ctx, statement); err != nil {
		s.t.Fatal(err)
	}
}

// readerDies: warning, then critical, resolved after another one has come. Its
// successor keeps up with writes that are none of its business.
func (s *stand) readerDies() {
	s.t.Helper()
	reader := s.read()
	s.until("somebody holds the slot", func() bool { return s.slot("ours").Slot.Active })
	s.happens(fault{id: slotmon.SlotInactive, slot: "ours", severity: slotmon.Warning, make: func() {
		reader.kill()
		s.write(2)
	}})
	s.happens(fault{id: slotmon.SlotInactive, slot: "ours", severity: slotmon.Critical, make: func() {}, cure: func() { reader = s.read() }})
	s.until("the other slots' WAL is confirmed", func() bool {
		slot := s.slot("ours").Slot
		return slot.ConfirmedLagBytes != nil && *slot.ConfirmedLagBytes < 1<<20
	})
	s.exec("SELECT 1")
	for range 3 {
		s.elsewhere("CREATE TABLE IF NOT EXISTS t AS SELECT repeat('x', 500) AS x FROM generate_series(1, 20000)")
		s.elsewhere("INSERT INTO t SELECT repeat('x', 500) FROM generate_series(1, 20000)")
	}
	s.until("the writes to another database are confirmed", func() bool {
		server := s.server()
		slot := server.Sample.FindSlot("ours")
		return slot.Active && *slot.ConfirmedLagBytes < 1<<20
	})
	if f := s.finding("ours", slotmon.ConfirmedLag); f != nil {
		s.t.Errorf("writes to another database are reported: %+v", f)
	}
	reader.kill()
}

// write fills n segments of WAL.
func (s *stand) write(n int) {
	s.t.Helper()
	for range n {
		s.exec("SELECT pg_logical_emit_message(true, 'test', 'x')", "SELECT pg_switch_wal()")
	}
}

// transactionHoldsWAL: restart_lsn stands still while everything is confirmed.
// That is told as information, with the name of the transaction.
func (s *stand) transactionHoldsWAL() {
	s.t.Helper()
	reader := s.read()
	defer reader.kill()
	open, err := pgx.Connect(s.ctx, s.pg.URL("postgres")+"&application_name=report")
	if err != nil {
		s.t.Fatal(err)
	}
	defer open.Close(s.ctx)
	for _, statement := range []string{"BEGIN", "CREATE TEMPORARY TABLE t (i int)", "SELECT pg_current_xact_id()"} {
		if _, err := open.Exec(s.ctx, statement); err != nil {
			s.t.Fatal(err)
		}
	}
	s.until("the transaction is named", func() bool {
		// A checkpoint writes the running transactions, behind which restart_lsn
		// cannot go.
		s.exec("SELECT pg_logical_emit_message(true, 'test', repeat('x', 1000000))", "CHECKPOINT")
		f := s.finding("ours", slotmon.LongTransaction)
		return f != nil && strings.Contains(f.Cause+f.Summary+f.Cure, fmt.Sprint(open.PgConn().PID()))
	})
	if f := s.finding("ours", slotmon.LongTransaction); f.Severity != slotmon.Info {
		s.t.Errorf("a transaction of others is %s for the slot", f.Severity)
	}
	if _, err := open.Exec(s.ctx, "ROLLBACK"); err != nil {
		s.t.Fatal(err)
	}
	s.exec("BEGIN", "INSERT INTO outbox VALUES (gen_random_uuid(), 'order', '1', 1, 'Placed', '{}')", "PREPARE TRANSACTION 'forgotten'")
	s.until("the prepared transaction is named", func() bool {
		s.exec("SELECT pg_logical_emit_message(true, 'test', repeat('x', 1000000))", "CHECKPOINT")
		f := s.finding("ours", slotmon.PreparedTransaction)
		return f != nil && f.Severity == slotmon.Info && strings.Contains(f.Cure, "ROLLBACK PREPARED 'forgotten'")
	})
	s.exec("ROLLBACK PREPARED 'forgotten'")
}

// publicationIsChanged: what was not published in between is not in the stream,
// so the change stays an alert.
func (s *stand) publicationIsChanged() {
	s.t.Helper()
	critical := fault{slot: "ours", severity: slotmon.Critical, atOnce: true}
	tables := critical
	tables.id, tables.make = slotmon.PublicationTables, func() { s.exec("ALTER PUBLICATION cdcpub DROP TABLE outbox") }
	tables.cure = func() { s.exec("ALTER PUBLICATION cdcpub ADD TABLE outbox") }
	from := s.hook.Count()
	s.happens(tables)
	changed := critical
	changed.id = slotmon.PublicationChanged
	s.raised(from, changed)
	missing := critical
	missing.id, missing.make = slotmon.PublicationMissing, func() { s.exec("DROP PUBLICATION cdcpub") }
	missing.cure = func() { s.exec("CREATE PUBLICATION cdcpub FOR TABLE outbox WITH (publish = 'insert')") }
	s.happens(missing)
	if s.finding("ours", slotmon.PublicationChanged) == nil {
		s.t.Error("a publication that was made anew counts as unchanged")
	}
}

// serverIsDown: nothing is known, which is not fine.
func (s *stand) serverIsDown() {
	s.t.Helper()
	s.happens(fault{id: slotmon.ServerUnreachable, severity: slotmon.Critical, make: func() {
		if err := s.pg.Stop(pgserver.Immediate, patience); err != nil {
			s.t.Fatal(err)
		}
		s.until("the verdict is unknown", func() bool {
			server := s.server()
			return !server.Up && server.Verdict == slotmon.Unknown && server.Slots[0].Report.Verdict == slotmon.Unknown
		})
		if !s.metric("cdcpub_server_up", "server=", "0") || !s.metric("cdcpub_slot_verdict", `slot="ours"`, "3") {
			s.t.Error("the metrics do not say that the server is unreachable")
		}
	}, cure: func() {
		if err := s.pg.Start(s.ctx); err != nil {
			s.t.Fatal(err)
		}
		s.connect()
	}})
}

// slotIsLost: told before, when it can still be saved, and after.
func (s *stand) slotIsLost() {
	s.t.Helper()
	s.exec(dropOurs, createOurs, "ALTER SYSTEM SET max_slot_wal_keep_size = '64MB'", "SELECT pg_reload_conf()")
	s.until("the limit is in force", func() bool { return s.server().Sample.Server.MaxSlotWALKeepSize == 64<<20 })
	s.happens(fault{id: slotmon.SlotUnreserved, slot: "ours", severity: slotmon.Critical, atOnce: true, make: func() { s.write(7) }})
	s.happens(fault{
		id: slotmon.SlotLost, slot: "ours", severity: slotmon.Critical, atOnce: true,
		make: func() {
			s.exec("CHECKPOINT")
			s.until("the metrics say so", func() bool {
				return s.metric("cdcpub_slot_up", `slot="ours"`, "0") && s.metric("cdcpub_slot_wal_status", `wal_status="lost"`, "1")
			})
			for _, name := range []string{"cdcpub_slot_retained_wal_bytes", "cdcpub_slot_safe_wal_size_bytes", "cdcpub_slot_seconds_to_lost"} {
				if !s.metric(name, `slot="ours"`, "0") {
					s.t.Errorf("%s disappears with the slot", name)
				}
			}
		},
		cure: func() {
			s.exec("ALTER SYSTEM RESET max_slot_wal_keep_size", "SELECT pg_reload_conf()", dropOurs, createOurs)
		},
	})
}

// idleTimeout: a slot that is invalidated still shows a restart_lsn.
func (s *stand) idleTimeout() {
	s.t.Helper()
	s.exec("SELECT pg_create_logical_replication_slot('idle', 'pgoutput')", "ALTER SYSTEM SET idle_replication_slot_timeout = '2s'", "SELECT pg_reload_conf()")
	s.happens(fault{id: slotmon.SlotLost, slot: "idle", severity: slotmon.Critical, atOnce: true, make: func() {
		s.until("the server has invalidated the slot", func() bool {
			s.exec("CHECKPOINT")
			var reason *string
			err := s.sql.QueryRow(s.ctx, "SELECT invalidation_reason FROM pg_replication_slots WHERE slot_name = 'idle'").Scan(&reason)
			return err == nil && reason != nil && *reason == "idle_timeout"
		})
	}, cure: func() {
		s.exec("ALTER SYSTEM RESET idle_replication_slot_timeout", "SELECT pg_reload_conf()", "SELECT pg_drop_replication_slot('idle')")
	}})
	if f := s.finding("idle", slotmon.SlotLost); f != nil && !strings.Contains(f.Summary+f.Cause, "idle") {
		s.t.Errorf("the reason is not named: %+v", f)
	}
}

// A failover slot is told as long as no standby would keep it.
func TestAFailoverSlotThatIsNotReadyIsTold(t *testing.T) {
	onEach(t, []string{"17", "18"}, func(t *testing.T, version string) {
		pg := harness.Postgres(t, version)
		standby := harness.Standby(t, pg)
		s := newStand(t, pg, fmt.Sprintf("  standbys: ['%s']\n", standby.URL("postgres")))
		var reader *reader
		// A new slot inherits the catalog_xmin of the oldest one, behind which a
		// standby without that slot already is: the copy cannot become ready until
		// somebody reads.
		s.exec("SELECT pg_create_logical_replication_slot('old', 'pgoutput')", "CREATE TABLE one ()", "CREATE TABLE two ()")
		s.replayed(standby)
		s.happens(fault{id: slotmon.FailoverNotReady, slot: "ours", severity: slotmon.Warning, make: func() {
			s.exec(dropOurs, "SELECT pg_create_logical_replication_slot('ours', 'pgoutput', false, false, true)")
		}, cure: func() {
			reader = s.read()
			s.until("the standby has the slot ready", func() bool {
				s.exec("SELECT pg_log_standby_snapshot()", "SELECT pg_logical_emit_message(true, 'test', 'x')")
				slot := s.slot("ours")
				return slot != nil && len(slot.Standbys) == 1 && slot.Standbys[0].Ready()
			})
		}})
		if !s.metric("cdcpub_slot_failover_ready", `slot="ours"`, "1") {
			t.Error("the metric does not say that it is ready")
		}
		s.happens(fault{id: slotmon.FailoverNotReady, slot: "ours", severity: slotmon.Warning, make: func() {
			if err := standby.Stop(pgserver.Immediate, patience); err != nil {
				t.Fatal(err)
			}
		}, cure: func() {
			if err := standby.Start(s.ctx); err != nil {
				t.Fatal(err)
			}
		}})
		reader.kill()
	})
}

// replayed waits until a standby has everything.
func (s *stand) replayed(standby *pgserver.Server) {
	s.t.Helper()
	conn, err := pgx.Connect(s.ctx, standby.URL("postgres"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(s.ctx)
	var written string
	if err := s.sql.QueryRow(s.ctx, "SELECT pg_current_wal_flush_lsn()::text").Scan(&written); err != nil {
		s.t.Fatal(err)
	}
	s.until("the standby has everything", func() bool {
		var has bool
		err := conn.QueryRow(s.ctx, "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn", written).Scan(&has)
		return err == nil && has
	})
}
