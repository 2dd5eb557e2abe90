package wal

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sys/unix"

	"github.com/cdcpub/cdcpub/internal/pgfault"
)

// TestStreamBoundsTheBufferOfANearbyServer looks through what the publisher wraps
// its connections in.
func TestStreamBoundsTheBufferOfANearbyServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	config := &pgconn.Config{DialFunc: (&net.Dialer{}).DialContext}
	pgfault.Begin(config)
	conn, err := config.DialFunc(context.Background(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	talk(t, listener, conn)
	before := receiveBuffer(t, conn)
	l := &link{Conn: conn, began: time.Now()}
	l.stream(nil)
	given := receiveBuffer(t, conn)
	if given > 2*nearbyBuffer || l.gathering != (gathering{maxBatchInterval, given / 2}) {
		t.Errorf("SO_RCVBUF is %d and was %d, and %+v was made of it", given, before, l.gathering)
	}
	if given == before {
		t.Errorf("SO_RCVBUF is %d as before", given)
	}
}

// talk gives the kernel round trips to measure, as a login does: the shortest of
// them counts, and a single one may meet a busy machine.
func talk(t *testing.T, listener net.Listener, conn net.Conn) {
	t.Helper()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	one := make([]byte, 1)
	for range 100 {
		if _, err := conn.Write(one); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(server, one); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Write(one); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, one); err != nil {
			t.Fatal(err)
		}
	}
}

func receiveBuffer(t *testing.T, conn net.Conn) (bytes int) {
	t.Helper()
	raw, err := socketBelow(conn).(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if controlErr := raw.Control(func(fd uintptr) { bytes, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF) }); controlErr != nil || err != nil {
		t.Fatal(controlErr, err)
	}
	return bytes
}

func TestServersThatAreNotNearbyAreLeftAlone(t *testing.T) {
	for microseconds, want := range map[uint32]bool{0: false, 30: true, 199: true, 200: false, 50_000: false} {
		if got := isNearby(microseconds); got != want {
			t.Errorf("a round trip of %d us: nearby is %v", microseconds, got)
		}
	}
	one, other := net.Pipe()
	defer one.Close()
	defer other.Close()
	if g := gatheringOf(one); g != gatherFromAfar {
		t.Errorf("a pipe: %+v", g)
	}
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	local, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	if g := gatheringOf(local); g != gatherLocally {
		t.Errorf("a Unix socket: %+v", g)
	}
}
