package kafka

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/cdcpub/cdcpub/internal/pipeline"
	"github.com/cdcpub/cdcpub/router"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// patience bounds every wait of a test that must come true.
const patience = 30 * time.Second

func patiently(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func startCluster(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(opts...)
	if err != nil {
		t.Fatalf("starting kfake: %v", err)
	}
	t.Cleanup(c.Close)
	return c
}

// fastConfig has pauses that suit a test.
func fastConfig(brokers ...string) Config {
	return Config{
		Brokers:            brokers,
		RequestTimeout:     400 * time.Millisecond,
		DialTimeout:        400 * time.Millisecond,
		BackoffMin:         2 * time.Millisecond,
		BackoffMax:         20 * time.Millisecond,
		OperatorBackoffMax: 30 * time.Millisecond,
		RejectedInterval:   50 * time.Millisecond,
		TopicCheckInterval: 50 * time.Millisecond,
	}
}

func newTestClient(t testing.TB, config Config) *Client {
	t.Helper()
	client, err := NewClient(config)
	if err != nil {
		t.Fatalf("NewClient: %v", err)
	}
	t.Cleanup(client.Close)
	return client
}

func always() bool { return true }

// session drives one Producer and remembers what came back.
type session struct {
	t testing.TB
	*Producer
	next uint64

	mu       sync.Mutex
	acked    []uint64
	rejected []*pipeline.Rejection // each record once
	again    []*pipeline.Rejection // what was reported again, after another attempt
	err      error
	changed  chan struct{}
	closed   chan struct{}
}

func startSession(t testing.TB, client *Client, lease func() bool) *session {
	t.Helper()
	return startFenced(t, client, "", lease)
}

// startFenced is startSession of a publisher with a transactional id.
func startFenced(t testing.TB, client *Client, transactionalID string, lease func() bool) *session {
	t.Helper()
	log := zap.NewNop()
	if testing.Verbose() {
		log = zaptest.NewLogger(t, zaptest.WrapOptions(zap.WithFatalHook(nil)))
	}
	return startLogged(t, client, transactionalID, lease, log)
}

func startLogged(t testing.TB, client *Client, transactionalID string, lease func() bool, log *zap.Logger) *session {
	t.Helper()
	return startSlot(t, client, transactionalID, leased(lease), log)
}

func startSlot(t testing.TB, client *Client, transactionalID string, slot pipeline.Slot, log *zap.Logger) *session {
	t.Helper()
	s := &session{t: t, changed: make(chan struct{}, 1), closed: make(chan struct{})}
	s.Producer = client.NewProducer(transactionalID, slot, log)
	go s.read()
	t.Cleanup(func() { s.stop(patience) })
	return s
}

func (s *session) read() {
	defer close(s.closed)
	for r := range s.Results() {
		s.mu.Lock()
		s.acked = append(s.acked, r.Acked...)
		if r.Rejected != nil {
			if last := len(s.rejected) - 1; last >= 0 && sameRecord(s.rejected[last], r.Rejected) {
				s.again = append(s.again, r.Rejected)
			} else {
				s.rejected = append(s.rejected, r.Rejected)
			}
		}
		if r.Err != nil {
			s.err = r.Err
		}
		s.mu.Unlock()
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
}

// stop closes the producer and reads its results to the end.
func (s *session) stop(within time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	s.Close(ctx)
	<-s.closed
}

// until waits for a condition on the results.
func (s *session) until(what string, ok func() bool) {
	s.t.Helper()
	deadline := time.After(patience)
	for {
		s.mu.Lock()
		done := ok()
		s.mu.Unlock()
		if done {
			return
		}
		select {
		case <-s.changed:
		case <-deadline:
			acked, rejected, err := s.got()
			s.t.Fatalf("%s did not happen: %d acked, %d rejected, error %v, status %+v",
				what, len(acked), len(rejected), err, s.Status())
		}
	}
}

// got returns what has come back so far.
func (s *session) got() (acked []uint64, rejected []*pipeline.Rejection, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.acked), slices.Clone(s.rejected), s.err
}

func sameRecord(a, b *pipeline.Rejection) bool {
	return a.Message.Seq == b.Message.Seq && a.Message.Record.Topic == b.Message.Record.Topic
}

// rejects waits for rejection number n, counted from 1.
func (s *session) rejects(n int) *pipeline.Rejection {
	s.t.Helper()
	s.until(fmt.Sprintf("rejection %d", n), func() bool { return len(s.rejected) >= n })
	_, rejected, _ := s.got()
	return rejected[n-1]
}

// fails waits for the error.
func (s *session) fails() error {
	s.t.Helper()
	s.until("an error", func() bool { return s.err != nil })
	_, _, err := s.got()
	return err
}

// acks waits until n records are acknowledged.
func (s *session) acks(n int) {
	s.t.Helper()
	s.until(fmt.Sprintf("%d acknowledgements", n), func() bool { return len(s.acked) >= n })
}

// stalls waits until the status of a partition satisfies ok.
func (s *session) stalls(what string, ok func(pipeline.PartitionStatus) bool) {
	s.t.Helper()
	ctx := patiently(s.t)
	for ctx.Err() == nil {
		if slices.ContainsFunc(s.Status().Partitions, ok) {
			return
		}
		rest(ctx)
	}
	s.t.Fatalf("no partition came to be %s: %+v", what, s.Status())
}

// eventually waits for a condition that only a look can tell.
func (s *session) eventually(what string, ok func() bool) {
	s.t.Helper()
	ctx := patiently(s.t)
	for !ok() {
		if ctx.Err() != nil {
			s.t.Fatalf("it did not come to that %s", what)
		}
		rest(ctx)
	}
}

// connected waits until the status says so.
func (s *session) connected(want bool) {
	s.t.Helper()
	ctx := patiently(s.t)
	for s.Status().Connected != want {
		if ctx.Err() != nil {
			s.t.Fatalf("Connected did not become %t", want)
		}
		rest(ctx)
	}
}

// rest waits one millisecond between two looks at a state that has no signal.
func rest(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Millisecond):
	}
}

