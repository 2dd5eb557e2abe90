package pipeline

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/cdcpub/cdcpub/checkpoint"
	"github.com/cdcpub/cdcpub/router"
	"github.com/cdcpub/cdcpub/wal"
)

// fakeProducer keeps the contract of Producer and complains when its caller
// does not. It acknowledges, rejects and fails on command; the order within a
// partition is kept, between partitions it is the test's. Its methods are
// called while the pipeline stands still, or on the pipeline's goroutine.
type fakeProducer struct {
	results    chan Result
	window     checkpoint.Limits
	sent       []Message
	acked      map[uint64]bool
	partitions map[int][]uint64 // unacknowledged, oldest first
	rejected   map[uint64]bool
	dead       bool
	broken     []error // rules that the pipeline broke
}

const fakePartitions = 3

func newFakeProducer(window checkpoint.Limits) *fakeProducer {
	return &fakeProducer{results: make(chan Result, 64), window: window, acked: map[uint64]bool{},
		partitions: map[int][]uint64{}, rejected: map[uint64]bool{}}
}

func (f *fakeProducer) complain(format string, args ...any) {
	f.broken = append(f.broken, fmt.Errorf(format, args...))
}

func partitionOf(key []byte) int {
	h := fnv.New32a()
	h.Write(key)
	return int(h.Sum32() % fakePartitions)
}

func (f *fakeProducer) Send(messages []Message) []Message {
	if len(messages) == 0 {
		f.complain("an empty Send")
	}
	if len(f.rejected) > 0 {
		f.complain("%d messages sent while a record is rejected", len(messages))
	}
	for _, m := range messages {
		if m.Seq != uint64(len(f.sent)) {
			f.complain("seq %d follows %d messages", m.Seq, len(f.sent))
		}
		f.sent = append(f.sent, m)
		p := partitionOf(m.Record.Key)
		f.partitions[p] = append(f.partitions[p], m.Seq)
	}
	if records, bytes := f.outstanding(); records > f.window.Records || records > 1 && bytes > f.window.Bytes {
		f.complain("the window holds %d records of %d bytes", records, bytes)
	}
	return nil
}

// outstanding is the run from the oldest unacknowledged message to the newest.
func (f *fakeProducer) outstanding() (records, bytes int) {
	tail := 0
	for tail < len(f.sent) && f.acked[uint64(tail)] {
		tail++
	}
	for i := tail; i < len(f.sent); i++ {
		r := &f.sent[i].Record
		bytes += footprint(r, wal.Row{Values: [][]byte{r.EventID, r.Key, r.Value}}) // as route takes them
	}
	return len(f.sent) - tail, bytes
}

func (f *fakeProducer) Results() <-chan Result { return f.results }

func (f *fakeProducer) Status() ProducerStatus { return ProducerStatus{Connected: true} }

func (f *fakeProducer) Close(context.Context) {}

// ack acknowledges up to n messages of a partition. A rejected head is
// acknowledged too: the broker's mind has changed.
func (f *fakeProducer) ack(partition, n int) {
	queue := f.partitions[partition]
	n = min(n, len(queue))
	if n == 0 || f.dead {
		return
	}
	acked := slices.Clone(queue[:n])
	f.partitions[partition] = queue[n:]
	for _, seq := range acked {
		f.acked[seq] = true
		delete(f.rejected, seq)
	}
	f.results <- Result{Acked: acked}
}

var errRefused = errors.New("refused for what it is")

// reject refuses the head of a partition.
func (f *fakeProducer) reject(partition int) {
	queue := f.partitions[partition]
	if len(queue) == 0 || f.rejected[queue[0]] || f.dead {
		return
	}
	f.rejected[queue[0]] = true
	f.results <- Result{Rejected: &Rejection{Message: f.sent[queue[0]], Partition: int32(partition), Cause: errRefused}}
}

// refuse tries the head of a partition again, by another limit.
func (f *fakeProducer) refuse(partition, limit int) {
	head := f.partitions[partition][0]
	f.rejected[head] = true
	f.results <- Result{Rejected: &Rejection{Message: f.sent[head], Partition: int32(partition), Cause: errRefused, Size: 2000, Limit: limit}}
}

var errProducer = errors.New("the producer has failed")

func (f *fakeProducer) fail() {
	if !f.dead {
		f.dead = true
		f.results <- Result{Err: errProducer}
		close(f.results)
	}
}

// history makes events; LSNs and event ids come from counters, so that they say
// where an event belongs.
type history struct {
	events []wal.Event
	lsn    pglogrepl.LSN
	rows   int
}

var relation = &wal.Relation{ID: 7, Schema: "public", Name: "outbox"}

// poison is the event id of a row that cannot be routed.
const poison = "poison"

func (h *history) row(key string, size int) { h.insert(strconv.Itoa(h.rows), key, size) }

func (h *history) insert(id, key string, size int) {
	h.lsn++
	h.rows++
	h.events = append(h.events, wal.Event{Kind: wal.Insert, LSN: h.lsn,
		Row: wal.Row{Relation: relation, Values: [][]byte{[]byte(id), []byte(key), make([]byte, size)}}})
}

func (h *history) begin() {
	h.lsn += 1000
	h.events = append(h.events, wal.Event{Kind: wal.Begin, LSN: h.lsn, CommitTime: time.UnixMilli(int64(h.lsn))})
}

func (h *history) commit() {
	h.lsn += 1000
	h.events = append(h.events, wal.Event{Kind: wal.Commit, LSN: h.lsn})
}

func (h *history) keepalive() {
	h.lsn++
	h.events = append(h.events, wal.Event{Kind: wal.Keepalive, LSN: h.lsn})
}

func (h *history) transaction(rows ...string) {
	h.begin()
	for _, key := range rows {
		h.row(key, 10)
	}
	h.commit()
}

func (h *history) batch() *wal.Batch { return &wal.Batch{Events: slices.Clone(h.events)} }

var errUnroutable = errors.New("nothing routes this")

func route(commit time.Time, row wal.Row) (router.Record, error) {
	if string(row.Values[0]) == poison {
		return router.Record{}, errUnroutable
	}
	return router.Record{Topic: "orders", EventID: row.Values[0], Key: row.Values[1], Value: row.Values[2], Timestamp: commit}, nil
}
