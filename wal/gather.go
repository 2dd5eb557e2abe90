package wal

import (
	"net"
	"time"
)

// gathering says how long a socket may be left alone while the server writes.
type gathering struct {
	longest time.Duration
	// room is how many bytes the server can send meanwhile; 0: enough.
	room int
}

// maxBatchInterval is the longest of all.
const maxBatchInterval = 10 * time.Millisecond

var (
	// A Unix socket has room for some hundred messages, whatever their size.
	gatherLocally = gathering{longest: batchInterval}
	// Between hosts the kernel lets the window grow to megabytes.
	gatherFromAfar = gathering{longest: maxBatchInterval / 2}
)

// gatheringOf is for a connection whose window is not narrow.
func gatheringOf(conn net.Conn) gathering {
	if conn.LocalAddr().Network() == "unix" {
		return gatherLocally
	}
	return gatherFromAfar
}

// limit is how long the next pause may be, when the socket had so many bytes
// after the last one, which might be so long. It comes to the time in which the
// server just fills the room: after less the server's messages travel one by one,
// after more the server waits for us.
func (g gathering) limit(last time.Duration, bytes int) time.Duration {
	switch {
	case g.room == 0:
		return g.longest
	case bytes >= g.room/8*7:
		last -= last / 8
	default:
		last += last / 8
	}
	return min(max(last, batchInterval), g.longest)
}
