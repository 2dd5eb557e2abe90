package wal

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// nearbyBuffer is as much as a server that is nearby sends in some
	// milliseconds at full rate. The kernel grants no more than
	// net.core.rmem_max, 208 KiB by default.
	nearbyBuffer = 128 << 10
	// nearby is the round trip within a host. On a network packets carry less,
	// and the kernel counts more for each: there it has not been measured.
	nearby = 200 * time.Microsecond
)

// isNearby judges the shortest round trip so far, which some kernels do not know.
func isNearby(microseconds uint32) bool {
	return microseconds > 0 && time.Duration(microseconds)*time.Microsecond < nearby
}

// window is the receive buffer of a connection to a server that is nearby.
//
// A walsender writes every message by itself, three of them for a transaction of
// one row, and does not let the kernel wait for more (TCP_NODELAY). With a window
// that is never full, and the kernel lets it grow to megabytes, each message
// becomes a packet with an answer and a wakeup, which costs the walsender and us
// twice as much processor time as the rows themselves. Behind a window that is
// full now and then, messages that follow join the one that waits.
//
// A bounded buffer must be read, though. The kernel counts some hundred bytes for
// a packet of twenty and drops what no longer fits. From then on the server's
// acknowledgements of our status updates carry a position behind what was
// dropped. Our kernel takes them for forged while its window is closed, and soon
// sends no more updates: the server ends a connection that only waits for Kafka.
// So the buffer is bounded only where it can be released again (SO_BUF_LOCK,
// Linux 5.15). To bound the window alone (TCP_WINDOW_CLAMP) is no way around it:
// the kernel widens it all the same, and below the size of a packet of this host
// the transfer stalls.
type window struct{ socket syscall.RawConn }

// windowOf returns false for a server that is not nearby and a kernel that
// cannot release.
func windowOf(conn net.Conn) (w window, ok bool) {
	socket, ok := socketBelow(conn).(syscall.Conn)
	if !ok {
		return window{}, false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return window{}, false
	}
	ok = false
	_ = raw.Control(func(fd uintptr) {
		// It fails for what is not TCP.
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		_, lockErr := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BUF_LOCK)
		ok = err == nil && lockErr == nil && isNearby(info.Min_rtt)
	})
	return window{raw}, ok
}

// narrow bounds what the server may send ahead of our reads, and returns how
// much that is in bytes.
func (w window) narrow() (room int) {
	_ = w.socket.Control(func(fd uintptr) {
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, nearbyBuffer) == nil {
			granted, _ := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
			room = granted / 2 // the kernel doubles it, socket(7)
		}
	})
	return room
}

// release lets the kernel choose again.
func (w window) release() {
	_ = w.socket.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BUF_LOCK, 0) })
}

// socketBelow looks under connections that wrap others.
func socketBelow(conn net.Conn) net.Conn {
	for {
		above, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return conn
		}
		conn = above.NetConn()
	}
}
