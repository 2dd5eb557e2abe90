package wal

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sys/unix"

	"github.com/cdcpub/cdcpub/internal/pgfault"
)

// TestWindowOfANearbyServer looks through what the publisher wraps its
// connections in.
func TestWindowOfANearbyServer(t *testing.T) {
	l, server := nearbyLink(t)
	l.narrowWindow()
	given := socketOption(t, l.Conn, unix.SO_RCVBUF)
	if given > 2*nearbyBuffer || socketOption(t, l.Conn, unix.SO_BUF_LOCK) == 0 || l.gathering != (gathering{maxBatchInterval, given / 2}) {
		t.Errorf("SO_RCVBUF is %d, and %+v was made of it", given, l.gathering)
	}
	l.widenWindow()
	if lock := socketOption(t, l.Conn, unix.SO_BUF_LOCK); lock != 0 {
		t.Errorf("SO_BUF_LOCK is %d after widening", lock)
	}
	if _, err := server.Write([]byte{'x'}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if !l.narrowed || socketOption(t, l.Conn, unix.SO_BUF_LOCK) == 0 {
		t.Error("not narrow again after a read that left nothing")
	}
}

// TestStatusUpdatesReachAServerThatIsNotRead is about the kernel: small messages
// fill a bounded buffer long before the window, and what is dropped can end
// the conversation in the other direction too. That depends on which packets
// meet, hence many connections at once, and on timers of the kernel, hence
// updates that come over some seconds, as those of a stream do.
func TestStatusUpdatesReachAServerThatIsNotRead(t *testing.T) {
	var links [40]*link
	var servers [len(links)]net.Conn
	for i := range links {
		links[i], servers[i] = nearbyLink(t)
	}
	var streams sync.WaitGroup
	for i, l := range links {
		streams.Go(func() {
			if err := stall(l, servers[i], 20+10*(i%4), (i+1)<<17); err != nil {
				t.Errorf("stream %d: %v", i, err)
			}
		})
	}
	streams.Wait()
}

// stall sends updates on a link that is no longer read while the server goes on
// writing messages of the given size.
func stall(l *link, server net.Conn, size, after int) error {
	l.narrowWindow()
	go func() {
		for message, err := make([]byte, size), error(nil); err == nil; {
			_, err = server.Write(message) // until the test closes it
		}
	}()
	for read, p := 0, make([]byte, 64<<10); read < after; {
		n, err := l.Read(p)
		if err != nil {
			return err
		}
		read += n
	}
	l.widenWindow()
	update, tick := make([]byte, 34), time.NewTicker(250*time.Millisecond)
	defer tick.Stop()
	for sent := range 24 {
		<-tick.C
		if _, err := l.Conn.Write(update); err != nil {
			return err
		}
		if err := server.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			return err
		}
		if _, err := io.ReadFull(server, update); err != nil {
			return fmt.Errorf("update %d: %w", sent, err)
		}
	}
	return nil
}

// TestReadingAheadEnds: a server that never stops writing, in pieces, would else
// hold up status updates.
func TestReadingAheadEnds(t *testing.T) {
	l, server := nearbyLink(t)
	l.narrowWindow()
	var written atomic.Int64
	go func() {
		for _, err := server.Write([]byte{'x'}); err == nil; _, err = server.Write([]byte{'x'}) {
			written.Add(1)
			runtime.Gosched()
		}
	}()
	l.widenWindow()
	if l.end == len(l.buffer) || l.failed != nil {
		t.Errorf("read %d of %d bytes, %v", l.end, written.Load(), l.failed)
	}
}

// TestWhatWasReadAheadComesFirst: the bytes of a socket stay in order, and its
// end comes behind them.
func TestWhatWasReadAheadComesFirst(t *testing.T) {
	l, server := nearbyLink(t)
	l.narrowWindow()
	want := []byte("abcdefghijklmnopqrstuvwxyz")
	if _, err := server.Write(want[:13]); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 3)
	if _, err := io.ReadFull(l, got); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Write(want[13:]); err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	l.interrupt()
	l.widenWindow()
	rest, err := io.ReadAll(l)
	if got = append(got, rest...); err != nil || !bytes.Equal(got, want) {
		t.Errorf("read %q, %v", got, err)
	}
}

// nearbyLink is a link that streams from the server returned.
func nearbyLink(t *testing.T) (*link, net.Conn) {
	t.Helper()
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
	t.Cleanup(func() { conn.Close() })
	server := talk(t, listener, conn)
	l := &link{Conn: conn, began: time.Now()}
	l.stream(func() (time.Time, bool) { return time.Now().Add(time.Minute), true })
	if !l.nearby {
		t.Fatal("a server on the same host is not nearby: is this Linux older than 5.15?")
	}
	return l, server
}

// talk gives the kernel round trips to measure, as a login does: the shortest of
// them counts, and a single one may meet a busy machine.
func talk(t *testing.T, listener net.Listener, conn net.Conn) net.Conn {
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
	return server
}

func socketOption(t *testing.T, conn net.Conn, option int) (value int) {
	t.Helper()
	raw, err := socketBelow(conn).(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if controlErr := raw.Control(func(fd uintptr) { value, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, option) }); controlErr != nil || err != nil {
		t.Fatal(controlErr, err)
	}
	return value
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
	if _, ok := windowOf(one); ok || gatheringOf(one) != gatherFromAfar {
		t.Error("a pipe is nearby")
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
	if _, ok := windowOf(local); ok || gatheringOf(local) != gatherLocally {
		t.Error("a Unix socket has a window")
	}
}
