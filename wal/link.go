package wal

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// link is the network side of one replication connection, below TLS. It reads
// the socket in large pieces and tells its owner when there is nothing left to
// read without waiting, which is where a batch ends.
//
// All methods but interrupt, silence and quiet belong to the owner's goroutine. No
// context ever reaches this connection while it streams: a context's deadline
// is set on the whole socket, where it tears a status update that is being
// written. Read deadlines are set here, by the owner, and by interrupt.
type link struct {
	net.Conn
	pg *pgconn.PgConn

	// place is what was dialed.
	place     place
	buffer    []byte
	pos, end  int
	failed    error     // of a read ahead; the next read returns it
	readAt    time.Time // when the socket was last read
	taken     int       // bytes from the socket since the owner has set it to 0
	gathering gathering
	window    window
	nearby    bool // window can be narrowed
	narrowed  bool
	streaming bool
	// mayWait is asked before the socket is read. It returns the deadline, or
	// false when the owner has something to do first.
	mayWait func() (time.Time, bool)
	// heard is when the server was last known to hold the slot for us, since
	// began.
	heard atomic.Int64
	began time.Time
	// listening is since when the owner has listened without hearing, since
	// began.
	listening atomic.Int64
	// sent is when the last status update went out. The server gives up on a
	// client that it has not heard for wal_sender_timeout; trust is less.
	sent  time.Time
	trust time.Duration
	// doubt is when trust was found exceeded: this process stood still. What
	// the socket holds may be older than a takeover, and proves nothing until
	// the server was seen by other means. Zero while there is no doubt.
	doubt time.Time
}

const linkBuffer = 256 << 10

// errYield ends a receive before the socket would be waited for. It counts as
// a timeout so that the driver keeps the connection and half-read messages.
var errYield net.Error = yield{}

type yield struct{}

func (yield) Error() string   { return "nothing to read without waiting" }
func (yield) Timeout() bool   { return true }
func (yield) Temporary() bool { return true }

// stream begins the part of the connection's life in which mayWait is asked.
func (l *link) stream(mayWait func() (time.Time, bool)) {
	l.mayWait, l.streaming = mayWait, true
	l.gathering = gatheringOf(l.Conn)
	l.window, l.nearby = windowOf(l.Conn)
	l.readAt = time.Now()
	l.listen()
}

// narrowWindow bounds what a server that is nearby sends ahead. The owner reads
// all the time from now on, or calls widenWindow.
func (l *link) narrowWindow() {
	if !l.nearby || l.narrowed {
		return
	}
	if room := l.window.narrow(); room > 0 {
		l.narrowed, l.gathering = true, gathering{maxBatchInterval, room}
	}
}

// widenWindow is for an owner that does not read. It reads ahead, once, as much as
// a narrow window lets in: the server sends again what was dropped. Until the
// owner reads again this is a connection like any other.
func (l *link) widenWindow() {
	if !l.narrowed {
		return
	}
	l.narrowed = false
	l.window.release()
	l.readAhead()
}

// readAhead adds to the buffer until the socket has nothing left.
func (l *link) readAhead() {
	rest := l.buffer[l.pos:l.end]
	l.buffer = append(make([]byte, 0, len(rest)+linkBuffer), rest...)
	l.pos, l.end = 0, len(rest)
	l.buffer = l.buffer[:cap(l.buffer)]
	end := time.Now().Add(readAheadLimit)
	for l.end < len(l.buffer) && l.failed == nil {
		deadline := time.Now().Add(time.Millisecond)
		if deadline.After(end) {
			return
		}
		if l.failed = l.SetReadDeadline(deadline); l.failed != nil {
			return
		}
		n, err := l.Conn.Read(l.buffer[l.end:])
		l.end += n
		switch {
		case err == nil:
		case !errors.Is(err, os.ErrDeadlineExceeded):
			l.failed = err
		case !time.Now().Before(deadline): // or it was interrupt
			return
		}
	}
}

// readAheadLimit is for a server that never stops writing: what lay in the socket at
// the beginning is read in less.
const readAheadLimit = 20 * time.Millisecond

// Read is called by the driver when it needs more bytes than it has.
func (l *link) Read(p []byte) (int, error) {
	if l.pos == l.end {
		if l.streaming {
			deadline, ok := l.mayWait()
			if !ok {
				return 0, errYield
			}
			if err := l.SetReadDeadline(deadline); err != nil {
				return 0, err
			}
			// interrupt may have come before the deadline was set.
			if _, ok := l.mayWait(); !ok {
				return 0, errYield
			}
		}
		if len(l.buffer) != linkBuffer {
			l.buffer = make([]byte, linkBuffer)
		}
		if err := l.failed; err != nil {
			l.failed = nil // the socket repeats it, or says EOF
			return 0, err
		}
		n, err := l.Conn.Read(l.buffer)
		l.readAt = time.Now()
		if l.streaming && n > 0 && n < len(l.buffer) {
			l.narrowWindow() // again, now that nothing is left that would not fit
		}
		if l.suspect(); n > 0 && l.doubt.IsZero() {
			l.touch()
		}
		if n > 0 {
			l.listen()
		}
		if n == 0 && err != nil {
			return 0, err
		}
		l.pos, l.end = 0, n
		l.taken += n
	}
	n := copy(p, l.buffer[l.pos:l.end])
	l.pos += n
	return n, nil
}

