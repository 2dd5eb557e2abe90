package deploy_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/provision"
	"github.com/cdcpub/cdcpub/test/harness"
)

// versions are the oldest and the newest that the runbook is for.
var versions = []string{"14", "18"}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func execute(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// outbox makes the outbox, publication and slot of the smallest configuration,
// as `cdcpub init` does, with the names that the runbook uses.
func outbox(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	plan := provision.Plan{
		Tables: []provision.Table{{Schema: "public", Name: "outbox"}},
		Columns: provision.Columns{
			EventID: "event_id", AggregateType: "aggregate_type", AggregateID: "aggregate_id", AggregateVersion: "aggregate_version",
			EventType: "event_type", Payload: "payload", SchemaVersion: "schema_version", Headers: "headers",
		},
		Publication: "cdcpub", Slot: "cdcpub", SlotTimeout: time.Minute,
	}
	if err := provision.Run(t.Context(), conn, plan, func(provision.Step) {}); err != nil {
		t.Fatal(err)
	}
}

// sqlBlocks are those of the runbook that are for the version.
func sqlBlocks(t *testing.T, version string) (all []block) {
	t.Helper()
	for _, s := range sections(read(t, runbookFile)) {
		for _, b := range s.blocks() {
			since := slices.IndexFunc(b.marks, func(mark string) bool { _, err := strconv.Atoi(mark); return err == nil })
			if b.language == "sql" && (since < 0 || b.marks[since] <= version) {
				all = append(all, b)
			}
		}
	}
	return all
}

// What only looks runs, in a transaction that may not write, as a role with no
// more rights than the runbook asks for.
func TestQueriesOfTheRunbookRunOnRealServers(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			server := shared.Postgres(t, version)
			database := harness.Database(t, server)
			owner := connect(t, server.URL(database))
			outbox(t, owner)
			execute(t, owner, "DO $$ BEGIN CREATE ROLE looker LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$",
				"GRANT pg_monitor TO looker", "GRANT SELECT ON public.outbox TO looker")
			looker := connect(t, server.URL(database))
			execute(t, looker, "SET SESSION AUTHORIZATION looker")
			ran := 0
			for _, b := range sqlBlocks(t, version) {
				if !slices.Contains(b.marks, "readonly") {
					continue
				}
				ran++
				execute(t, looker, "BEGIN READ ONLY")
				if _, err := looker.PgConn().Exec(t.Context(), b.code).ReadAll(); err != nil {
					t.Errorf("section %s: %v\n%s", b.section, err, b.code)
				}
				execute(t, looker, "ROLLBACK")
			}
			if ran < 15 {
				t.Errorf("only %d blocks", ran)
			}
		})
	}
}

// What changes something is parsed by the server: names and syntax are right.
func TestStatementsOfTheRunbookAreRightOnRealServers(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			server := shared.Postgres(t, version)
			conn := connect(t, server.URL(harness.Database(t, server)))
			outbox(t, conn)
			parsed := 0
			for _, b := range sqlBlocks(t, version) {
				if slices.Contains(b.marks, "readonly") {
					continue
				}
				for statement := range strings.SplitSeq(b.code, ";\n") {
					if strings.TrimSpace(statement) == "" {
						continue
					}
					parsed++
					if _, err := conn.Prepare(t.Context(), fmt.Sprintf("s%d", parsed), statement); err != nil {
						t.Errorf("section %s: %v\n%s", b.section, err, statement)
					}
				}
			}
			if parsed < 15 {
				t.Errorf("only %d statements", parsed)
			}
		})
	}
}
