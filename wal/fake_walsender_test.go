package wal

import (
	"encoding/binary"
	"net"
	"sync"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgproto3"
)

// walsender is the streaming part of a fakeServer. It listens on a goroutine
// of its own, as fast as the client sends; a test sends through it.
type walsender struct {
	conn    net.Conn
	backend *pgproto3.Backend
	gone    chan struct{} // closed when the client left

	mu       sync.Mutex
	statuses []status
	copyDone time.Time
	deaf     bool // does not answer CopyDone
	paused   chan struct{}
	// onStatus is called for each status update that asks for an answer.
	onAsk func()
}

// status is a standby status update as it arrived.
type status struct {
	at                  time.Time
	write, flush, apply pglogrepl.LSN
	ask                 bool
}

func (w *walsender) listen() {
	defer close(w.gone)
	for {
		w.mu.Lock()
		paused := w.paused
		w.mu.Unlock()
		if paused != nil {
			<-paused
		}
		message, err := w.backend.Receive()
		if err != nil {
			return
		}
		switch message := message.(type) {
		case *pgproto3.CopyData:
			w.status(message.Data)
		case *pgproto3.CopyDone:
			w.mu.Lock()
			w.copyDone = time.Now()
			deaf := w.deaf
			w.mu.Unlock()
			if !deaf {
				go w.answerCopyDone()
			}
		case *pgproto3.Terminate:
			return
		}
	}
}

func (w *walsender) status(data []byte) {
	lsn := func(i int) pglogrepl.LSN { return pglogrepl.LSN(binary.BigEndian.Uint64(data[i:])) }
	got := status{at: time.Now(), write: lsn(1), flush: lsn(9), apply: lsn(17), ask: data[33] == 1}
	w.mu.Lock()
	w.statuses = append(w.statuses, got)
	onAsk := w.onAsk
	w.mu.Unlock()
	if got.ask && onAsk != nil {
		onAsk()
	}
}

// seen returns the status updates so far.
func (w *walsender) seen() []status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]status(nil), w.statuses...)
}

func (w *walsender) last() status {
	all := w.seen()
	if len(all) == 0 {
		return status{}
	}
	return all[len(all)-1]
}

func (w *walsender) ended() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.copyDone
}

// answerAsks makes the walsender answer like a real one.
func (w *walsender) answerAsks(end pglogrepl.LSN) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onAsk = func() { go w.send(keepalive(end, false)) }
}

// pause stops listening until the returned function is called.
func (w *walsender) pause() (resume func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	paused := make(chan struct{})
	w.paused = paused
	return func() {
		w.mu.Lock()
		w.paused = nil
		w.mu.Unlock()
		close(paused)
	}
}

func (w *walsender) write(messages ...pgproto3.BackendMessage) {
	var out []byte
	for _, m := range messages {
		out, _ = m.Encode(out)
	}
	_, _ = w.conn.Write(out)
}

// send writes payloads of CopyData in one piece and returns when the client
// has read all of it, or has left.
func (w *walsender) send(payloads ...[]byte) {
	messages := make([]pgproto3.BackendMessage, 0, len(payloads))
	for _, p := range payloads {
		messages = append(messages, &pgproto3.CopyData{Data: p})
	}
	w.write(messages...)
}

func keepalive(end pglogrepl.LSN, ask bool) []byte {
	out := binary.BigEndian.AppendUint64([]byte{'k'}, uint64(end))
	out = binary.BigEndian.AppendUint64(out, 0)
	if ask {
		return append(out, 1)
	}
	return append(out, 0)
}

func xlogData(start pglogrepl.LSN, message []byte) []byte {
	out := binary.BigEndian.AppendUint64([]byte{'w'}, uint64(start))
	out = binary.BigEndian.AppendUint64(out, uint64(start))
	out = binary.BigEndian.AppendUint64(out, 0)
	return append(out, message...)
}

// transaction is one transaction with a row per value, as CopyData payloads.
// It is committed at the LSN and ends 0x30 after it.
func transaction(commit pglogrepl.LSN, values ...string) [][]byte {
	out := [][]byte{xlogData(commit-8, beginMessage(commit)), xlogData(0, relationMessage(1, "app", "outbox", "id", "payload"))}
	for i, value := range values {
		out = append(out, xlogData(commit-7+pglogrepl.LSN(i), insertMessage(1, text("e"), text(value))))
	}
	return append(out, xlogData(commit+0x30, commitMessage(commit, commit+0x30)))
}

func (w *walsender) answerCopyDone() {
	w.write(&pgproto3.CopyDone{}, &pgproto3.CommandComplete{CommandTag: []byte("COPY 0")}, &pgproto3.ReadyForQuery{TxStatus: 'I'})
}
