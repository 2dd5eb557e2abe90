package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/internal/slotview"
	"github.com/cdcpub/cdcpub/slotmon"
	"github.com/cdcpub/cdcpub/test/harness"
)

// outbox is a database with what `cdcpub init` creates in it.
type outbox struct {
	server   *pgserver.Server
	database string
	slot     string
}

func newOutbox(t *testing.T, server *pgserver.Server, slot string) *outbox {
	t.Helper()
	o := &outbox{server: server, database: harness.Database(t, server), slot: slot}
	if got := execute(t, nil, "init", "-c", o.config(t, "")); got.code != exitDone {
		t.Fatalf("init: %+v", got)
	}
	return o
}

// config is a configuration file for it, with more groups appended.
func (o *outbox) config(t *testing.T, more string) string {
	t.Helper()
	if !strings.Contains(more, "http:") {
		more += "\nhttp: {listen: off}"
	}
	return file(t, fmt.Sprintf(`postgres: {url: '%s', slot: %s, publication: %s}
outbox: {tables: [public.outbox]}
kafka: {brokers: [127.0.0.1:1]}
%s
`, o.server.URL(o.database), o.slot, o.slot, more))
}

func (o *outbox) exec(t *testing.T, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), o.server.URL(o.database))
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(conn)
	for _, statement := range statements {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// hold reads the slot until the test ends, and returns its walsender's PID.
func (o *outbox) hold(t *testing.T) uint32 {
	t.Helper()
	settings, err := pgconn.ParseConfig(o.server.URL(o.database))
	if err != nil {
		t.Fatal(err)
	}
	settings.RuntimeParams["replication"] = "database"
	settings.RuntimeParams["application_name"] = "cdcpub"
	conn, err := pgconn.ConnectConfig(t.Context(), settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	})
	err = pglogrepl.StartReplication(t.Context(), conn, o.slot, 0, pglogrepl.StartReplicationOptions{
		PluginArgs: []string{"proto_version '1'", fmt.Sprintf(`publication_names '"%s"'`, o.slot)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return conn.PID()
}

// status is what slot status says as JSON, which holds nothing unknown.
func (o outcome) status(t *testing.T) *slotview.Status {
	t.Helper()
	var status slotview.Status
	decoder := json.NewDecoder(strings.NewReader(o.stdout))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&status); err != nil || decoder.More() {
		t.Fatalf("not one JSON object: %v\n%s%s", err, o.stdout, o.stderr)
	}
	if o.code != int(status.Verdict) {
		t.Errorf("exit %d with the verdict %s", o.code, status.Verdict)
	}
	return &status
}

func ids(s *slotview.Status) string {
	var all []string
	for _, finding := range s.Report.Findings {
		all = append(all, fmt.Sprintf("%s %s", finding.Severity, finding.ID))
	}
	return strings.Join(all, ", ")
}

func TestSlotViewsOfALiveServer(t *testing.T) {
	server := harness.Postgres(t, "", "max_slot_wal_keep_size=1GB")
	o := newOutbox(t, server, "shop")
	config := o.config(t, "")

	t.Run("a slot that nobody reads", func(t *testing.T) {
		got := execute(t, nil, "slot", "status", "-c", config, "--sample", "100ms")
		got.expect(t, exitDone, []string{"OK        slot shop on 127.0.0.1:", "Holder           nobody", "Retained WAL", "shop publishes every configured table"}, nil)
	})
	t.Run("inactive beyond its limit", func(t *testing.T) {
		for limits, want := range map[string]slotmon.Severity{"{warning: 50ms, critical: 1h}": slotmon.Warning, "{warning: 1ms, critical: 50ms}": slotmon.Critical} {
			status := execute(t, nil, "slot", "status", "-o", "json", "--sample", "200ms", "-c", o.config(t, "slot_monitor: {slots: {shop: {inactive: "+limits+"}}}")).status(t)
			if status.Verdict != want || ids(status) != want.String()+" slot_inactive" || status.Report.Culprit == "" {
				t.Errorf("%s: %s, %s", limits, status.Verdict, ids(status))
			}
		}
	})

	pid := o.hold(t)
	t.Run("a slot that is read", func(t *testing.T) {
		status := execute(t, nil, "slot", "status", "-c", config, "-o", "json", "--sample", "100ms").status(t)
		holder := status.Slot.Holder
		if status.Verdict != slotmon.OK || holder == nil || holder.PID != int(pid) || holder.ApplicationName != "cdcpub" {
			t.Errorf("%s %+v", status.Verdict, holder)
		}
		if status.Name != "shop" || status.Server.Database != o.database || status.SampleSeconds == nil || *status.SampleSeconds < 0.1 || status.Report.Trend.WALRate == nil {
			t.Errorf("%+v", status)
		}
		if status.InactiveSeconds != nil || status.DecodeBacklogBytes == nil || status.Publication == nil || status.Publisher != nil {
			t.Errorf("%+v", status)
		}
	})
	t.Run("without rates", func(t *testing.T) {
		status := execute(t, nil, "slot", "status", "-c", config, "-o", "json", "--sample", "0s").status(t)
		if status.SampleSeconds != nil || status.Report.Trend.WALRate != nil {
			t.Errorf("%+v", status.Report.Trend)
		}
	})
	t.Run("the plugin line", func(t *testing.T) {
		got := execute(t, nil, "slot", "status", "-c", config, "-o", "nagios", "--sample", "100ms")
		got.expect(t, exitDone, []string{"CDCPUB SLOT OK - shop: retains ", fmt.Sprintf("held by PID %d cdcpub | retained=", pid), " lag=", " time_to_lost="}, nil)
		if strings.Count(got.stdout, "\n") != 1 || strings.Count(got.stdout, "|") != 1 {
			t.Errorf("%q", got.stdout)
		}
	})
	t.Run("the list", func(t *testing.T) {
		o.exec(t, "SELECT pg_create_physical_replication_slot('standby_1')")
		got := execute(t, nil, "slot", "list", "-c", config)
		got.expect(t, exitDone, []string{"SLOT ", "VERDICT\n", "shop ", fmt.Sprintf("%d cdcpub", pid), "standby_1 ", "physical", "OK\n"}, nil)
		var list slotview.List
		decoder := json.NewDecoder(strings.NewReader(execute(t, nil, "slot", "list", "-c", config, "-o", "json").stdout))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&list); err != nil || len(list.Slots) != 2 || !list.Slots[0].Ours || list.Slots[1].Ours {
			t.Errorf("%v %+v", err, list)
		}
	})
	t.Run("no configuration, only --url", func(t *testing.T) {
		url := server.URL("postgres")
		execute(t, nil, "slot", "list", "--url", url).expect(t, exitDone, []string{"shop ", o.database}, nil)
		execute(t, nil, "slot", "status", "shop", "--url", url, "--sample", "0s").expect(t, exitDone, []string{"OK        slot shop on 127.0.0.1:"}, nil)
		execute(t, nil, "slot", "status", "--url", url).expect(t, exitUnknown, []string{"UNKNOWN", "no slot is named", "slot list"}, nil)
	})
	t.Run("a name that is no slot's", func(t *testing.T) {
		execute(t, nil, "slot", "status", "shp", "-c", config).expect(t, exitUnknown,
			[]string{"UNKNOWN   slot shp", "slot_missing: does not exist", "Nearest names    shop, standby_1"}, nil)
	})
	t.Run("the configured slot is missing", func(t *testing.T) {
		other := *o
		other.slot = "gone"
		status := execute(t, nil, "slot", "status", "-c", other.config(t, ""), "-o", "json").status(t)
		if status.Verdict != slotmon.Critical || ids(status) != "critical slot_missing, critical publication_missing" {
			t.Errorf("%s: %s", status.Verdict, ids(status))
		}
	})
	t.Run("a role without rights", func(t *testing.T) {
		o.exec(t, "CREATE ROLE watcher LOGIN")
		url := strings.Replace(server.URL(o.database), "postgres@", "watcher@", 1)
		for _, command := range [][]string{{"slot", "list"}, {"slot", "status", "shop", "--sample", "0s"}} {
			execute(t, nil, append(command, "--url", url)...).expect(t, exitDone,
				[]string{fmt.Sprintf("%d cdcpub", pid), "Not visible", `GRANT pg_monitor TO "watcher"`}, nil)
		}
	})
	t.Run("standbys are asked", func(t *testing.T) {
		loaded := loadSlots(t, fmt.Sprintf("postgres: {url: '%s'}\nslot_monitor: {standbys: ['%s', 'postgres://127.0.0.1:1/shop']}\n", server.URL("postgres"), server.URL(o.database)))
		servers, err := standbys(loaded)
		if err != nil {
			t.Fatal(err)
		}
		// The first one is the primary itself, which keeps no copy for a failover.
		answers := askStandbys(t.Context(), servers, &slotmon.Sample{}, "shop")
		if len(answers) != 2 || !strings.Contains(answers[0].Not, "not a standby") || answers[0].Slot != nil || answers[0].Unreachable != "" || !strings.HasSuffix(answers[0].Address, "/"+o.database) {
			t.Errorf("%+v", answers)
		}
		if answers[1].Unreachable != "connection refused: nothing listens there; start PostgreSQL, or correct host and port in slot_monitor.standbys" || answers[1].Slot != nil || answers[1].Address != "127.0.0.1:1/shop" {
			t.Errorf("%+v", answers[1])
		}
	})
	t.Run("a reader that is behind is given time to report", func(t *testing.T) {
		for range 3 {
			o.exec(t, "SELECT pg_logical_emit_message(false, 'x', repeat('x', 20000000))")
		}
		status := execute(t, nil, "slot", "status", "-c", config, "-o", "json").status(t)
		if status.SampleSeconds == nil || *status.SampleSeconds < reportInterval.Seconds() || status.Report.Trend.RetainedRate == nil {
			t.Errorf("%+v", status)
		}
	})
	t.Run("no connection stays", func(t *testing.T) {
		conn, err := pgx.Connect(t.Context(), server.URL("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		defer closeConn(conn)
		// A backend ends a moment after its client has gone.
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for n := 1; n > 0; {
			err := conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity, pg_sleep(0.02) WHERE application_name = $1", slotApplication).Scan(&n)
			if err != nil {
				t.Fatalf("%d connections stay: %v", n, err)
			}
		}
	})
}

// The publisher's own word comes into the verdict, if it is that slot's.
func TestSlotStatusAsksThePublisher(t *testing.T) {
	o := newOutbox(t, harness.Postgres(t, ""), "shop")
	o.hold(t)
	ask := func(answer string, args ...string) outcome {
		publisher := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }))
		defer publisher.Close()
		config := o.config(t, "http: {advertise: '"+publisher.URL+"'}")
		return execute(t, nil, append([]string{"slot", "status", "--sample", "0s", "-c", config}, args...)...)
	}
	stalled := fmt.Sprintf(`{"state": "streaming", "role": "active", "slot": "shop", "stall": {"cause": "topic a partition 3: no answer", "since": %q}}`,
		time.Now().Add(-time.Hour).Format(time.RFC3339))
	ask(stalled).expect(t, int(slotmon.Critical), []string{"CRITICAL", "publisher_stalled", "topic a partition 3: no answer", "Culprit", "http://127.0.0.1:"}, nil)
	ask(`{"state": "streaming", "role": "active", "slot": "shop"}`).expect(t, exitDone, []string{": streaming, active, not stalled"}, nil)
	ask(`{"state": "streaming", "role": "active", "slot": "other"}`).expect(t, exitDone, []string{"did not answer", "publishes from slot", "other"}, nil)
	o.exec(t, "SELECT pg_create_logical_replication_slot('another', 'test_decoding')")
	if got := ask(stalled, "another"); strings.Contains(got.stdout, "topic a") || got.code != exitDone {
		t.Errorf("another slot's publisher was asked: %+v", got)
	}
}

