package deploy_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/test/harness"
)

// find returns the runbook's first block of a section that contains the text.
func find(t *testing.T, title, text string) block {
	t.Helper()
	for _, s := range sections(read(t, runbookFile)) {
		for _, b := range s.blocks() {
			if s.title == title && strings.Contains(b.code, text) {
				return b
			}
		}
	}
	t.Fatalf("section %q of the runbook has no block with %q", title, text)
	return block{}
}

func value[T any](t *testing.T, conn *pgx.Conn, sql string) (v T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// writeWAL makes the server write at least so many segments of 16 MB.
func writeWAL(t *testing.T, conn *pgx.Conn, segments int) {
	t.Helper()
	for range segments {
		execute(t, conn, "SELECT pg_logical_emit_message(false, 'fill', repeat('x', 1000000))", "SELECT pg_switch_wal()")
	}
}

const walStatus = "SELECT wal_status FROM pg_replication_slots WHERE slot_name = 'cdcpub'"

// The cure of slot_unreserved as it is written keeps a slot that the next
// checkpoint would have taken.
func TestRaisedLimitSavesAnUnreservedSlot(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			server := harness.Postgres(t, version, "max_slot_wal_keep_size=32MB", "max_wal_size=10GB", "checkpoint_timeout=1h")
			conn := connect(t, server.URL("postgres"))
			outbox(t, conn)
			writeWAL(t, conn, 6)
			if status := value[string](t, conn, walStatus); status != "unreserved" {
				t.Fatalf("wal_status is %s before the cure", status)
			}
			for statement := range strings.SplitSeq(find(t, "slot_unreserved", "ALTER SYSTEM").code, ";\n") {
				if statement != "" {
					execute(t, conn, statement)
				}
			}
			waitFor(t, conn, "SELECT safe_wal_size > 0 FROM pg_replication_slots WHERE slot_name = 'cdcpub'")
			execute(t, conn, "CHECKPOINT")
			if status := value[string](t, conn, walStatus); status == "lost" || status == "unreserved" {
				t.Errorf("wal_status is %s after the cure and a checkpoint", status)
			}
		})
	}
}

// waitFor asks until the server says yes.
func waitFor(t *testing.T, conn *pgx.Conn, condition string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !value[bool](t, conn, condition); {
		if time.Now().After(deadline) {
			t.Fatalf("never true: %s", condition)
		}
		execute(t, conn, "SELECT pg_sleep(0.05)")
	}
}

const recoveryT = "'2026-03-14 02:00+00'"

// recovery is somebody who follows "Publish again".
type recovery struct {
	*testing.T
	server *pgserver.Server
	conn   *pgx.Conn
	// cdcpub runs a command line of cdcpub as the runbook has it.
	cdcpub func(line string)
}

