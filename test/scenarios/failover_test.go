package scenarios

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/test/harness"
)

// failoverVersions have failover slots.
var failoverVersions = []string{"17", "18"}

// failover is a stand whose server has a standby. The oracle reads there: a
// logical slot of the standby's own survives its promotion (PostgreSQL 16).
type failover struct {
	*stand
	standby *pgserver.Server
}

// newFailover makes the pair. kept says whether the standby keeps failover slots.
func newFailover(t *testing.T, version string, kept bool) *failover {
	t.Helper()
	primary := harness.Postgres(t, version)
	f := &failover{standby: nil}
	f.stand = newStand(t, options{postgres: primary, unprepared: true, sections: quickLease})
	f.standby = harness.Standby(t, primary)
	if !kept {
		f.onStandby("ALTER SYSTEM SET sync_replication_slots = off", "SELECT pg_reload_conf()")
	}
	both := fmt.Sprintf("127.0.0.1:%d,127.0.0.1:%d", primary.Port(), f.standby.Port())
	f.options.login = strings.Replace(f.url, fmt.Sprintf("127.0.0.1:%d", primary.Port()), both, 1) + "&target_session_attrs=read-write"
	init := f.command("init", "-c", "{config}", "--failover")
	if code, err := init.Wait(f.ctx); code != 0 || err != nil {
		t.Fatalf("cdcpub init: exit %d %v\n%s", code, err, init.Stderr())
	}
	f.sql = f.connect()
	// Only what the standby has is sent.
	f.exec("ALTER SYSTEM SET synchronized_standby_slots = 'standby'")
	f.exec("SELECT pg_reload_conf()")
	f.replayed()
	f.oracle = f.oracleOnStandby()
	return f
}

func (f *failover) standbyURL() string {
	return strings.Replace(f.url, fmt.Sprintf("127.0.0.1:%d", f.pg.Port()), fmt.Sprintf("127.0.0.1:%d", f.standby.Port()), 1)
}

// oracleOnStandby: a slot on a standby begins when the primary has noted its
// running transactions.
func (f *failover) oracleOnStandby() *harness.Oracle {
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	go func() {
		conn, err := pgx.Connect(ctx, f.url)
		for err == nil && ctx.Err() == nil {
			_, err = conn.Exec(ctx, "SELECT pg_log_standby_snapshot()")
			pause(ctx, 100*time.Millisecond)
		}
	}()
	return harness.NewOracle(f.t, f.standbyURL(), f.options.oracle)
}

func (f *failover) onStandby(statements ...string) {
	f.t.Helper()
	conn, err := pgx.Connect(f.ctx, f.standbyURL())
	f.no(err)
	defer conn.Close(f.ctx)
	for _, sql := range statements {
		_, err := conn.Exec(f.ctx, sql)
		f.no(err)
	}
}

// replayed waits until the standby has all that was written.
func (f *failover) replayed() {
	f.t.Helper()
	target := f.written()
	f.until("the standby has everything", func() bool {
		conn, err := pgx.Connect(f.ctx, f.standbyURL())
		if err != nil {
			return false
		}
		defer conn.Close(f.ctx)
		var has bool
		err = conn.QueryRow(f.ctx, "SELECT pg_last_wal_replay_lsn() >= $1", target).Scan(&has)
		return err == nil && has
	})
}

// ready waits until the standby would keep the slot.
func (f *failover) ready() {
	f.t.Helper()
	f.until("the standby has the slot ready", func() bool {
		f.exec("SELECT pg_log_standby_snapshot()")
		f.exec("SELECT pg_logical_emit_message(true, 'test', 'x')")
		conn, err := pgx.Connect(f.ctx, f.standbyURL())
		if err != nil {
			return false
		}
		defer conn.Close(f.ctx)
		var ready bool
		err = conn.QueryRow(f.ctx, "SELECT synced AND NOT temporary AND invalidation_reason IS NULL FROM pg_replication_slots WHERE slot_name = $1", f.slot).Scan(&ready)
		return err == nil && ready
	})
}

// promote ends the primary and makes the standby one. From then on everything
// is there.
func (f *failover) promote() {
	f.t.Helper()
	f.no(f.pg.Stop(pgserver.Immediate, f.options.patience))
	f.url = f.standbyURL()
	f.pg = f.standby
	f.sql = f.connect()
	var promoted bool
	f.no(f.sql.QueryRow(f.ctx, "SELECT pg_promote(true, 60)").Scan(&promoted))
	if !promoted {
		f.t.Fatal("the standby was not promoted")
	}
	// Nobody waits for a standby of the new primary: there is none.
	f.exec("ALTER SYSTEM RESET synchronized_standby_slots")
	f.exec("SELECT pg_reload_conf()")
}

// The primary dies under load, the standby is promoted, and the publisher goes
// on there: rows that the new primary has are in the topic, in order.
func TestPromotionUnderLoad(t *testing.T) {
	for _, version := range failoverVersions {
		t.Run("PostgreSQL_"+version, func(t *testing.T) {
			parallel(t)
			f := newFailover(t, version, true)
			p := f.run()
			f.load(10, 10)
			f.ready()
			consumer := harness.NewConsumer(t, f.kafka.Direct(), f.topics...)
			writing, writer := make(chan error, 1), f.connect()
			go func() { writing <- f.writeOn(f.ctx, writer) }()
			f.arrived(consumer, 300)
			promoted := time.Now()
			f.promote()
			if err := <-writing; err == nil {
				t.Fatal("the writer did not notice that its server died")
			}
			f.prefix = "after"
			f.load(10, 10)
			line := f.awaitLog(p, "resumed")
			t.Logf("resumed on the new primary %.1f s after the old one was stopped, timeline %v", time.Since(promoted).Seconds(), line["timeline"])
			f.delivered()
			f.stop(p)
			f.check(nil)
		})
	}
}

// A slot that no standby keeps is gone after the promotion. The publisher stops
// and says so; it never begins a new slot by itself.
func TestPromotionWithoutTheSlotStops(t *testing.T) {
	parallel(t)
	f := newFailover(t, "18", false)
	p := f.run()
	f.load(10, 10)
	f.delivered()
	f.promote()
	line := f.awaitLog(p, "blocked")
	f.says(fmt.Sprint(line["error"]), "slot "+f.slot, "does not exist")
	var slots int
	f.no(f.sql.QueryRow(f.ctx, "SELECT count(*) FROM pg_replication_slots WHERE slot_name = $1", f.slot).Scan(&slots))
	if slots != 0 {
		t.Error("a slot was created silently")
	}
	if code := f.stopBlocked(p); code != 3 {
		t.Errorf("exit %d", code)
	}
}
