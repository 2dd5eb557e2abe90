package slotctl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/slotmon"
	"github.com/cdcpub/cdcpub/test/harness"
)

// readyPatience is for standbys, which look at the primary every 30 s when
// nothing changes.
const readyPatience = 90 * time.Second

// pair is a primary with a standby that keeps failover slots.
type pair struct {
	*stand
	standby *pgserver.Server
}

func newPair(t *testing.T, version string) *pair {
	t.Helper()
	primary := harness.Postgres(t, version)
	standby := harness.Standby(t, primary)
	p := &pair{newStand(t, primary), standby}
	// A standby that finds a slot before its database gives up for a minute.
	p.replayed(&stand{t, standby, "postgres", connectTo(t, standby.URL("postgres"))})
	return p
}

// replayed waits until a standby has everything.
func (p *pair) replayed(standby *stand) {
	p.Helper()
	written := p.lsn("pg_current_wal_flush_lsn()")
	until(p.T, "the standby has everything", func() bool { return standby.lsn("pg_last_wal_replay_lsn()") >= written })
}

func (p *pair) asStandby() Standby {
	return Standby{Name: "the standby", Connect: func(ctx context.Context) (*pgx.Conn, error) {
		return pgx.Connect(ctx, p.standby.URL("postgres"))
	}}
}

func (p *pair) failoverSlot(name string) {
	p.Helper()
	if _, err := Create(p.Context(), p.conn, New{Name: name, Failover: true, Timeout: patience}); err != nil {
		p.Fatal(err)
	}
}

func (p *pair) await(name string, limit time.Duration, publications ...string) (Readiness, error) {
	p.Helper()
	ctx, cancel := context.WithTimeoutCause(p.Context(), limit, errors.New("time is over"))
	defer cancel()
	wait := &Wait{Slot: name, Server: p.config(), Publications: publications, Standbys: []Standby{p.asStandby()}, Report: func(Readiness) {}}
	return wait.Ready(ctx, connectTo(p.T, p.server.URL(p.database)))
}

// kept tells if the standby would keep the slot.
func (p *pair) kept(name string) bool {
	p.Helper()
	sample, err := slotmon.Read(p.Context(), connectTo(p.T, p.standby.URL("postgres")), slotmon.Question{})
	if err != nil {
		p.Fatal(err)
	}
	copied := slotmon.Standby{Slot: sample.FindSlot(name)}
	return copied.Ready()
}

func TestAFailoverSlotBecomesReadyAndSurvivesPromotion(t *testing.T) {
	for _, version := range []string{"17", "18"} {
		t.Run("PostgreSQL "+version, func(t *testing.T) {
			p := newPair(t, version)
			standby := &stand{t, p.standby, "postgres", connectTo(t, p.standby.URL("postgres"))}
			// A new slot inherits the catalog_xmin of the oldest one; the standby
			// has no such slot and is already further.
			p.exec("SELECT pg_create_logical_replication_slot('old', 'pgoutput')", "CREATE TABLE one ()", "CREATE TABLE two ()")
			p.replayed(standby)
			p.failoverSlot("ready")
			until(t, "there is a copy", func() bool {
				return standby.text("SELECT count(*)::text FROM pg_replication_slots WHERE slot_name = 'ready'") == "1"
			})
			if p.kept("ready") {
				t.Error("the unread slot is ready: that it is read shows nothing")
			}
			p.exec("INSERT INTO outbox VALUES (1)") // too early: the slot begins later
			now, err := p.await("ready", readyPatience, "pub")
			if err != nil {
				t.Fatal(err)
			}
			if now.Ready != "the standby" || now.Reader != "" || now.Begins != p.confirmed("ready") || !p.kept("ready") {
				t.Errorf("%+v", now)
			}
			p.exec("INSERT INTO outbox VALUES (2), (3)")
			if count := p.count("ready", nil, CountLimits{100, patience}); count.Rows != 2 || !count.Exact() {
				t.Errorf("has %+v, want the two rows since %s", count, now.Begins)
			}
			promoted := connectTo(t, p.standby.URL(p.database))
			after := &stand{t, p.standby, p.database, promoted}
			p.replayed(after)
			after.exec("SELECT pg_promote()")
			if count := after.count("ready", nil, CountLimits{100, patience}); count.Rows != 2 || !count.Exact() {
				t.Errorf("has %+v after the failover", count)
			}
			_, slot, err := CheckDrop(t.Context(), promoted, "ready")
			if err != nil || slot.Synced == nil || !*slot.Synced {
				t.Errorf("a promoted standby's slot is not droppable, or is no copy: %+v, %v", slot, err)
			}
		})
	}
}

