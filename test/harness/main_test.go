package harness_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/test/harness"
)

var shared harness.Shared

// ownerVariable makes the test binary an owner of servers that waits for its
// death.
const ownerVariable = "CDCPUB_TEST_OWNER"

func TestMain(m *testing.M) { harness.Main(m, &shared) }

// TestOwner is not a test of its own: it is what the killed process runs.
func TestOwner(t *testing.T) {
	if os.Getenv(ownerVariable) == "" {
		return
	}
	cluster := harness.Kafka(t, harness.KafkaOptions{})
	process := harness.StartProcess(t, harness.ProcessOptions{Binary: "/bin/sleep", Args: []string{"1000"}})
	fmt.Println("owns", cluster.Dir(), process.PID())
	select {}
}

func TestNothingSurvivesATestRunThatIsKilled(t *testing.T) {
	owner := exec.Command(os.Args[0], "-test.run=^TestOwner$")
	owner.Env = append(os.Environ(), ownerVariable+"=1")
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	defer owner.Process.Kill()
	var dir string
	var pid int
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if n, _ := fmt.Sscanf(lines.Text(), "owns %s %d", &dir, &pid); n == 2 {
			break
		}
	}
	if dir == "" {
		t.Fatalf("the owner did not start its servers: %v", lines.Err())
	}
	if processesOf(dir) == "" {
		t.Fatal("no process names the cluster's directory: the check below would prove nothing")
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // it reports the kill
	eventually(t, "the broker and its guard have ended", func() bool { return processesOf(dir) == "" })
	eventually(t, "the other process has ended", func() bool { return !runs(pid) })
	eventually(t, "the directory is removed", func() bool {
		_, err := os.Stat(dir)
		return errors.Is(err, os.ErrNotExist)
	})
}

// processesOf lists processes with text in their command line.
func processesOf(text string) string {
	found, _ := exec.Command("pgrep", "-f", text).Output() // it exits with 1 when nothing matches
	return strings.TrimSpace(string(found))
}

// state is the first letter of a process's state in ps: T is stopped, Z is a
// zombie, "" is none.
func state(pid int) string {
	out, err := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(pid)).Output()
	text := strings.TrimSpace(string(out))
	if err != nil || text == "" {
		return ""
	}
	return text[:1]
}

func runs(pid int) bool { return state(pid) != "" && state(pid) != "Z" }

// eventually looks until the condition holds; it is for states of processes
// that nobody announces.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	deadline := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-poll.C:
		case <-deadline:
			t.Fatalf("not in time: %s", what)
		}
	}
}

func limit(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
