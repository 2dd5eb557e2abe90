package pgfault

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
)

// Watch is what was seen of the servers that one connect tried. The driver may
// still read in the background when it has reported a failure.
type Watch struct {
	noTLS   atomic.Bool
	foreign atomic.Pointer[string]
}

// Begin makes every connection of config, which is to be used for one connect
// only, a watched one.
func Begin(config *pgconn.Config) *Watch {
	w := &Watch{}
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &watchedConn{Conn: conn, watch: w}, nil
	}
	return w
}

// headBytes is how much of the first answer is looked at: a message's type and
// its length.
const headBytes = 5

// watchedConn looks at the beginning of both directions. One goroutine at a time
// reads, and one writes.
type watchedConn struct {
	net.Conn
	watch *Watch
	head  []byte // what came in
	// asked is set when the first thing sent was a request for TLS.
	asked atomic.Bool
	wrote bool
}

// NetConn returns what is below, as tls.Conn does.
func (c *watchedConn) NetConn() net.Conn { return c.Conn }

// tlsRequest is the code of a request for TLS (PostgreSQL documentation,
// "Message Formats", SSLRequest).
const tlsRequest = 80877103

// Write implements net.Conn.
func (c *watchedConn) Write(b []byte) (int, error) {
	if !c.wrote {
		c.wrote = true
		c.asked.Store(len(b) >= 8 && binary.BigEndian.Uint32(b[4:]) == tlsRequest)
	}
	return c.Conn.Write(b)
}

// Read implements net.Conn.
func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if missing := headBytes - len(c.head); missing > 0 && n > 0 {
		c.head = append(c.head, b[:min(n, missing)]...)
		c.watch.judge(c.head, c.asked.Load())
	}
	return n, err
}

// judge looks at the first bytes of an answer.
func (w *Watch) judge(head []byte, askedTLS bool) {
	switch what := foreign(head, askedTLS); {
	case what != "":
		w.foreign.CompareAndSwap(nil, &what)
	case askedTLS && head[0] == 'N':
		w.noTLS.Store(true)
	}
}

// foreign says who answers if it is not PostgreSQL; empty if it may be.
//
// After a request for TLS comes one byte, S or N, or an ErrorResponse of a
// server that is too busy; a TLS handshake, whose records begin with 22 or 21,
// follows S. Without one the first message is Authentication, ErrorResponse,
// NoticeResponse or NegotiateProtocolVersion. A proxy before the server speaks
// the same.
func foreign(head []byte, askedTLS bool) string {
	const most = 1 << 20
	switch {
	case bytes.HasPrefix([]byte("HTTP/"), head[:min(len(head), 5)]) && head[0] == 'H':
		return "an HTTP server"
	case bytes.HasPrefix(head, []byte("SSH-")):
		return "an SSH server"
	case askedTLS && head[0] == 'S' && (len(head) == 1 || head[1] == 22 || head[1] == 21):
		return ""
	case askedTLS && head[0] == 'N':
		return ""
	case !askedTLS && bytes.IndexByte([]byte("RNv"), head[0]) >= 0, head[0] == 'E':
		if len(head) < headBytes || binary.BigEndian.Uint32(head[1:]) <= most {
			return ""
		}
	}
	return "another kind of server"
}
