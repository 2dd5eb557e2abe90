package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/cdcpub/cdcpub/test/harness"
)

// run executes a slot command on the outbox; answer, if not empty, is what a
// human at a terminal types.
func (o *outbox) run(t *testing.T, answer string, args ...string) outcome {
	t.Helper()
	return o.runWith(t, "", answer, args...)
}

// runWith has more groups in the configuration.
func (o *outbox) runWith(t *testing.T, more, answer string, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	p := process{args: append(append([]string{"slot"}, args...), "-c", o.config(t, more)), stdout: &stdout, stderr: &stderr, signals: make(chan os.Signal)}
	if answer != "" {
		p.stdin = strings.NewReader(answer)
	}
	code := run(t.Context(), p)
	return outcome{code, stdout.String(), stderr.String()}
}

// changing is what differs from run to run, and what stands for it.
var changing = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`127\.0\.0\.1:\d+/\w+`), "SERVER"},
	{regexp.MustCompile(`\bdb_\w+`), "DATABASE"},
	{regexp.MustCompile(`\b[0-9A-F]{1,8}/[0-9A-F]{1,8}\b`), "LSN"},
	{regexp.MustCompile(`\b[0-9.]+ [KM]?i?B\b`), "SIZE"},
	{regexp.MustCompile(`\b[0-9]+ bytes\b`), "N bytes"},
	{regexp.MustCompile(`\bpid \d+`), "pid PID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(\+\d\d| UTC|Z)`), "TIME"},
}

// says compares the outcome, with names for what changes.
func (o outcome) says(t *testing.T, code int, stdout, stderr string) {
	t.Helper()
	for _, c := range changing {
		o.stdout, o.stderr = c.pattern.ReplaceAllString(o.stdout, c.name), c.pattern.ReplaceAllString(o.stderr, c.name)
		stdout = c.pattern.ReplaceAllString(stdout, c.name)
	}
	if want := strings.TrimPrefix(stdout, "\n"); o.stdout != want {
		t.Errorf("stdout is\n%swant\n%s", o.stdout, want)
	}
	if want := strings.TrimPrefix(stderr, "\n"); o.stderr != want {
		t.Errorf("stderr is\n%swant\n%s", o.stderr, want)
	}
	if o.code != code {
		t.Errorf("exit %d, want %d", o.code, code)
	}
}

// object checks that stdout is one JSON object with these members.
func (o outcome) object(t *testing.T, code int, want map[string]any) {
	t.Helper()
	var got map[string]any
	decoder := json.NewDecoder(strings.NewReader(o.stdout))
	if err := decoder.Decode(&got); err != nil || decoder.More() || o.code != code {
		t.Fatalf("exit %d, want %d: %v\n%s\n%s", o.code, code, err, o.stdout, o.stderr)
	}
	for name, value := range want {
		if fmt.Sprint(got[name]) != fmt.Sprint(value) {
			t.Errorf("%s is %v, want %v, in %s", name, got[name], value, o.stdout)
		}
	}
}

// text is the one value that a query gives.
func (o *outbox) text(t *testing.T, sql string) (value string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), o.server.URL(o.database))
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(conn)
	if err := conn.QueryRow(t.Context(), sql).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// confirmed is the slot's confirmed_flush_lsn; empty if there is no slot.
func (o *outbox) confirmed(t *testing.T, slot string) string {
	t.Helper()
	return o.text(t, "SELECT coalesce((SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = '"+slot+"'), '')")
}

