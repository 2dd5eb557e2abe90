package slotmon_test

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/slotmon"
	"github.com/cdcpub/cdcpub/test/harness"
)

// cluster is a real server with a database shop and an outbox in it.
type cluster struct {
	server *pgserver.Server
	major  int
	shop   *pgx.Conn // of the superuser
}

// TestReadOnEveryVersion is what only real servers can show. The tests of one
// version share a server and leave no slot behind.
func TestReadOnEveryVersion(t *testing.T) {
	for major := 14; major <= 18; major++ {
		t.Run(strconv.Itoa(major), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, major, "max_prepared_transactions=5", "autovacuum=off")
			for name, test := range map[string]func(*testing.T, *cluster){
				"a fresh slot has every number":                      freshSlot,
				"a physical slot that reserved nothing has none":     physicalSlot,
				"two_phase is seen":                                  twoPhaseSlot,
				"the holder is named":                                heldSlot,
				"a session that has a temporary slot is its holder":  heldBySession,
				"the server is described":                            serverFacts,
				"a slot confirmed beyond the WAL has a negative lag": slotAhead,
				"a busy slot is never ahead":                         busySlot,
				"open and prepared transactions are listed":          transactions,
				"readers do not crowd out a writer":                  crowd,
				"a role without rights sees the slots":               bareRole,
				"pg_monitor sees everything":                         monitorRole,
				"a hostile search_path changes nothing":              hostilePath,
				"names are the same in any client_encoding":          otherEncoding,
				"the volume is that of the server's own pg_wal":      ownVolume,
				"publication":                     publication,
				"partitions":                      partitions,
				"a refused statement is named":    refused,
				"an end of the context ends Read": endOfContext,
			} {
				t.Run(name, func(t *testing.T) { test(t, c) })
			}
			// Last, since its limit holds for every slot.
			t.Run("a slot is unreserved and then lost", func(t *testing.T) { lostSlot(t, c) })
		})
	}
}

func newCluster(t *testing.T, major int, settings ...string) *cluster {
	t.Helper()
	server := harness.Postgres(t, strconv.Itoa(major), settings...)
	exec(t, connect(t, server.URL("postgres")), "CREATE DATABASE shop")
	c := &cluster{server: server, major: major, shop: connect(t, server.URL("shop"))}
	exec(t, c.shop, "CREATE TABLE outbox (event_id int PRIMARY KEY, payload text)", "CREATE TABLE orders (id int)", "CREATE PUBLICATION nothing")
	return c
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func exec(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// url is the connection string with other parts.
func (c *cluster) url(t *testing.T, user, database string, parameters map[string]string) string {
	t.Helper()
	u, err := url.Parse(c.server.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(user)
	query := u.Query()
	for name, value := range parameters {
		query.Set(name, value)
	}
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // the driver takes a plus as it is
	return u.String()
}

func (c *cluster) read(t *testing.T, q slotmon.Question) *slotmon.Sample {
	t.Helper()
	return read(t, connect(t, c.server.URL("shop")), q)
}

func read(t *testing.T, conn *pgx.Conn, q slotmon.Question) *slotmon.Sample {
	t.Helper()
	sample, err := slotmon.Read(t.Context(), conn, q)
	if err != nil {
		t.Fatal(err)
	}
	return sample
}

// slot reads the slot, which must exist.
func (c *cluster) slot(t *testing.T, name string) *slotmon.Slot {
	t.Helper()
	slot := c.read(t, slotmon.Question{}).FindSlot(name)
	if slot == nil {
		t.Fatalf("there is no slot %s in the sample", name)
	}
	return slot
}

// newSlot makes a slot with a statement and drops it at the test's end.
func (c *cluster) newSlot(t *testing.T, name, sql string) {
	t.Helper()
	exec(t, c.shop, sql)
	t.Cleanup(func() {
		for {
			_, err := c.shop.Exec(context.Background(), "SELECT pg_drop_replication_slot('"+name+"')")
			if err == nil {
				return
			}
			// Its walsender may not have noticed yet that it was left.
			if !c.waitReleased(t, name) {
				t.Fatal(err)
			}
		}
	})
}

// waitReleased waits until nobody holds the slot.
func (c *cluster) waitReleased(t *testing.T, name string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		var active bool
		err := c.shop.QueryRow(ctx, "SELECT active FROM pg_replication_slots WHERE slot_name = $1", name).Scan(&active)
		if err != nil {
			t.Log(err)
			return false
		}
		if !active {
			return true
		}
	}
	return false
}

func logical(name string) string {
	return "SELECT pg_create_logical_replication_slot('" + name + "', 'pgoutput')"
}

// eventually reads until the slot is as it should be.
func (c *cluster) eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	deadline := time.After(time.Minute)
	for !holds() {
		select {
		case <-poll.C:
		case <-deadline:
			t.Fatalf("not in time: %s", what)
		}
	}
}
