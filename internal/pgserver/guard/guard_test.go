package guard

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func newGuard(t *testing.T, o Options) *Guard {
	t.Helper()
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() }) // a second Close is nothing
	return g
}

func start(t *testing.T, g *Guard, c Command) *Child {
	t.Helper()
	child, err := g.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	return child
}

func wait(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("not in time: %s", what)
	}
}

// forget does to the guard what the death of its owner does.
func forget(t *testing.T, g *Guard) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.orders.Close(); err != nil {
		t.Fatal(err)
	}
	g.children.Close()
	_ = g.cmd.Wait() // it kills its own group at the end
	g.orders = nil
}

func TestChildRunsAsItWasAsked(t *testing.T) {
	g := newGuard(t, Options{})
	dir := t.TempDir()
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	child := start(t, g, Command{
		Path: "/bin/sh", Args: []string{"-c", `echo "$WORD" "$1" "$(pwd -P)" $$; echo problem >&2; exit 3`, "name", "an  argument"},
		Env: []string{"WORD=hello"}, Dir: "/", Output: out,
	})
	wait(t, "the child has ended", child.Gone())
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text))
	if !strings.HasPrefix(string(text), "hello an  argument / ") || !strings.HasSuffix(string(text), "\nproblem\n") {
		t.Errorf("output %q", text)
	}
	if len(fields) < 5 || fields[4] != strconv.Itoa(child.PID()) {
		t.Errorf("the program's pid is %v, PID says %s", fields, strconv.Itoa(child.PID()))
	}
	if code := child.State().ExitCode(); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	if err := child.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("a signal to a child that has ended: %v", err)
	}
}

func TestGoneWaitsForDescendantsAndExitedDoesNot(t *testing.T) {
	g := newGuard(t, Options{})
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	child := start(t, g, Command{Path: "/bin/sh", Args: []string{"-c", `(read -r word <"$0") & exit 0`, fifo}})
	wait(t, "the child itself has ended", child.Exited())
	select {
	case <-child.Gone():
		t.Fatal("Gone although a descendant runs")
	default:
	}
	if err := os.WriteFile(fifo, []byte("end\n"), 0); err != nil {
		t.Fatal(err)
	}
	wait(t, "the descendant has ended", child.Gone())
}

func TestDeathOfTheOwnerEndsChildrenAndRemovesDirectories(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a directory's name")
	if err := os.MkdirAll(filepath.Join(dir, "child"), 0o755); err != nil {
		t.Fatal(err)
	}
	g := newGuard(t, Options{Signal: syscall.SIGTERM, Remove: []string{dir}})
	ended := start(t, g, Command{Path: "/bin/true"})
	wait(t, "the first child has ended", ended.Gone())
	running := start(t, g, Command{Path: "/bin/sleep", Args: []string{"1000"}})
	frozen := start(t, g, Command{Path: "/bin/sleep", Args: []string{"1000"}})
	if err := frozen.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	forget(t, g)
	for _, child := range []*Child{running, frozen} {
		wait(t, "a child has ended", child.Gone())
		if status := child.State().Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
			t.Errorf("a child ended by %v, want SIGTERM", status.Signal())
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}

func TestDeathOfTheOwnerKillsAChildThatDoesNotListen(t *testing.T) {
	g := newGuard(t, Options{Signal: syscall.SIGTERM})
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	child := start(t, g, Command{Path: "/bin/sh", Args: []string{"-c", `trap '' TERM; echo deaf; while :; do sleep 1000; done`}, Output: in})
	in.Close()
	if _, err := out.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	forget(t, g)
	wait(t, "the child has ended, its sleep too", child.Gone())
	if status := child.State().Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Errorf("the child ended by %v, want SIGKILL", status.Signal())
	}
}

func TestKillEndsTheWholeFamily(t *testing.T) {
	g := newGuard(t, Options{})
	child := start(t, g, Command{Path: "/bin/sh", Args: []string{"-c", `sleep 1000 & exit 0`}})
	wait(t, "the child itself has ended", child.Exited())
	for range 2 { // the second finds nobody
		if err := child.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	wait(t, "its descendant has ended", child.Gone())
}

func TestClosedGuardHarmsNothingAndStartsNothing(t *testing.T) {
	dir := t.TempDir()
	g := newGuard(t, Options{Remove: []string{dir}})
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("the directory is gone: %v", err)
	}
	if _, err := g.Start(Command{Path: "/bin/true"}); err == nil {
		t.Error("a closed guard started a child")
	}
}

func TestUnsupportedSignalIsRefused(t *testing.T) {
	if _, err := New(Options{Signal: syscall.SIGUSR1}); err == nil {
		t.Error("no error for SIGUSR1")
	}
}
