package scenarios

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/slotmon"
	"github.com/cdcpub/cdcpub/test/harness"
)

// A dropped publication shows in the stream: up to 17 as an error, on 18 as a
// notice, each at the first row that was written without it. Nothing is skipped
// by the publisher, and nothing is by one that exists again.
func TestDroppedPublicationStopsAtTheFirstRowWithoutIt(t *testing.T) {
	for _, version := range versions {
		for _, again := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/created again=%v", version, again), func(t *testing.T) {
				parallel(t)
				publicationDropped(newStand(t, options{postgres: shared.Postgres(t, version, "max_prepared_transactions=10"), http: true}), again)
			})
		}
	}
}

func publicationDropped(s *stand, again bool) {
	p := s.run()
	written := s.underLoad()
	s.load(2, 10)
	s.delivered()
	s.does([]string{"DROP PUBLICATION {p}", "rows"})
	want := "does not exist in database"
	if again {
		s.does([]string{"CREATE PUBLICATION {p} FOR TABLE outbox WITH (publish = 'insert')", "rows"})
		want = "was dropped and created again while cdcpub was running"
	}
	var text string
	s.until("the publisher says what happened to the publication", func() bool {
		text = s.status().text("stall", "cause")
		return s.status().text("state") == "blocked" && strings.Contains(text, want)
	})
	s.says(text, "nothing was skipped", "created again")
	up := s.lsnIn(text, `everything committed up to LSN ([0-9A-F]+/[0-9A-F]+) is published, and rows committed after it wait`)
	written()
	if confirmed := s.confirmed(); confirmed > up {
		s.t.Errorf("%s is confirmed, the publisher says %s", confirmed, up)
	}
	if report := s.judge(func(o *verify.Options) { o.Incomplete = true }); !report.OK() || report.Pending == 0 {
		s.t.Fatalf("while the publisher is blocked:\n%s", report.Table())
	}
	if code := s.stopBlocked(p); code == 0 {
		s.t.Errorf("exit 0, which says that everything is delivered")
	}

	// What the README says: the slot anew, behind the publication. What it had
	// held is in the table only.
	s.succeeds("slot", "drop", s.slot, "--yes", "-c", "{config}")
	s.succeeds("init", "-c", "{config}")
	p = s.run()
	s.load(2, 10)
	s.delivered()
	s.stop(p)
	given := map[string]bool{}
	for _, row := range s.missing() {
		given[row.EventID] = true
		if row.CommitEnd <= up {
			s.t.Errorf("a row that was committed at %s is missing; the publisher says that everything up to %s is published", row.CommitEnd, up)
		}
	}
	if len(given) == 0 {
		s.t.Error("no row is missing: the scenario is not what it says")
	}
	s.check(func(o *verify.Options) { o.Quarantined = given })
}

// succeeds runs a command of cdcpub.
func (s *stand) succeeds(args ...string) {
	s.t.Helper()
	p := s.command(args...)
	if code := s.exit(p); code != 0 {
		s.t.Fatalf("cdcpub %v: exit %d\n%s", args, code, p.Stderr())
	}
}

// The active process stops and lets go of the slot. A standby that takes it
// would go on where a human should look; it stops as soon as it has looked at
// the publication itself.
func TestStandbyDoesNotGoOnBehindAnAlteredPublication(t *testing.T) {
	parallel(t)
	w := harness.NewWebhook(t)
	s := newStand(t, options{http: true, sections: alerting(w)})
	active := s.run()
	s.listen = s.freeAddress()
	standby := s.launch()
	s.awaitLog(standby, "standby")
	s.load(2, 10)
	s.delivered()
	s.watched() // by the standby
	s.does([]string{"ALTER PUBLICATION {p} DROP TABLE outbox", "rows", "ALTER PUBLICATION {p} ADD TABLE outbox", "rows"})
	s.awaitLog(active, "blocked")
	line := s.awaitLog(standby, "blocked")
	s.says(fmt.Sprint(line["error"]), "was changed while this process was running", "restart cdcpub, standbys too")
	s.until("the standby is not ready", func() bool { return s.get("/readyz").code == http.StatusServiceUnavailable })
	s.alert(w, 0, slotmon.PublicationChanged, "raised", slotmon.Critical)
	for _, p := range []*harness.Process{active, standby} {
		if code := s.stopBlocked(p); code != 4 {
			t.Errorf("exit %d, want 4\n%s", code, p.Stderr())
		}
	}
	p := s.run()
	s.delivered()
	s.stop(p)
	given := map[string]bool{}
	for _, row := range s.missing() {
		given[row.EventID] = true
	}
	if len(given) != 10 {
		t.Errorf("%d rows are missing, want 10", len(given))
	}
	s.check(func(o *verify.Options) { o.Quarantined = given })
}

// A column list without a column that records are made of shows in the rows
// themselves: the stream stands still before the first of them. They keep that
// shape in the WAL, so that they have to be given up.
func TestColumnListWithoutANeededColumnStandsStill(t *testing.T) {
	parallel(t)
	s := newStand(t, options{postgres: shared.Postgres(t, "18", "max_prepared_transactions=10"), http: true})
	p := s.run()
	s.load(2, 10)
	s.delivered()
	before := s.written()
	s.does([]string{"ALTER PUBLICATION {p} SET TABLE outbox (event_id, aggregate_type, aggregate_id, aggregate_version, event_type)", "rows"})
	text := fmt.Sprint(s.blockedProcess(p)["error"])
	s.says(text, "the published table has no column", "payload", "if the publication has a column list, add them to it", "the LSN stays before this transaction")
	if report := s.judge(func(o *verify.Options) { o.Incomplete = true }); !report.OK() || report.Pending != 10 {
		t.Fatalf("while the publisher is blocked:\n%s", report.Table())
	}
	s.does([]string{"ALTER PUBLICATION {p} SET TABLE outbox"})
	cured := s.written()
	s.does([]string{"rows"})
	s.stopBlocked(p)
	s.exec("SELECT pg_replication_slot_advance($1, $2)", s.slot, cured)
	p = s.run()
	s.delivered()
	s.stop(p)
	s.lostBetween(10, before.String(), cured.String())
}
