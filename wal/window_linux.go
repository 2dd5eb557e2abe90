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

// narrow bounds what the server may send ahead of our reads, if it is nearby, and
// returns how much that is in bytes; 0 if it has not.
//
// A walsender writes every message by itself, three of them for a transaction of
// one row, and does not let the kernel wait for more (TCP_NODELAY). With a window
// that is never full, and the kernel lets it grow to megabytes, each message
// becomes a packet with an answer and a wakeup, which costs the walsender and us
// twice as much processor time as the rows themselves. Behind a window that is
// full now and then, messages that follow join the one that waits.
func narrow(conn net.Conn) (room int) {
	socket, ok := socketBelow(conn).(syscall.Conn)
	if !ok {
		return 0
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		// It fails for what is not TCP.
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil || !isNearby(info.Min_rtt) || unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, nearbyBuffer) != nil {
			return
		}
		granted, _ := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
		room = granted / 2 // the kernel doubles it, socket(7)
	})
	return room
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