func TestAStandbysCopyIsNeitherDroppedNorAdvancedThere(t *testing.T) {
	p := newPair(t, "17")
	p.failoverSlot("copied")
	pid, _ := p.hold("copied", "cdcpub", true) // a publisher reads it already
	now, err := p.await("copied", readyPatience)
	if err != nil {
		t.Fatal(err)
	}
	if now.Begins != 0 || now.Reader == "" {
		t.Errorf("does not say that pid %d reads it: %+v", pid, now)
	}
	standby := connectTo(t, p.standby.URL(p.database))
	_, _, err = CheckDrop(t.Context(), standby, "copied")
	refused[*RefusedError](t, err, "copy", "drop it on the primary")
	_, err = CheckAdvance(t.Context(), standby, "copied", nil)
	refused[*RefusedError](t, err, "copy", "on the primary")
	_, err = CheckCreate(t.Context(), standby, New{Name: "another", Failover: true}, nil)
	refused[*RefusedError](t, err, "this server is a standby", "connect to the primary")
}

// A role with no more than REPLICATION may not have the primary note its
// running transactions; the background writer does it sooner or later. Nor may
// it see primary_conninfo.
func TestAFailoverSlotBecomesReadyForAReplicationRole(t *testing.T) {
	p := newPair(t, "18")
	role := p.role("REPLICATION")
	server := p.config()
	server.User = role.Config().User
	standby := Standby{Name: "the standby", Connect: func(ctx context.Context) (*pgx.Conn, error) {
		return pgx.Connect(ctx, strings.Replace(p.standby.URL("postgres"), "postgres@", server.User+"@", 1))
	}}
	primary := horizon{catalogXmin: "1", restartLSN: "0/1"}
	p.replayed(&stand{t, p.standby, "postgres", connectTo(t, p.standby.URL("postgres"))})
	_, reason := standby.look(t.Context(), "never", primary)
	refused[error](t, errors.New(reason), "no copy of the slot yet", "primary_conninfo has a dbname, as it must, is unknown", `GRANT pg_read_all_settings TO "`+server.User+`"`)

	if _, err := Create(t.Context(), role, New{Name: "ready", Failover: true, Timeout: patience}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), readyPatience, errors.New("time is over"))
	defer cancel()
	wait := &Wait{Slot: "ready", Server: server, Standbys: []Standby{standby}, Report: func(Readiness) {}} // its publication is not known
	now, err := wait.Ready(ctx, role)
	if err != nil || now.Begins == 0 || now.Reader != "" || !p.kept("ready") {
		t.Errorf("%+v, %v", now, err)
	}
}

// When the time is over in the middle of a look, the reasons are those of the
// one before, and the slot is free.
func TestAWaitThatEndsWithinALookKeepsTheReasons(t *testing.T) {
	on(t, []string{"17"}, func(s *stand) {
		name := "cut_" + strings.TrimPrefix(s.database, "db_")
		if _, err := Create(s.Context(), s.conn, New{Name: name, Failover: true, Timeout: patience}); err != nil {
			s.Fatal(err)
		}
		ctx, end := context.WithCancelCause(s.Context())
		looks := 0
		standby := Standby{Name: "nowhere", Connect: func(context.Context) (*pgx.Conn, error) {
			if looks++; looks == 2 {
				end(errors.New("time is over"))
			}
			return nil, fmt.Errorf("refused %d", looks)
		}}
		wait := &Wait{Slot: name, Server: s.config(), Publications: []string{"pub"}, Standbys: []Standby{standby}, Report: func(Readiness) {}}
		now, err := wait.Ready(ctx, s.conn)
		refused[*NotReadyError](s.T, err, "time is over", "standby nowhere: cannot be asked: refused 1")
		if now.Begins == 0 || now.Begins != s.confirmed(name) || s.find(name).Active {
			s.Errorf("%+v", now)
		}
	})
}