func TestSlotStatusOfALostSlot(t *testing.T) {
	o := newOutbox(t, harness.Postgres(t, "", "max_slot_wal_keep_size=16MB", "max_wal_size=1GB", "checkpoint_timeout=1h"), "shop")
	write := []string{"SELECT pg_logical_emit_message(false, 'x', repeat('x', 1000000))", "SELECT pg_switch_wal()"}
	config := o.config(t, "")
	for range 4 {
		o.exec(t, write...)
	}
	execute(t, nil, "slot", "status", "-c", config, "--sample", "100ms").expect(t, int(slotmon.Critical), []string{"slot_unreserved", "unreserved; safe_wal_size -", "Time to lost     any moment", "Culprit: nobody"}, nil)
	o.exec(t, "CHECKPOINT")
	execute(t, nil, "slot", "status", "-c", config, "--sample", "100ms").expect(t, int(slotmon.Critical), []string{"slot_lost", "cdcpub slot drop shop", "Retained WAL     none: the slot is lost", "Time to lost     it is lost"}, nil)
	execute(t, nil, "slot", "status", "-c", config, "-o", "nagios", "--sample", "0s").expect(t, int(slotmon.Critical), []string{"CDCPUB SLOT CRITICAL - shop: ", "retained=U;"}, nil)
	execute(t, nil, "slot", "list", "-c", config).expect(t, exitDone, []string{"lost", "CRITICAL"}, nil)
}

