package slotmon_test

import (
	"slices"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/slotmon"
)

func transactions(t *testing.T, c *cluster) {
	open := func(application string, statements ...string) {
		exec(t, connect(t, c.url(t, "postgres", "shop", map[string]string{"application_name": application})), statements...)
	}
	c.newSlot(t, "beside", logical("beside"))
	c.hold(t, "beside", "cdcpub/beside")
	open("idle", "BEGIN", "SELECT 1")
	open("reader", "BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1")
	exec(t, c.shop, "BEGIN", "INSERT INTO orders VALUES (1)", "PREPARE TRANSACTION 'global id'")
	open("writer", "BEGIN", "INSERT INTO orders VALUES (1)")

	s := c.read(t, slotmon.Question{})
	exec(t, c.shop, "ROLLBACK PREPARED 'global id'")
	var got []string
	for _, x := range s.Transactions {
		got = append(got, x.ApplicationName+x.GID)
		if x.Database != "shop" || x.User != "postgres" || time.Since(x.Began).Abs() > time.Minute {
			t.Errorf("unexpected %+v", x)
		}
		switch {
		case x.GID != "":
			if x.PID != 0 || !x.Writes || x.State != "" || x.QueryStarted != nil {
				t.Errorf("prepared: %+v", x)
			}
		case x.PID == 0 || x.State != "idle in transaction" || x.QueryStarted == nil || x.Writes != (x.ApplicationName == "writer"):
			t.Errorf("open: %+v", x)
		}
	}
	if want := []string{"reader", "global id", "writer"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q, oldest first", got, want)
	}
}

func crowd(t *testing.T, c *cluster) {
	const readers = 25
	for range readers {
		exec(t, connect(t, c.server.URL("shop")), "BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1")
	}
	writer := connect(t, c.server.URL("shop"))
	exec(t, writer, "BEGIN", "INSERT INTO orders VALUES (1)")
	s := c.read(t, slotmon.Question{})
	if len(s.Transactions) != 20 {
		t.Fatalf("%d transactions", len(s.Transactions))
	}
	if last := s.Transactions[19]; !last.Writes || last.PID != int(writer.PgConn().PID()) {
		t.Errorf("the newest is %+v, want the writer", last)
	}
	if !slices.IsSortedFunc(s.Transactions, func(a, b slotmon.Transaction) int { return a.Began.Compare(b.Began) }) {
		t.Errorf("not oldest first: %+v", s.Transactions)
	}
}
