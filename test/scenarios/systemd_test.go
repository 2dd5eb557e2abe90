package scenarios

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/test/harness"
)

// What systemd hears of a service with Type=notify and WatchdogSec=.
func TestSystemdIsToldOfLifeStateAndEnd(t *testing.T) {
	parallel(t)
	s := newStand(t, options{})
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	s.no(err)
	defer socket.Close()
	heard := func(wanted ...string) {
		t.Helper()
		s.no(socket.SetReadDeadline(time.Now().Add(s.options.patience)))
		var all strings.Builder
		buffer := make([]byte, 8192)
		for {
			n, err := socket.Read(buffer)
			if err != nil {
				t.Fatalf("%v; wanted %q, heard:\n%s", err, wanted, all.String())
			}
			fmt.Fprintf(&all, "%s\n", buffer[:n])
			missing := false
			for _, words := range wanted {
				missing = missing || !strings.Contains(all.String(), words)
			}
			if !missing {
				return
			}
		}
	}
	p := harness.StartProcess(t, harness.ProcessOptions{
		Binary: s.options.binary, Args: []string{"run", "-c", "{config}"}, Config: s.config(),
		Env: []string{"NOTIFY_SOCKET=" + path, "WATCHDOG_USEC=300000"},
	})
	s.logs = append(s.logs, p)
	heard("READY=1")
	heard("WATCHDOG=1", "STATUS=streaming, slot "+s.slot)
	s.load(1, 10)
	s.delivered()
	heard("WATCHDOG=1", ", confirmed ")
	s.no(p.Signal(syscall.SIGTERM))
	heard("STOPPING=1")
	if code := s.exit(p); code != 0 {
		t.Errorf("exit %d\n%s", code, p.Stderr())
	}
	s.check(nil)
}