func TestSlotViewsWithoutAServer(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	url := "postgres://cdcpub:horse@" + gone.Addr().String() + "/shop"
	config := file(t, strings.Replace(smallest, "postgres://cdcpub:horse@127.0.0.1:1/shop", url, 1))
	for _, args := range [][]string{{"-c", config}, {"cdcpub", "--url", url}, {"cdcpub", "--url", url, "-c", config}} {
		status := append([]string{"slot", "status"}, args...)
		execute(t, nil, status...).expect(t, exitUnknown, []string{"UNKNOWN   slot cdcpub on " + gone.Addr().String() + "/shop", "server_unreachable: cannot be looked at: connection refused"}, nil)
		execute(t, nil, append(status, "-o", "nagios")...).expect(t, exitUnknown, []string{"CDCPUB SLOT UNKNOWN - cdcpub: cannot be looked at: connection refused: nothing listens there; start PostgreSQL, or correct host and port in "}, nil)
		if ids := ids(execute(t, nil, append(status, "-o", "json")...).status(t)); ids != "unknown server_unreachable" {
			t.Error(ids)
		}
	}
	execute(t, nil, "slot", "list", "-c", config).expect(t, exitFailure, nil, []string{"cdcpub: PostgreSQL at " + gone.Addr().String() + "/shop: connection refused: nothing listens there; start PostgreSQL, or correct host and port in postgres.url\n"})
}

