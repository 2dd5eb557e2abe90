package pgserver_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/cdcpub/cdcpub/internal/pgserver"
)

// ownerVariable makes the test binary an owner that waits to be killed.
const ownerVariable = "CDCPUB_TEST_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(ownerVariable) == "" {
		os.Exit(m.Run())
	}
	s, err := pgserver.Start(context.Background(), pgserver.Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(s.Dir(), s.PID(), s.Port())
	select {}
}

func TestNothingSurvivesAnOwnerThatIsKilled(t *testing.T) {
	owner := osexec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerVariable+"=1")
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	defer owner.Process.Kill()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var dir string
	var pid, port int
	if _, err := fmt.Sscan(line, &dir, &pid, &port); err != nil {
		t.Fatalf("the owner said %q: %v", line, err)
	}
	if !runs(pid) {
		t.Fatalf("the postmaster %d does not run before the kill", pid)
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // it reports the kill
	eventually(t, "the postmaster has ended", func() bool { return !runs(pid) })
	eventually(t, "the directory is removed", func() bool {
		_, err := os.Stat(dir)
		return errors.Is(err, os.ErrNotExist)
	})
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatalf("the port is not free: %v", err)
	}
	listener.Close()
	eventually(t, "no process names the directory", func() bool {
		// pgrep exits with 1 when nothing matches.
		found, _ := osexec.Command("pgrep", "-f", dir).Output()
		return strings.TrimSpace(string(found)) == ""
	})
}

// runs says whether a process exists and is not a zombie.
func runs(pid int) bool {
	if err := syscall.Kill(pid, 0); err != nil {
		return false
	}
	state, err := osexec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(state)), "Z")
}
