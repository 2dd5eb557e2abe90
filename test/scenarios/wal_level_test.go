package scenarios

import (
	"strings"
	"testing"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/test/harness"
)

// A server that never had wal_level = logical: each command names that, and
// the cure.
func TestServerWithoutLogicalDecodingIsNamedByEachCommand(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			parallel(t)
			s := newStand(t, options{unprepared: true, postgres: harness.Postgres(t, version, "wal_level=replica")})
			s.sql = s.connect()
			for _, args := range [][]string{
				{"check", "-c", "{config}", "--types", "order"},
				{"init", "-c", "{config}"},
				{"run", "-c", "{config}"},
			} {
				p := s.command(args...)
				if code := s.exit(p); code != 3 {
					t.Errorf("cdcpub %s: exit %d, want 3", args[0], code)
				}
				said := words(p.Stdout() + " " + p.Stderr())
				s.says(strings.ReplaceAll(said, "'", ""), "wal_level", "replica", "ALTER SYSTEM SET wal_level = logical", "restart PostgreSQL")
			}
			s.exec("CREATE TABLE outbox (event_id uuid)")
			s.exec("CREATE PUBLICATION " + s.slot + " FOR TABLE outbox")
			p := s.command("slot", "create", s.slot, "--yes", "-c", "{config}")
			if code := s.exit(p); code == 0 {
				t.Error("cdcpub slot create: exit 0")
			}
			s.says(p.Stderr(), "wal_level = logical", "restart PostgreSQL")
		})
	}
}

// PostgreSQL does not start with a logical slot and a lower wal_level, so that
// no publisher ever meets its slot on such a server. Put right, it goes on with
// nothing lost.
func TestLowerWALLevelWithASlotKeepsPostgreSQLFromStarting(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			parallel(t)
			s := newStand(t, options{postgres: harness.Postgres(t, version)})
			p := s.run()
			s.load(2, 10)
			s.exec("ALTER SYSTEM SET wal_level = replica")
			s.no(s.pg.Stop(pgserver.Fast, fastStopLimit))
			if err := s.pg.Start(s.ctx); err == nil {
				t.Fatal("PostgreSQL runs with wal_level = replica and a logical slot")
			}
			s.no(s.pg.WriteFile("postgresql.auto.conf", "")) // what ALTER SYSTEM wrote
			s.no(s.pg.Start(s.ctx))
			s.sql = s.connect()
			s.load(2, 10)
			s.delivered()
			s.stop(p)
			s.check(nil)
		})
	}
}