// A check that cannot look is unknown; 2 would be critical, and 1 a warning.
func TestSlotStatusIsUnknownWhateverKeepsItFromLooking(t *testing.T) {
	bad := file(t, "postgres: {url: 'postgres://cdcpub:horse@localhost/shop', slot: UPPER}\nslot_monitor: {limits: {inactive: {warning: 10m, critical: 1m}, retained_wal: {warning: 2GiB, critical: 1GiB}}}\n")
	unreadable := file(t, strings.Replace(smallest, "cdcpub:horse@127.0.0.1:1/shop', ", "cdcpub@127.0.0.1:1/shop', password_file: /nowhere/secret, ", 1))
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"contradicting thresholds":   {[]string{"-c", bad}, []string{"UNKNOWN", "slot_monitor.limits.inactive", "slot_monitor.limits.retained_wal", "UPPER"}},
		"the same for a plugin":      {[]string{"-c", bad, "-o", "nagios"}, []string{"CDCPUB SLOT UNKNOWN - ", "slot_monitor.limits.inactive", "slot_monitor.limits.retained_wal"}},
		"no file":                    {nil, []string{"UNKNOWN", "cdcpub.yaml", "--url"}},
		"a file that was named":      {[]string{"-c", "/nowhere.yaml", "--url", "postgres://localhost/x"}, []string{"UNKNOWN", "/nowhere.yaml"}},
		"no password":                {[]string{"-c", unreadable}, []string{"UNKNOWN", "password_file", "/nowhere/secret"}},
		"a URL that is none":         {[]string{"x", "--url", "postgres://cdcpub:horse@localhost/x?sslmode=sometimes"}, []string{"UNKNOWN", "--url: has an unknown sslmode"}},
		"a negative interval":        {[]string{"x", "--sample=-1s"}, []string{"UNKNOWN", "--sample"}},
		"an interval without an end": {[]string{"x", "--sample=2h"}, []string{"UNKNOWN", "--sample"}},
		"no interval":                {[]string{"x", "--sample=soon"}, []string{"CDCPUB SLOT UNKNOWN - ", "--sample"}},
		"an unknown flag":            {[]string{"x", "--fast"}, []string{"CDCPUB SLOT UNKNOWN - ", "--fast"}},
		"an unknown output":          {[]string{"x", "-o", "xml"}, []string{"CDCPUB SLOT UNKNOWN - ", "xml"}},
		"too many arguments":         {[]string{"x", "y"}, []string{"CDCPUB SLOT UNKNOWN - ", "y"}},
	} {
		t.Run(name, func(t *testing.T) {
			execute(t, nil, append([]string{"slot", "status"}, c.args...)...).expect(t, exitUnknown, c.want, nil)
		})
	}
	execute(t, nil, "slot", "list", "-c", bad).expect(t, exitUsage, nil, []string{"UPPER"})
	execute(t, nil, "slot", "list", "--fast").expect(t, exitUsage, nil, []string{"--fast"})
}

