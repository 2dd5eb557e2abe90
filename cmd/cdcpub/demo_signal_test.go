//go:build !release

package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// temporaryFiles directs temporary files into a directory that every user may
// pass through, as the account of PostgreSQL must.
func temporaryFiles(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "demo-test-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
	return dir
}

// nothingLeft fails the test if there are files in dir, or processes whose
// command line names it.
func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Errorf("left: %s", filepath.Join(dir, file.Name()))
	}
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range processes {
		line, _ := os.ReadFile(path) // it may have ended since
		if bytes.Contains(line, []byte(dir)) {
			t.Errorf("left: %s %s", path, bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
		}
	}
}

// program builds cdcpub, because signals need a process of their own.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cdcpub")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

func TestSignalsEndTheDemoAndLeaveNothing(t *testing.T) {
	// What nohup ignores a child would ignore too.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	path := program(t)
	for name, test := range map[string]struct {
		signals []syscall.Signal
		after   string // the line that is waited for
		want    int
		verdict bool
	}{
		"Ctrl-C":                  {[]syscall.Signal{syscall.SIGINT}, "orders[", exitDone, true},
		"terminated":              {[]syscall.Signal{syscall.SIGTERM}, "orders[", exitDone, true},
		"terminal closed":         {[]syscall.Signal{syscall.SIGHUP}, "orders[", exitDone, true},
		"Ctrl-C twice":            {[]syscall.Signal{syscall.SIGINT, syscall.SIGTERM}, "orders[", exitFailure, false},
		"Ctrl-C during the start": {[]syscall.Signal{syscall.SIGINT}, "initdb", exitFailure, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := temporaryFiles(t)
			var stderr bytes.Buffer
			command := exec.CommandContext(t.Context(), path, "demo", "--rate=50")
			command.Stderr = &stderr
			stdout, err := command.StdoutPipe()
			if err == nil {
				err = command.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			out := bufio.NewReader(stdout)
			first := await(t, dir, out, test.after)
			for _, s := range test.signals {
				if err := command.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
			}
			rest := new(strings.Builder)
			if _, err := out.WriteTo(rest); err != nil {
				t.Fatal(err)
			}
			_ = command.Wait() // the code tells
			if code := command.ProcessState.ExitCode(); code != test.want || strings.Contains(rest.String(), "Guarantees held") != test.verdict {
				t.Errorf("exit code %d, want %d\n%s%s%s", code, test.want, first, rest, &stderr)
			}
			nothingLeft(t, dir)
		})
	}
}

// await returns when the demo is where the signal is wanted.
func await(t *testing.T, dir string, out *bufio.Reader, what string) string {
	t.Helper()
	if what == "initdb" {
		poll := time.NewTicker(5 * time.Millisecond)
		defer poll.Stop()
		for range poll.C { // until the test times out
			if found, _ := filepath.Glob(filepath.Join(dir, "*", "data", "PG_VERSION")); len(found) > 0 {
				return ""
			}
		}
	}
	line, err := out.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, what) {
		t.Errorf("the first line is %q, %v", line, err)
	}
	return line
}

func TestDemoEndsWhenNobodyReadsItsRecords(t *testing.T) {
	path := program(t)
	dir := temporaryFiles(t)
	command := exec.CommandContext(t.Context(), path, "demo", "--rate=0")
	stdout, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Error(err)
	}
	stdout.Close() // as head does
	_ = command.Wait()
	if code := command.ProcessState.ExitCode(); code != exitFailure {
		t.Errorf("exit code %d, want %d", code, exitFailure)
	}
	nothingLeft(t, dir)
}

func TestTwoSignalsLeaveNothingOnServersOfTheUser(t *testing.T) {
	url, brokers := userServers(t)
	command := exec.CommandContext(t.Context(), program(t), "demo", "--rate=0", "--postgres", url, "--brokers", strings.Join(brokers, ","))
	stdout, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(stdout)
	await(t, "", out, "cdcpub.demo.orders[")
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		if err := command.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := out.WriteTo(io.Discard); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	if code := command.ProcessState.ExitCode(); code != exitFailure {
		t.Errorf("exit code %d, want %d", code, exitFailure)
	}
	if left := query(t, url, leftovers); left != "" {
		t.Errorf("left in PostgreSQL: %s", left)
	}
}
