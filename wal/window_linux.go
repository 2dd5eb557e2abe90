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
	nearbyBuffer = roomOfSocket
	// nearby is the round trip below which nearbyBuffer costs no throughput.
	nearby = 2 * time.Millisecond
)

// narrow bounds what the server may send ahead of our reads, if it is nearby, and
// returns how much that is in bytes.
//
// A walsender writes every message by itself, three of them for a transaction of
// one row, and does not let the kernel wait for more (TCP_NODELAY). With a window
// that is never full, and the kernel lets it grow to megabytes, each message
// becomes a packet with an answer and a wakeup, which costs the walsender and us
// twice as much processor time as the rows themselves. Behind a window that is
// full now and then, messages that follow join the one that waits.
func narrow(conn net.Conn) (room int) {
	room = roomOfSocket
	socket, ok := socketBelow(conn).(syscall.Conn)
	if !ok {
		return room
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return room
	}
	_ = raw.Control(func(fd uintptr) {
		// It fails for what is not TCP.
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil || time.Duration(info.Min_rtt)*time.Microsecond >= nearby {
			return
		}
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, nearbyBuffer)
		if granted, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF); err == nil {
			room = min(room, granted/2) // the kernel doubles it, socket(7)
		}
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