// What accepts connections and never answers is a server that cannot be asked.
func TestSlotViewsDoNotWaitForEver(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	config := file(t, strings.Replace(smallest, "127.0.0.1:1/", silent.Addr().String()+"/", 1)+"slot_monitor: {timeout: 100ms}\n")
	execute(t, nil, "slot", "status", "-c", config).expect(t, exitUnknown, []string{"no answer within 100ms"}, nil)
	execute(t, nil, "slot", "list", "-c", config).expect(t, exitFailure, nil, []string{"no answer within 100ms"})

	signals := make(chan os.Signal, 1)
	signals <- os.Interrupt
	var stdout, stderr bytes.Buffer
	patient := file(t, strings.Replace(smallest, "127.0.0.1:1/", silent.Addr().String()+"/", 1)+"slot_monitor: {timeout: 5m}\n")
	code := run(t.Context(), process{args: []string{"slot", "status", "-c", patient}, stdout: &stdout, stderr: &stderr, signals: signals})
	outcome{code, stdout.String(), stderr.String()}.expect(t, exitUnknown, []string{"UNKNOWN", "ended by interrupt"}, nil)
}

func TestServerErrorsAreOneLineWithACure(t *testing.T) {
	s := &sqlServer{name: "db:5432/shop", user: "o'neil"}
	for code, want := range map[string]string{
		"42501": `GRANT pg_monitor TO "o'neil"`, "57014": "slot_monitor.timeout", "53300": "too\n",
	} {
		err := s.explain(t.Context(), fmt.Errorf("look: %w", &pgconn.PgError{Code: code, Message: "too\nmany"}))
		var failed *serverError
		var refused *pgconn.PgError
		if !errors.As(err, &failed) || !errors.As(err, &refused) {
			t.Fatalf("%T", err)
		}
		text := err.Error()
		if !strings.HasPrefix(text, "PostgreSQL at db:5432/shop: too many (SQLSTATE "+code+")") || strings.Contains(text, "\n") || !strings.Contains(text+"too\n", want) {
			t.Errorf("%s: %q", code, text)
		}
	}
}