func TestAStandbyThatDoesNotHaveTheSlotSaysWhy(t *testing.T) {
	p := newPair(t, "17")
	p.failoverSlot("awaited")
	standby := &stand{t, p.standby, "postgres", connectTo(t, p.standby.URL("postgres"))}
	conninfo := standby.text("SHOW primary_conninfo")
	set := func(name, value string) {
		t.Helper()
		standby.exec("ALTER SYSTEM SET "+name+" = '"+value+"'", "SELECT pg_reload_conf()")
		until(t, name+" is set", func() bool { return standby.text("SHOW "+name) == value })
	}
	reset := func(name string) {
		t.Helper()
		changed := standby.text("SHOW " + name)
		standby.exec("ALTER SYSTEM RESET "+name, "SELECT pg_reload_conf()")
		until(t, name+" is reset", func() bool { return standby.text("SHOW "+name) != changed })
	}
	look := func(s Standby) error {
		t.Helper()
		primary, err := readHorizon(t.Context(), p.conn, "awaited")
		if err != nil {
			t.Fatal(err)
		}
		ready, reason := s.look(t.Context(), "awaited", primary)
		if ready {
			t.Error("is ready")
		}
		return errors.New(reason)
	}
	// Nobody reads the slot: the standby has a copy and does not keep it.
	until(t, "there is a copy", func() bool {
		return standby.text("SELECT count(*)::text FROM pg_replication_slots WHERE slot_name = 'awaited'") == "1"
	})
	refused[error](t, look(p.asStandby()), "temporary copy", "catalog_xmin", "restart_lsn", "reads it and confirms")
	for _, c := range []struct{ name, value, want string }{
		{"sync_replication_slots", "off", "sync_replication_slots is off"},
		{"hot_standby_feedback", "off", "hot_standby_feedback is off"},
		{"primary_slot_name", "", "primary_slot_name is empty"},
		{"primary_conninfo", "host=127.0.0.1 port=1 user=postgres", "no dbname"},
		{"primary_conninfo", "host=127.0.0.1 port=1 user=postgres dbname=postgres", "has no walreceiver"},
	} {
		set(c.name, c.value)
		if c.want == "has no walreceiver" {
			until(t, c.want, func() bool { return standby.text("SELECT count(*)::text FROM pg_stat_wal_receiver") == "0" })
		}
		refused[error](t, look(p.asStandby()), c.want)
		reset(c.name)
	}
	if got := standby.text("SHOW primary_conninfo"); got != conninfo {
		t.Fatalf("primary_conninfo is %s", got)
	}
	refused[error](t, look(Standby{Name: "primary", Connect: func(ctx context.Context) (*pgx.Conn, error) {
		return pgx.Connect(ctx, p.server.URL("postgres"))
	}}), "not a standby")
	refused[error](t, look(Standby{Name: "nowhere", Connect: func(context.Context) (*pgx.Conn, error) {
		return nil, errors.New("connection refused")
	}}), "connection refused")

	set("sync_replication_slots", "off")
	p.exec("INSERT INTO outbox VALUES (1)")
	now, err := p.await("awaited", 2*time.Second, "pub")
	refused[*NotReadyError](t, err, "slot awaited exists", "time is over", "would not survive a failover", "sync_replication_slots is off")
	if now.Begins == 0 || now.Begins != p.confirmed("awaited") {
		t.Errorf("the slot begins at %s, reported %s", p.confirmed("awaited"), now.Begins)
	}
}
