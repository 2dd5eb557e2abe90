package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/test/harness"
)

// chaosPair is a primary and its standby behind one address, as behind a load
// balancer. Everybody but the oracle uses it.
type chaosPair struct {
	standby    *pgserver.Server
	standbyURL string
	front      *harness.Proxy
	promoted   bool // the place onPostgres owns it
}

// onPair makes the stand on a primary with a standby that keeps the slot and
// has every transaction whose COMMIT was answered.
func (w *chaosWorld) onPair(t testing.TB, o options) {
	t.Helper()
	primary := harness.Postgres(t, w.schedule.version, chaosPostgres...)
	o.postgres, o.unprepared = primary, true
	f := &failover{stand: newStand(t, o)}
	f.standby = harness.Standby(t, primary, append(slices.Clone(chaosPostgres), "wal_retrieve_retry_interval=200ms")...)
	w.stand = f.stand
	init := f.command("init", "-c", "{config}", "--failover")
	if code, err := init.Wait(f.ctx); code != 0 || err != nil {
		t.Fatalf("cdcpub init: exit %d %v\n%s", code, err, init.Stderr())
	}
	f.sql = f.connect()
	f.exec("ALTER SYSTEM SET synchronized_standby_slots = 'standby'") // only what the standby has is sent
	f.exec("ALTER SYSTEM SET synchronous_standby_names = 'walreceiver'")
	f.exec("SELECT pg_reload_conf()")
	f.replayed()
	f.oracle = f.oracleOnStandby()
	front, err := harness.NewProxy(address(primary))
	f.no(err)
	t.Cleanup(func() { _ = front.Close() })
	w.pair = &chaosPair{standby: f.standby, standbyURL: f.standbyURL(), front: front}
	w.url = strings.Replace(w.url, address(primary), front.Addr(), 1)
}

// onStandby runs a query that returns one value.
func (p *chaosPair) onStandby(ctx context.Context, to any, sql string, args ...any) error {
	conn, err := pgx.Connect(ctx, p.standbyURL)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return conn.QueryRow(ctx, sql, args...).Scan(to)
}

// promote lets the primary die and the standby take its place.
func (w *chaosWorld) promote(chaosFault) error {
	p := w.pair
	if p.promoted {
		return nil
	}
	err := w.again(func() error {
		_ = w.query("SELECT pg_log_standby_snapshot()")
		var ready bool
		err := p.onStandby(w.ctx, &ready, "SELECT synced AND NOT temporary AND invalidation_reason IS NULL FROM pg_replication_slots WHERE slot_name = $1", w.slot)
		if err == nil && !ready {
			err = errors.New("the standby would not keep the slot")
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := w.pg.Stop(pgserver.Immediate, w.options.patience); err != nil {
		return err
	}
	w.note("the primary is down")
	var promoted bool
	if err := p.onStandby(w.ctx, &promoted, "SELECT pg_promote(true, 60)"); err != nil {
		return err
	}
	if !promoted {
		return errors.New("the standby was not promoted")
	}
	w.pg, p.promoted = p.standby, true
	p.front.Retarget(address(p.standby))
	return nil
}

// awaitReplay: the oracle reads on the standby, promoted or not.
func (p *chaosPair) awaitReplay(w *chaosWorld) {
	w.t.Helper()
	if p.promoted {
		return
	}
	target := w.written()
	w.no(w.again(func() error {
		var has bool
		err := p.onStandby(w.ctx, &has, "SELECT pg_last_wal_replay_lsn() >= $1", target)
		if err == nil && !has {
			err = fmt.Errorf("the standby has not replayed %s", target)
		}
		return err
	}))
}

// moveLeaders moves the leaders of all partitions to other brokers until the
// fault is over, at least once.
func (w *chaosWorld) moveLeaders(f chaosFault) error {
	over := time.Now().Add(f.lasts)
	for {
		if err := w.again(w.moveLeadersOnce); err != nil {
			return err
		}
		w.note("the leaders have moved")
		if time.Now().After(over) {
			return nil
		}
	}
}

// moveLeadersOnce gives up soon: another fault may keep a broker from it.
func (w *chaosWorld) moveLeadersOnce() error {
	ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
	defer cancel()
	replicas, err := w.kafka.Replicas(ctx, w.topic)
	if err != nil {
		return err
	}
	for i, brokers := range replicas {
		replicas[i] = append(brokers[1:len(brokers):len(brokers)], brokers[0])
	}
	if err := w.kafka.Reassign(ctx, w.topic, replicas); err != nil {
		return err
	}
	return w.kafka.ElectPreferred(ctx, w.topic)
}

// fillDisk lasts from the first write that fails to the end of the broker.
func (w *chaosWorld) fillDisk(f chaosFault) error { return w.kafka.FillDisk(w.ctx, f.target) }