// receive returns the next message, errYield, or os.ErrDeadlineExceeded when
// the deadline passed or interrupt was called. The message is valid until the
// next call.
func (l *link) receive() (pgproto3.BackendMessage, error) {
	return l.pg.ReceiveMessage(context.Background())
}

// interrupt ends a wait for the socket. Safe from any goroutine.
func (l *link) interrupt() { _ = l.SetReadDeadline(time.Unix(1, 0)) }

// listen begins to count the quiet anew: something was heard, or nobody listened
// until now.
func (l *link) listen() { l.listening.Store(int64(time.Since(l.began))) }

func (l *link) quiet() time.Duration { return time.Since(l.began) - time.Duration(l.listening.Load()) }

func (l *link) touch() { l.heard.Store(int64(time.Since(l.began))) }

// suspect begins to doubt when no status update was sent for too long.
func (l *link) suspect() {
	if l.streaming && time.Since(l.sent) > l.trust {
		l.doubt = time.Now()
	}
}

// renew notes that the server was seen by other means at the given time.
func (l *link) renew(at time.Time) {
	if !at.Before(l.doubt) {
		l.doubt = time.Time{}
	}
	if since := int64(at.Sub(l.began)); since > l.heard.Load() {
		l.heard.Store(since)
	}
}

// expire ends the lease: whoever holds the slot now, it is not us.
func (l *link) expire() { l.heard.Store(int64(-365 * 24 * time.Hour)) }

// released ends the lease until renew: the server has released the slot, and
// nothing that is still read says who has it.
func (l *link) released() {
	l.doubt = time.Now()
	l.expire()
}

// silence is how long nothing has been heard. Safe from any goroutine.
func (l *link) silence() time.Duration { return time.Since(l.heardAt()) }

func (l *link) heardAt() time.Time { return l.began.Add(time.Duration(l.heard.Load())) }

// send writes one status update.
func (l *link) send(payload []byte) error {
	l.suspect()
	l.sent = time.Now()
	data := pgproto3.CopyData{Data: payload}
	encoded, err := data.Encode(nil)
	if err != nil {
		return err
	}
	if err := l.pg.Frontend().SendUnbufferedEncodedCopyData(encoded); err != nil {
		return fmt.Errorf("send status update: %w", err)
	}
	return nil
}

// finish ends the stream as the protocol wants it and waits, bounded, until
// the server has taken it in: only then is the last status update processed.
func (l *link) finish(limit time.Duration) error {
	l.pg.Frontend().Send(&pgproto3.CopyDone{})
	if err := l.pg.Frontend().Flush(); err != nil {
		return fmt.Errorf("end replication: %w", err)
	}
	end := time.Now().Add(limit)
	l.mayWait = func() (time.Time, bool) { return end, true }
	for {
		message, err := l.receive()
		switch {
		case timedOut(err) && time.Now().Before(end):
			continue // an interrupt that came late
		case timedOut(err):
			return fmt.Errorf("end replication: the server did not answer within %s: %w", limit, os.ErrDeadlineExceeded)
		case err != nil:
			return fmt.Errorf("end replication: %w", err)
		}
		switch message := message.(type) {
		case *pgproto3.CommandComplete:
			return nil
		case *pgproto3.ErrorResponse:
			return fmt.Errorf("end replication: %w", pgconn.ErrorResponseToPgError(message))
		}
	}
}

// terminate ends the session and waits until the server has let go of it, or for
// the end of ctx: only then are the slot and its place among max_wal_senders free.
func (l *link) terminate(ctx context.Context) {
	defer l.close()
	l.nearby, l.narrowed = false, false // after an error the driver reads on in the background
	l.pg.Frontend().Send(&pgproto3.Terminate{})
	if l.pg.Frontend().Flush() != nil {
		return
	}
	end, _ := ctx.Deadline()
	l.mayWait = func() (time.Time, bool) { return end, ctx.Err() == nil }
	for ctx.Err() == nil {
		if _, err := l.receive(); err != nil && !timedOut(err) {
			return
		}
	}
}

// close releases the connection. A clean end was tried before. After a failed
// read the driver closes only in the background, and reads on until then.
func (l *link) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.pg.Close(ctx)
	_ = l.Conn.Close()
}

func timedOut(err error) bool { return pgconn.Timeout(err) }