// numbered makes n messages for a topic, whose values count on from the
// session's last one. key maps a number to a key.
func (s *session) numbered(topic string, n int, key func(uint64) string) []pipeline.Message {
	messages := make([]pipeline.Message, n)
	for i := range messages {
		messages[i] = message(topic, key(s.next), s.next)
		s.next++
	}
	return messages
}

func message(topic, key string, seq uint64) pipeline.Message {
	return pipeline.Message{
		Seq:      seq,
		Position: pipeline.Position{CommitLSN: 1, Ordinal: int(seq)},
		Record: router.Record{
			Topic: topic, Key: []byte(key), Value: strconv.AppendUint(nil, seq, 10),
			Headers:   []router.Header{{Key: "id", Value: strconv.AppendUint(nil, seq, 10)}},
			Timestamp: time.UnixMilli(1_700_000_000_000 + int64(seq)),
		},
	}
}

func oneKey(uint64) string { return "key" }

func manyKeys(n uint64) func(uint64) string {
	return func(i uint64) string { return strconv.FormatUint(i%n, 10) }
}

// consume reads a topic to its end and returns the records per partition.
func consume(t testing.TB, c *kfake.Cluster, topic string) map[int32][]*kgo.Record {
	t.Helper()
	want := int64(0)
	for _, p := range c.PartitionInfos(topic) {
		want += p.HighWatermark - p.LogStartOffset
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx := patiently(t)
	got := make(map[int32][]*kgo.Record)
	for n := int64(0); n < want; {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("consuming %s: %d of %d records", topic, n, want)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			got[r.Partition] = append(got[r.Partition], r)
			n++
		})
	}
	return got
}

func number(t testing.TB, r *kgo.Record) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(string(r.Value), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// requireExactly asserts that the topic has the numbers below n except the
// missing ones: each once, and in order within its partition.
func requireExactly(t testing.TB, c *kfake.Cluster, topic string, n int, missing ...uint64) {
	t.Helper()
	repeats := requireOrdered(t, c, topic, n, missing...)
	if repeats != 0 {
		t.Errorf("%d records came twice", repeats)
	}
}

// requireOrdered asserts that first occurrences are complete and in order, and
// returns how many records were repeats.
func requireOrdered(t testing.TB, c *kfake.Cluster, topic string, n int, missing ...uint64) int {
	t.Helper()
	seen := make(map[uint64]bool)
	repeats := 0
	for partition, records := range consume(t, c, topic) {
		last := int64(-1)
		for _, r := range records {
			i := number(t, r)
			if seen[i] {
				repeats++
				continue
			}
			seen[i] = true
			if int64(i) < last {
				t.Errorf("partition %d: %d came after %d", partition, i, last)
			}
			last = int64(i)
		}
	}
	for i := range uint64(n) {
		if seen[i] == slices.Contains(missing, i) {
			t.Errorf("record %d: in the topic %t, expected %t", i, seen[i], !seen[i])
		}
	}
	return repeats
}

// flakyNet wraps the brokers' listeners: it can hold back or drop what the
// brokers answer.
type flakyNet struct {
	// drops counts down the produce answers to be lost, with the connection.
	drops atomic.Int64
}

func (f *flakyNet) listen(network, address string) (net.Listener, error) {
	l, err := net.Listen(network, address)
	return flakyListener{l, f}, err
}

type flakyListener struct {
	net.Listener
	net *flakyNet
}

func (l flakyListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &flakyConn{Conn: conn, net: l.net}, nil
}

// flakyConn sees the requests it reads. A connection that carried a produce
// request carries nothing else but the handshake before it.
type flakyConn struct {
	net.Conn
	net *flakyNet
	// frame has the first bytes of the request being read; left is what is
	// still to come of it.
	frame   []byte
	left    int
	produce atomic.Bool
}

func (c *flakyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for _, x := range b[:n] {
		if c.left > 0 {
			c.left--
			continue
		}
		// The length, then the request key.
		if c.frame = append(c.frame, x); len(c.frame) == 6 {
			c.left = int(binary.BigEndian.Uint32(c.frame)) - 2
			if binary.BigEndian.Uint16(c.frame[4:]) == 0 {
				c.produce.Store(true)
			}
			c.frame = c.frame[:0]
		}
	}
	return n, err
}

func (c *flakyConn) Write(b []byte) (int, error) {
	if c.produce.Load() && c.net.drops.Add(-1) >= 0 {
		_ = c.Conn.Close()
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}
