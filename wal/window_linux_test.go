package wal

import (
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// above is a connection that wraps another, as a TLS connection does.
type above struct{ net.Conn }

func (a above) NetConn() net.Conn { return a.Conn }

func TestNarrowBoundsTheBufferOfANearbyServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var given int
	read := func() {
		raw, err := conn.(syscall.Conn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		if err := raw.Control(func(fd uintptr) { given, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF) }); err != nil {
			t.Fatal(err)
		}
	}
	l := &link{Conn: above{conn}, began: time.Now()}
	l.stream(nil)
	if read(); given != 2*nearbyBuffer { // socket(7): the kernel doubles it
		t.Errorf("SO_RCVBUF is %d, want %d, provided that net.core.rmem_max allows it", given, 2*nearbyBuffer)
	}
	if l.room != given/2 {
		t.Errorf("%d bytes of room, the socket has %d", l.room, given/2)
	}
}

func TestNarrowLeavesOtherConnectionsAlone(t *testing.T) {
	one, other := net.Pipe()
	defer one.Close()
	defer other.Close()
	if room := narrow(one); room != roomOfSocket {
		t.Errorf("%d bytes of room", room)
	}
}