// consume reads the slot and confirms what it gets, until the test ends or it is
// ended.
func (o *outbox) consume(t *testing.T, application string) {
	t.Helper()
	settings, err := pgconn.ParseConfig(o.server.URL(o.database))
	if err != nil {
		t.Fatal(err)
	}
	settings.RuntimeParams["replication"], settings.RuntimeParams["application_name"] = "database", application
	conn, err := pgconn.ConnectConfig(t.Context(), settings)
	if err != nil {
		t.Fatal(err)
	}
	err = pglogrepl.StartReplication(t.Context(), conn, o.slot, 0, pglogrepl.StartReplicationOptions{
		PluginArgs: []string{"proto_version '1'", fmt.Sprintf(`publication_names '"%s"'`, o.slot)}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer conn.Close(context.Background())
		for {
			message, err := conn.ReceiveMessage(ctx)
			if err != nil {
				return
			}
			data, ok := message.(*pgproto3.CopyData)
			if !ok || data.Data[0] != pglogrepl.PrimaryKeepaliveMessageByteID {
				continue
			}
			keepalive, err := pglogrepl.ParsePrimaryKeepaliveMessage(data.Data[1:])
			if err != nil {
				return
			}
			if err := pglogrepl.SendStandbyStatusUpdate(ctx, conn, pglogrepl.StandbyStatusUpdate{WALWritePosition: keepalive.ServerWALEnd}); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
}

func (o *outbox) insert(t *testing.T, id string, rows int) {
	t.Helper()
	o.exec(t, fmt.Sprintf(`INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type)
		SELECT 'order', '%s', v, 'Placed' FROM generate_series(1, %d) v`, id, rows))
}

func TestSlotCreateAndDrop(t *testing.T) {
	o := newOutbox(t, harness.Postgres(t, ""), "shop")
	o.run(t, "", "create").says(t, exitRefused, "", `
cdcpub: slot shop exists: logical, plugin pgoutput, database DATABASE; look at it with `+"`cdcpub slot status shop`"+`
`)
	o.insert(t, "a", 3)
	const drop = `
Slot shop (logical, plugin pgoutput, database DATABASE) at SERVER will be dropped. It cannot be made again as it was.
It holds SIZE of WAL, from LSN to LSN.
confirmed_flush_lsn is LSN: rows committed after it that are not published will never arrive. A new slot begins at its own creation.
`
	o.run(t, "", "drop").says(t, exitUsage, "", drop+"cdcpub: nothing was done: there is no terminal to ask on; give --yes if this is what you want\n")
	o.run(t, "no\n", "drop").says(t, exitRefused, "", drop+"Go on? [y/N] cdcpub: nothing was done\n")
	if o.confirmed(t, "shop") == "" {
		t.Fatal("the slot was dropped")
	}
	o.run(t, "yes\n", "drop").says(t, exitDone, "dropped slot shop; the WAL that only it held is removed at the next checkpoint\n", drop+"Go on? [y/N] ")
	o.run(t, "", "drop", "--yes").says(t, exitRefused, "", "cdcpub: slot shop does not exist: this server has no slot at all\n")

	const create = `
Slot shop will be created at SERVER.
It begins now: rows committed before will not be published through it.
From then on the server keeps all WAL until somebody reads the slot and confirms: begin to publish soon, or drop it.
`
	o.run(t, "", "create").says(t, exitUsage, "", create+"cdcpub: nothing was done: there is no terminal to ask on; give --yes if this is what you want\n")
	if o.confirmed(t, "shop") != "" {
		t.Fatal("the slot was created")
	}
	o.run(t, "", "create", "--yes").says(t, exitDone, "created slot shop in database DATABASE: it begins at LSN LSN\n", create)
	o.run(t, "", "drop", "shopp", "--yes").says(t, exitRefused, "", "cdcpub: slot shopp does not exist on this server; it has, nearest first: shop\n")
	o.run(t, "", "create", "second", "-o", "json", "--yes").object(t, exitDone, map[string]any{
		"action": "create", "slot": "second", "done": true, "database": o.database, "confirmed_flush_lsn": o.confirmed(t, "second"), "failover": false})
	o.run(t, "", "drop", "second", "-o", "json", "--yes").object(t, exitDone, map[string]any{
		"action": "drop", "slot": "second", "done": true, "type": "logical", "plugin": "pgoutput"})
	o.run(t, "", "create", "second", "--failover", "--yes").expect(t, exitRefused, nil, []string{"cannot be a failover slot: this server is PostgreSQL 15", "since 17"})

	o.exec(t, "DROP PUBLICATION shop")
	o.run(t, "", "create", "second", "--yes").says(t, exitRefused, "", `
cdcpub: slot second would be older than its publication and could not be decoded: publication shop does not exist in database DATABASE; create the publication first (`+"`cdcpub init`"+` does both, in this order), or name another with --publication
`)
}

func TestSlotCreateFailover(t *testing.T) {
	primary := harness.Postgres(t, "17")
	o := newOutbox(t, primary, "shop")
	standby := harness.Standby(t, primary)
	monitor := "slot_monitor: {standbys: ['" + standby.URL(o.database) + "']}"
	const create = `
Slot %s will be created at SERVER.
It begins now: rows committed before will not be published through it.
From then on the server keeps all WAL until somebody reads the slot and confirms: begin to publish soon, or drop it.
`
	const waits = "It is read here, and its rows are thrown away, until a standby has it ready (%s at most), for an unread one may never become ready: it begins then, not earlier.\n"
	const unsynchronized = "synchronized_standby_slots is empty on this server: rows can be published that a standby does not have yet, and that are gone after a failover.\n"

	o.run(t, "", "create", "unchecked", "--failover", "--yes").says(t, exitDone, `
created failover slot unchecked in database DATABASE: it begins at LSN LSN
whether a standby has it ready was not checked, since none is configured (slot_monitor.standbys or --standby); a failover slot that nobody reads may never become ready
`, fmt.Sprintf(create, "unchecked")+unsynchronized)

	ready := o.runWith(t, monitor, "", "create", "ready", "--failover", "--yes")
	ready.stderr = regexp.MustCompile(`(?m)^standby .*\n`).ReplaceAllString(ready.stderr, "") // progress
	ready.says(t, exitDone, "created failover slot ready in database DATABASE, ready on standby SERVER: it begins at LSN LSN\n",
		fmt.Sprintf(create, "ready")+fmt.Sprintf(waits, "1m30s")+unsynchronized+"created failover slot ready; waiting for a standby\n")

	nowhere := o.runWith(t, monitor, "", "create", "nowhere", "--failover", "--yes", "-o", "json", "--ready-timeout", "1s", "--standby", "postgres://u@127.0.0.1:1/x")
	nowhere.object(t, exitFailure, map[string]any{"action": "create", "done": true, "failover": true, "failover_ready": false, "confirmed_flush_lsn": o.confirmed(t, "nowhere")})
	nowhere.says(t, exitFailure, nowhere.stdout, fmt.Sprintf(create, "nowhere")+fmt.Sprintf(waits, "1s")+unsynchronized+`created failover slot nowhere; waiting for a standby
standby SERVER: cannot be asked: PostgreSQL at SERVER: connection refused: nothing listens there; start PostgreSQL, or correct host and port in --standby
cdcpub: slot nowhere exists, but no standby has it ready (within 1s): it would not survive a failover; standby SERVER: cannot be asked: PostgreSQL at SERVER: connection refused: nothing listens there; start PostgreSQL, or correct host and port in --standby
`)
	o.run(t, "", "create", "bad", "--failover", "--yes", "--standby", "postgres://u@h/d?sslmode=none").expect(t, exitUsage, nil, []string{"--standby: ", "sslmode"})
}

func TestSlotDropNamesTheHolder(t *testing.T) {
	o := newOutbox(t, harness.Postgres(t, ""), "shop")
	o.consume(t, "cdcpub")
	o.run(t, "", "drop", "--yes").says(t, exitRefused, "", `
cdcpub: slot shop is held by pid PID, application_name "cdcpub", user postgres, from 127.0.0.1, connected since TIME; stop that process first, or end it with `+"`cdcpub slot takeover shop`"+`
`)
}

func TestSlotAdvance(t *testing.T) {
	o := newOutbox(t, harness.Postgres(t, ""), "shop")
	begin := o.confirmed(t, "shop")
	const advance = `
Slot shop at SERVER will advance from LSN LSN to LSN, over SIZE of WAL. It cannot go back.
Counting the rows of publication shop in it (1,000,000 rows, 30s at most) ...
`
	o.exec(t, "CREATE TABLE unpublished (id int)")
	o.run(t, "", "advance", "--to", "now").says(t, exitUsage, "", advance+"0 rows would be skipped.\ncdcpub: nothing was done: there is no terminal to ask on; give --yes if this is what you want\n")
	o.insert(t, "a", 1200)
	o.insert(t, "b", 34)
	const refused = "cdcpub: slot shop was not advanced: rows would be skipped, or may be; let the publisher publish them, or give --skip-rows if they shall never be published through this slot\n"
	o.run(t, "", "advance", "--to", "now", "--yes").says(t, exitRefused, "",
		advance+"1,234 rows in 2 transactions would be skipped (public.outbox: 1,234).\n"+refused)
	o.run(t, "", "advance", "--to", "now", "--yes", "--count-limit", "1000").says(t, exitRefused, "",
		strings.Replace(advance, "1,000,000", "1,000", 1)+"At least 1,000 rows in 1 transaction would be skipped (public.outbox: 1,000): stopped at the limit of 1000 rows.\n"+refused)
	o.run(t, "", "advance", "--to", "now", "--yes", "-o", "json").object(t, exitRefused, map[string]any{
		"action": "advance", "done": false, "from": begin, "skipped": map[string]any{"rows": 1234, "transactions": 2, "tables": []any{map[string]any{"table": "public.outbox", "rows": 1234}}}})
	if now := o.confirmed(t, "shop"); now != begin {
		t.Fatalf("a refused advance moved the slot from %s to %s", begin, now)
	}
	o.run(t, "", "advance", "--to", "now", "--yes", "--skip-rows").says(t, exitDone, "advanced slot shop: confirmed_flush_lsn is LSN\n",
		advance+"1,234 rows in 2 transactions would be skipped (public.outbox: 1,234).\n")
	o.run(t, "", "advance", "--to", "now", "--yes").expect(t, exitDone, []string{"slot shop"}, nil)
	o.run(t, "", "advance", "--to", begin, "--yes").expect(t, exitRefused, nil, []string{"cannot go to " + begin, "cannot go back"})

	o.run(t, "", "create", "other", "--yes")
	o.insert(t, "c", 1)
	o.run(t, "", "advance", "other", "--to", "now", "--yes").expect(t, exitUsage, nil, []string{"which rows slot other would skip depends on the publication", "--publication", "--skip-rows"})
	o.run(t, "", "advance", "other", "--to", "now", "--yes", "--publication", "shop").expect(t, exitRefused, nil, []string{"1 row in 1 transaction would be skipped"})
	o.run(t, "", "advance", "other", "--to", "now", "--yes", "--skip-rows").expect(t, exitDone, []string{"advanced slot other"}, []string{"was not counted"})

	for _, wrong := range []string{"soon", "0/1x", "", "16B374D848"} {
		o.run(t, "", "advance", "--to", wrong).expect(t, exitUsage, nil, []string{"--to"})
	}
	o.run(t, "", "advance").expect(t, exitUsage, nil, []string{"--to"})
	o.run(t, "", "advance", "--to", "now", "--count-limit", "0").expect(t, exitUsage, nil, []string{"--count-limit"})
}

func TestSlotDrain(t *testing.T) {
	o := newOutbox(t, harness.Postgres(t, ""), "shop")
	const drain = `
Waits until everything that is committed now is confirmed by whoever reads slot shop at SERVER (5m at most).
It does not touch the slot; it commits one empty transaction. What is committed later is not waited for: stop the writers first if nothing may be missing.
`
	const nobody = "cdcpub: nobody is connected to slot shop, and the N bytes of WAL from LSN to LSN are not confirmed: there may be rows in them that are not published; start the publisher and try again, or wait for it with --wait\n"
	o.exec(t, "CREATE TABLE unpublished (id int)")
	o.run(t, "", "drain", "--yes").says(t, exitDone, `
everything committed before TIME (LSN LSN) is confirmed: nobody is connected, but the N bytes of WAL after confirmed_flush_lsn LSN hold no row that is published
`, drain)
	o.insert(t, "a", 3)
	o.run(t, "", "drain", "--yes").says(t, exitFailure, "", drain+"3 rows in 1 transaction are not confirmed (public.outbox: 3).\n"+nobody)
	o.run(t, "", "drain", "--yes", "-o", "json").object(t, exitFailure, map[string]any{"action": "drain", "done": false, "holder": nil,
		"unconfirmed": map[string]any{"rows": 3, "transactions": 1, "tables": []any{map[string]any{"table": "public.outbox", "rows": 3}}}})
	o.run(t, "", "create", "other", "--yes")
	o.insert(t, "b", 3)
	o.run(t, "", "drain", "other", "--yes").says(t, exitFailure, "", strings.Replace(drain+nobody, "slot shop", "slot other", 2))
	o.run(t, "", "drain", "--yes", "--wait", "--timeout", "300ms").expect(t, exitFailure, nil,
		[]string{"nobody is connected to slot shop\n", "of WAL left", "slot shop is not drained (waited for 300ms)"})
	// It changes nothing, so it does not ask.
	o.run(t, "", "drain").expect(t, exitFailure, nil, []string{"6 rows in 2 transactions are not confirmed"})

	o.consume(t, "cdcpub")
	drained := o.run(t, "", "drain", "--yes")
	drained.expect(t, exitDone, []string{"everything committed before 20", " UTC (LSN ", ") is confirmed; confirmed_flush_lsn is "}, []string{"Waits until"})
	o.run(t, "", "drain", "--yes", "-o", "json").object(t, exitDone, map[string]any{"action": "drain", "done": true, "remaining_bytes": 0})
}

func TestSlotTakeover(t *testing.T) {
	o := newOutbox(t, harness.Postgres(t, ""), "shop")
	o.run(t, "", "takeover").says(t, exitDone, "nobody holds slot shop: it is free\n", "")
	o.consume(t, "cdcpub")
	const holder = `The holder of slot shop at SERVER will be ended: pid PID, application_name %q, user postgres, from 127.0.0.1, connected since TIME.
What it has published but not confirmed (after LSN LSN) is published again by the next one: repeats, never losses.
`
	ours := fmt.Sprintf(holder, "cdcpub") + "If it is blocked because a topic was created again or its partition count changed, a standby accepts the topic as it is; without a standby it takes the slot back and stays blocked: restart it instead.\nIf it is not stopped, it connects again after 3 s: a standby has the slot by then, and if there is none, it takes the slot back.\n"
	o.run(t, "", "takeover").says(t, exitUsage, "", ours+"cdcpub: nothing was done: there is no terminal to ask on; give --yes if this is what you want\n")
	o.run(t, "", "takeover", "--yes").says(t, exitDone, "ended pid PID; slot shop is free\n", ours)

	o.consume(t, "Debezium Streaming")
	o.run(t, "", "takeover", "--yes").says(t, exitRefused, "", `
cdcpub: slot shop is held by pid PID, application_name "Debezium Streaming", user postgres, from 127.0.0.1, connected since TIME, which is not a cdcpub (application_name "cdcpub"); if that process is to lose the slot, give its application_name: --from "Debezium Streaming"
`)
	o.run(t, "", "takeover", "--yes", "--from", "Debezium").expect(t, exitRefused, nil, []string{`not a cdcpub (application_name "cdcpub" or "Debezium")`})
	taken := o.run(t, "", "takeover", "--yes", "--from", "Debezium Streaming", "-o", "json")
	taken.object(t, exitDone, map[string]any{"action": "takeover", "done": true, "holder": nil})
	if !strings.Contains(taken.stderr, "Kafka Connect starts it again") || !strings.Contains(taken.stdout, `"application_name": "Debezium Streaming"`) {
		t.Errorf("%s%s", taken.stdout, taken.stderr)
	}
}

func TestSlotActionsBehindAnOpenTransactionAndWithoutRights(t *testing.T) {
	o := newOutbox(t, harness.Postgres(t, ""), "shop")
	conn, err := pgx.Connect(t.Context(), o.server.URL(o.database)+"&application_name=import")
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(conn)
	if _, err := conn.Exec(t.Context(), "BEGIN; CREATE TABLE imported (id int)"); err != nil {
		t.Fatal(err)
	}
	o.run(t, "", "create", "late", "--yes", "--timeout", "300ms").expect(t, exitFailure, nil,
		[]string{"create slot late: not finished within 300ms", fmt.Sprintf("pid %d (user postgres, application_name 'import'", conn.PgConn().PID()), "--timeout"})
	if _, err := conn.Exec(t.Context(), "ROLLBACK; CREATE ROLE plain LOGIN"); err != nil {
		t.Fatal(err)
	}
	url := strings.Replace(o.server.URL(o.database), "postgres@", "plain@", 1)
	for _, args := range [][]string{{"create", "late"}, {"drop"}, {"advance", "--to", "now", "--skip-rows"}} {
		o.run(t, "", append(args, "--yes", "--url", url)...).expect(t, exitRefused, nil, []string{"slot", "not allowed", `ALTER ROLE "plain" REPLICATION`})
	}
	o.consume(t, "cdcpub")
	o.run(t, "", "takeover", "--yes", "--url", url).expect(t, exitRefused, nil, []string{"belongs to a superuser"})
	none := execute(t, nil, "slot", "drop", "--yes", "--url", "postgres://u@127.0.0.1:1/x")
	none.expect(t, exitUsage, nil, []string{"no slot is named"})
	o.run(t, "", "drop", "--yes", "--url", "postgres://postgres@127.0.0.1:1/x").expect(t, exitFailure, nil, []string{"PostgreSQL at 127.0.0.1:1/x"})
}

func TestOnlyATerminalCanBeAsked(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	for name, file := range map[string]*os.File{"/dev/null": null, "a pipe": read} {
		if terminal(file) != nil {
			t.Errorf("%s is taken for a terminal", name)
		}
	}
}
