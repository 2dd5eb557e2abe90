//go:build !release

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"

	"github.com/cdcpub/cdcpub/internal/demo"
	"github.com/cdcpub/cdcpub/internal/pgserver"
)

// runDemo runs the command in this process.
func runDemo(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, notes bytes.Buffer
	code = run(t.Context(), process{args: append([]string{"demo"}, args...), stdout: &out, stderr: &notes, signals: make(chan os.Signal)})
	return code, out.String(), notes.String()
}

func TestDemoProvesThreeHundredEvents(t *testing.T) {
	running := goleak.IgnoreCurrent()
	dir := temporaryFiles(t)
	code, stdout, stderr := runDemo(t, "--events", "300", "--rate", "0", "-o", "json")
	if code != exitDone {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	var s demo.Summary
	decoder := json.NewDecoder(strings.NewReader(stdout))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil || decoder.More() {
		t.Fatalf("not one JSON object with the known keys: %v\n%s", err, stdout)
	}
	if !s.OK || s.Interrupted || s.Events != 300 || s.Records != 300 || s.Partitions != 3 || s.Aggregates < 50 {
		t.Errorf("%+v", s)
	}
	if s.Lost+s.OutOfOrder+s.Repeated+s.Unconfirmed != 0 || s.ConfirmedLSN == "" || s.ConfirmedSamples == 0 {
		t.Errorf("%+v", s)
	}
	if s.EventsPerSecond <= 0 || s.P50 <= 0 || s.P99 < s.P50 {
		t.Errorf("%+v", s)
	}
	nothingLeft(t, dir)
	goleak.VerifyNone(t, running)
}

func TestDemoHelpNamesEveryJSONKey(t *testing.T) {
	encoded, err := json.Marshal(demo.Summary{})
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := json.Unmarshal(encoded, &keys); err != nil {
		t.Fatal(err)
	}
	help := strings.FieldsFunc(demoCommand{}.Help(), func(r rune) bool { return strings.ContainsRune(" ,;.:\n", r) })
	for key := range keys {
		if !slices.Contains(help, key) {
			t.Errorf("%s is not explained", key)
		}
	}
}

func TestDemoRefusesSenselessFlags(t *testing.T) {
	code, stdout, stderr := runDemo(t, "--events=-1", "--rate=-1", "--partitions=0")
	if code != exitUsage || stdout != "" {
		t.Errorf("exit code %d, %q", code, stdout)
	}
	for _, flag := range []string{"--events", "--rate", "--partitions"} {
		if !strings.Contains(stderr, flag) {
			t.Errorf("%s is not named: %s", flag, stderr)
		}
	}
}

func TestDemoExitCodeIsTheVerdict(t *testing.T) {
	failure := errors.New("failure")
	for name, test := range map[string]struct {
		summary *demo.Summary
		err     error
		want    int
	}{
		"held":            {&demo.Summary{OK: true}, nil, exitDone},
		"broken":          {&demo.Summary{}, nil, exitFailure},
		"held, not clean": {&demo.Summary{OK: true}, failure, exitFailure},
		"no verdict":      {nil, failure, exitFailure},
		"leftovers":       {nil, &demo.LeftoversError{}, exitRefused},
		"output closed":   {nil, syscall.EPIPE, exitFailure},
	} {
		p := process{stderr: &bytes.Buffer{}}
		if got := p.report(verdict(test.summary, test.err)); got != test.want {
			t.Errorf("%s: exit code %d, want %d", name, got, test.want)
		}
	}
}

// userServers starts servers as a user would have them.
func userServers(t *testing.T) (url string, brokers []string) {
	t.Helper()
	server, err := pgserver.Start(t.Context(), pgserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return server.URL("postgres"), cluster.ListenAddrs()
}

func query(t *testing.T, url, sql string) (result string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), sql).Scan(&result); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return result
}

const leftovers = `SELECT concat_ws(' ',
	(SELECT string_agg(slot_name, ' ') FROM pg_replication_slots),
	(SELECT string_agg(pubname, ' ') FROM pg_publication),
	(SELECT string_agg(nspname, ' ') FROM pg_namespace WHERE nspname LIKE 'cdcpub%'))`

func TestDemoLeavesNothingOnServersOfTheUser(t *testing.T) {
	url, brokers := userServers(t)
	for range 2 { // the second one finds nothing of the first one
		code, stdout, stderr := runDemo(t, "--events=50", "--rate=0", "--partitions=5", "--postgres", url, "--brokers", strings.Join(brokers, ","))
		if code != exitDone || !strings.Contains(stdout, "cdcpub.demo.orders[") || !strings.Contains(stdout, "Guarantees held") {
			t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
		}
		if left := query(t, url, leftovers); left != "" {
			t.Fatalf("left in PostgreSQL: %s", left)
		}
	}
}

func TestDemoTouchesNothingThatItDidNotCreate(t *testing.T) {
	url, brokers := userServers(t)
	query(t, url, "SELECT pg_create_logical_replication_slot('cdcpub_demo', 'pgoutput')::text")
	for range 2 {
		code, _, stderr := runDemo(t, "--events=50", "--postgres", url, "--brokers", strings.Join(brokers, ","))
		if code != exitRefused || !strings.Contains(stderr, "pg_drop_replication_slot") {
			t.Fatalf("exit code %d\n%s", code, stderr)
		}
		if left := query(t, url, leftovers); left != "cdcpub_demo" {
			t.Fatalf("in PostgreSQL: %q", left)
		}
	}
}
