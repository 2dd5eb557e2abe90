package docs_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

// patience bounds every wait. It is long: a slow machine is no failure.
const patience = 2 * time.Minute

const (
	startSection = "Start on your own servers"
	readmeTopic  = "outbox.event.order"
)

// What the README shows as `go run ./cmd/cdcpub ...` runs from the repository as
// it stands, with Go and nothing else.
func TestReadmeRunsFromSource(t *testing.T) {
	ran := 0
	for _, c := range parse(read(t, "README.md")).commands() {
		if !c.built || c.span {
			continue
		}
		ran++
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
			defer cancel()
			run := exec.CommandContext(ctx, "go", append([]string{"run", "./cmd/cdcpub"}, c.args...)...)
			run.Dir = repository
			if out, err := run.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", c.text, err, out)
			}
		})
	}
	if ran == 0 {
		t.Error("the README shows nothing to run from source")
	}
}

// The README's smallest configuration and its commands, in its order, on real
// servers: only addresses and the owner's name are replaced. The service comes
// as the role of the configuration, which has no right but REPLICATION.
func TestReadmeWalk(t *testing.T) {
	w := newWalk(t)
	for _, c := range w.steps() {
		w.step(c)
	}
	w.stop()
	t.Logf("done: %q", w.done)
	for _, needed := range []string{"init", "check", "config print", "run", "slot status"} {
		if !slices.ContainsFunc(w.done, func(done string) bool { return strings.HasPrefix(done, needed) }) {
			t.Errorf("the README does not show cdcpub %s where this test looks", needed)
		}
	}
}

type walk struct {
	*testing.T
	binary string
	// url is the administrator's.
	url       string
	cluster   *harness.Cluster
	config    string
	env       []string
	publisher *harness.Process
	// done are the commands that were run.
	done []string
}

func newWalk(t *testing.T) *walk {
	w := &walk{T: t, binary: shared.Binary(t, harness.BuildOptions{}), cluster: shared.Kafka(t, harness.KafkaOptions{})}
	server := shared.Postgres(t, "")
	w.url = server.URL(harness.Database(t, server))
	w.config = smallestConfiguration(t)
	service := strings.Replace(w.url, "postgres://postgres@", "postgres://cdcpub@", 1)
	if service == w.url {
		t.Fatalf("another administrator than expected: %s", w.url)
	}
	w.env = []string{"CDCPUB_POSTGRES_URL=" + service, "CDCPUB_KAFKA_BROKERS=" + strings.Join(w.cluster.Brokers(), ","), "CDCPUB_HTTP_LISTEN=127.0.0.1:0"}
	return w
}

// smallestConfiguration is the first block of the README that configures.
func smallestConfiguration(t *testing.T) string {
	for _, b := range parse(read(t, "README.md")).blocks {
		if strings.HasPrefix(b.text, "postgres:\n") {
			return b.text
		}
	}
	t.Fatal("the README has no block that begins with postgres:")
	return ""
}

// steps are all commands of the section that leads to the first event, and the
// blocks after it.
func (w *walk) steps() []command {
	readme := read(w.T, "README.md")
	_, start, found := strings.Cut(readme, "\n## "+startSection+"\n")
	if !found {
		w.Fatalf("the README has no section %q", startSection)
	}
	section, rest, _ := strings.Cut(start, "\n## ")
	steps := parse(section).commands()
	// In the text `run` may come first; it needs what the others make.
	slices.SortStableFunc(steps, func(a, b command) int { return stage(a) - stage(b) })
	for _, c := range parse("## " + rest).commands() {
		if !c.span {
			steps = append(steps, c)
		}
	}
	return steps
}

// stage puts what prepares before what publishes.
func stage(c command) int {
	if i := slices.Index([]string{"config", "init", "check", "run"}, c.args[0]); i >= 0 {
		return i
	}
	return 4
}

func (w *walk) step(c command) {
	args := slices.Clone(c.args)
	for i, arg := range args {
		if arg == "cdcpub.yaml" {
			args[i] = "{config}"
		}
		if name, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(value, "postgres://") {
			args[i] = name + "=" + w.url
		} else if strings.HasPrefix(arg, "postgres://") {
			args[i] = w.url
		}
	}
	line := strings.Join(c.args, " ")
	if c.built || slices.Contains(w.done, line) {
		return
	}
	switch {
	case c.args[0] == "run":
		if w.publisher == nil {
			w.publish(args)
		}
	case slices.Contains([]string{"config", "init", "check", "version"}, c.args[0]):
		w.expect(args, 0)
	case strings.HasPrefix(line, "slot list"), strings.HasPrefix(line, "slot drain"):
		w.expect(args, 0)
	case strings.HasPrefix(line, "slot status"):
		w.expect(args, 0, 1) // a warning about this server is none about the README
	default:
		return // that it parses is shown elsewhere; it would destroy, or wait
	}
	w.done = append(w.done, line)
}

// expect runs a command in a directory with the README's configuration.
func (w *walk) expect(args []string, codes ...int) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	process := w.start(args)
	code, err := process.Wait(ctx)
	if err != nil || !slices.Contains(codes, code) {
		w.Fatalf("cdcpub %s: exit %d, %v, want one of %v\n%s%s", strings.Join(args, " "), code, err, codes, process.Stdout(), process.Stderr())
	}
}

func (w *walk) start(args []string) *harness.Process {
	w.Helper()
	dir := w.TempDir()
	path := filepath.Join(dir, "cdcpub.yaml")
	if err := os.WriteFile(path, []byte(w.config), 0o600); err != nil {
		w.Fatal(err)
	}
	for i := range args {
		if args[i] == "{config}" {
			args[i] = path
		}
	}
	return harness.StartProcess(w.T, harness.ProcessOptions{Binary: w.binary, Args: args, Env: append(slices.Clone(w.env), "CDCPUB_CONFIG="+path)})
}

// publish starts the publisher and sees one event through.
func (w *walk) publish(args []string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	if there, err := harness.Partitions(ctx, w.cluster.Brokers(), readmeTopic); err != nil || there[readmeTopic] == 0 {
		if err := w.cluster.CreateTopic(ctx, readmeTopic, 3, 1, nil); err != nil {
			w.Fatal(err)
		}
	}
	w.publisher = w.start(args)
	conn, err := pgx.Connect(ctx, w.url)
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, `INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type, payload)
		VALUES ('order', '42', 1, 'OrderPlaced', '{"total": 1.10}')`); err != nil {
		w.Fatal(err)
	}
	var got verify.Record
	if err := harness.Follow(ctx, w.cluster.Brokers(), []string{readmeTopic}, func(r verify.Record) bool { got = r; return false }); err != nil {
		w.Fatalf("no event arrived: %v", err)
	}
	if string(got.Key) != "42" || string(got.Value) != `{"total": 1.10}` {
		w.Errorf("arrived: %+v", got)
	}
}

// stop ends the publisher as a supervisor does.
func (w *walk) stop() {
	if w.publisher == nil {
		return
	}
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	if err := w.publisher.Signal(syscall.SIGTERM); err != nil {
		w.Fatal(err)
	}
	if code, err := w.publisher.Wait(ctx); code != 0 || err != nil {
		w.Errorf("cdcpub run: exit %d, %v", code, err)
	}
}