func newRecovery(t *testing.T, version string) *recovery {
	t.Helper()
	server := harness.Postgres(t, version, "max_slot_wal_keep_size=32MB", "max_wal_size=32MB", "min_wal_size=32MB")
	r := &recovery{T: t, server: server, conn: connect(t, server.URL("postgres"))}
	outbox(t, r.conn)
	binary, dir := shared.Binary(t, harness.BuildOptions{}), t.TempDir()
	config := fmt.Sprintf("postgres: {url: %q, slot: cdcpub, publication: cdcpub}\noutbox: {tables: [public.outbox]}\nkafka: {brokers: [127.0.0.1:9]}\n", server.URL("postgres"))
	if err := os.WriteFile(filepath.Join(dir, "cdcpub.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	r.cdcpub = func(line string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), binary, append(strings.Fields(line)[1:], "--yes")...)
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	return r
}

// write inserts the next version of both aggregates.
func (r *recovery) write(conn *pgx.Conn, version int, created string) {
	r.Helper()
	for _, aggregate := range []string{"b", "a"} {
		execute(r.T, conn, fmt.Sprintf("INSERT INTO public.outbox (aggregate_type, aggregate_id, aggregate_version, event_type, created_at) VALUES ('order', '%s', %d, 'changed', %s)", aggregate, version, created))
	}
}

// lose has the slot invalidated.
func (r *recovery) lose() {
	r.Helper()
	writeWAL(r.T, r.conn, 8)
	execute(r.T, r.conn, "CHECKPOINT")
	if status := value[string](r.T, r.conn, walStatus); status != "lost" {
		r.Fatalf("the slot is not lost but %s", status)
	}
}

// publishAgain runs the block of step 4 while a writer is at work, and returns
// the LSN that it prints.
func (r *recovery) publishAgain(writer *pgx.Conn) string {
	r.Helper()
	code := find(r.T, "Publish again", "LOCK TABLE").code
	if !strings.Contains(code, recoveryT) {
		r.Fatalf("no %s in:\n%s", recoveryT, code)
	}
	code = strings.ReplaceAll(code, recoveryT, "now() - interval '1 hour'")
	type outcome struct {
		results []*pgconn.Result
		err     error
	}
	done := make(chan outcome, 1)
	operator := connect(r.T, r.server.URL("postgres"))
	go func() {
		results, err := operator.PgConn().Exec(r.Context(), code).ReadAll()
		done <- outcome{results, err}
	}()
	waitFor(r.T, r.conn, "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
	execute(r.T, writer, "COMMIT")
	ended := <-done
	if ended.err != nil {
		r.Fatal(ended.err)
	}
	return printedLSN(r.T, ended.results)
}

// A slot is lost with events that were not published. "Publish again" brings
// each of them into the new slot, once, and every aggregate in the order of its
// versions, also those that were written while somebody worked at it.
func TestPublishAgainRecoversALostSlotInOrder(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			r := newRecovery(t, version)
			r.write(r.conn, 1, "now() - interval '1 day'")
			execute(t, r.conn, "SELECT pg_replication_slot_advance('cdcpub', pg_current_wal_lsn())") // 1 is published
			r.write(r.conn, 2, "now()")
			r.lose()
			r.write(r.conn, 3, "now()")
			// An UPDATE moves its rows behind younger ones in the table.
			execute(t, r.conn, "UPDATE public.outbox SET headers = '{}' WHERE aggregate_version = 2")

			for line := range strings.Lines(find(t, "Publish again", "slot create").code) {
				r.cdcpub(line)
			}
			r.write(r.conn, 4, "now()")
			writer := connect(t, r.server.URL("postgres"))
			execute(t, writer, "BEGIN")
			r.write(writer, 5, "now()")
			lsn := r.publishAgain(writer)
			r.write(r.conn, 6, "now()")
			advance := find(t, "Publish again", "slot advance").code
			r.cdcpub(regexp.MustCompile(`\b0/[0-9A-F]+`).ReplaceAllString(advance, lsn))

			for aggregate, got := range published(t, r.conn) {
				if want := []int{2, 3, 4, 5, 6}; !slices.Equal(got, want) {
					t.Errorf("aggregate %s is published in the versions %v, want %v", aggregate, got, want)
				}
			}
			if rows := value[int](t, r.conn, "SELECT count(*) FROM public.outbox"); rows != 12 {
				t.Errorf("the outbox has %d rows, want 12", rows)
			}
		})
	}
}

func printedLSN(t *testing.T, results []*pgconn.Result) string {
	t.Helper()
	for _, result := range results {
		if len(result.FieldDescriptions) > 0 && string(result.FieldDescriptions[0].Name) == "pg_current_wal_insert_lsn" {
			return string(result.Rows[0][0])
		}
	}
	t.Fatal("the block prints no LSN")
	return ""
}

// published are the versions of each aggregate that the slot holds, in order.
func published(t *testing.T, conn *pgx.Conn) map[string][]int {
	t.Helper()
	const inserts = `SELECT encode(data, 'escape') FROM pg_logical_slot_peek_binary_changes('cdcpub', NULL, NULL,
		'proto_version', '1', 'publication_names', 'cdcpub') WHERE get_byte(data, 0) = ascii('I')`
	rows, err := conn.Query(t.Context(), inserts)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	eventID := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	versions := map[string][]int{"a": nil, "b": nil}
	for _, message := range messages {
		var aggregate string
		var version int
		err := conn.QueryRow(t.Context(), "SELECT aggregate_id, aggregate_version FROM public.outbox WHERE event_id = $1", eventID.FindString(message)).Scan(&aggregate, &version)
		if err != nil {
			t.Fatalf("%s: %v", message, err)
		}
		versions[aggregate] = append(versions[aggregate], version)
	}
	return versions
}

// The cure of slot_two_phase on 18 keeps the position.
func TestTwoPhaseIsSwitchedOffInPlaceOn18(t *testing.T) {
	server := harness.Postgres(t, "18")
	conn := connect(t, server.URL("postgres"))
	execute(t, conn, "SELECT pg_create_logical_replication_slot('cdcpub', 'pgoutput', false, true)")
	const position = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = 'cdcpub'"
	before := value[string](t, conn, position)

	command := regexp.MustCompile(`-c '([^']*)'`).FindStringSubmatch(find(t, "slot_two_phase", "psql").code)
	config, err := pgconn.ParseConfig(server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["replication"] = "database"
	replication, err := pgconn.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer replication.Close(context.Background())
	if _, err := replication.Exec(t.Context(), command[1]).ReadAll(); err != nil {
		t.Fatalf("%s: %v", command[1], err)
	}
	if value[bool](t, conn, "SELECT two_phase FROM pg_replication_slots WHERE slot_name = 'cdcpub'") {
		t.Error("two_phase is still on")
	}
	if after := value[string](t, conn, position); after != before {
		t.Errorf("confirmed_flush_lsn moved from %s to %s", before, after)
	}
}
