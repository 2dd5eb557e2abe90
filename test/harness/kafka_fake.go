package harness

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// FakeKafka are brokers within the process that answer, when asked to, what no
// real broker does on request: every error code there is, for batches that they
// appended and for others, and acknowledgements that come late. Its methods are
// safe from any goroutine.
type FakeKafka struct {
	cluster *kfake.Cluster

	mu       sync.Mutex
	appended *turns // answered though the batch was appended; nil: none
	slow     *slowness
}

// slowness is how late answers to produce requests come.
type slowness struct {
	random            *rand.Rand
	shortest, longest time.Duration
	held              int // answers
	over              chan struct{}
}

// NewFakeKafka starts brokers and closes them at the test's end.
func NewFakeKafka(t testing.TB, brokers int) *FakeKafka {
	t.Helper()
	k := &FakeKafka{}
	var err error
	k.cluster, err = kfake.NewCluster(kfake.NumBrokers(brokers), kfake.ListenFn(k.listen))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.cluster.Close)
	return k
}

// Brokers are the addresses.
func (k *FakeKafka) Brokers() []string { return k.cluster.ListenAddrs() }

// Direct is the same: witnesses send no produce requests, and only these are
// answered wrongly.
func (k *FakeKafka) Direct() []string { return k.Brokers() }

// CreateTopic creates a topic. The fake has no replicas.
func (k *FakeKafka) CreateTopic(_ context.Context, name string, partitions, _ int, configs map[string]string) error {
	return k.cluster.CreateTopic(name, int32(partitions), configs)
}

// Refuse answers batches for a topic with these codes, in turn, a single one
// over and over, until end. Of the batches of each partition every nth gets one,
// and is not appended, except with REQUEST_TIMED_OUT and
// NOT_ENOUGH_REPLICAS_AFTER_APPEND. A request may have batches that are refused
// beside others that are not.
func (k *FakeKafka) Refuse(topic string, partitions, every int, codes []int16) (end func() (answers int)) {
	count := 1
	if len(codes) == 1 {
		count = -1
	}
	var faults []kfake.Fault
	for partition := range int32(partitions) {
		nth := everyNth(every)
		// Each partition begins somewhere else, and has all of them in time.
		from := int(partition) * len(codes) / partitions
		for i := range codes {
			code := codes[(from+i)%len(codes)]
			faults = append(faults, kfake.Fault{
				Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Partitions: []int32{partition},
				Err: errorOf(code), Count: count, When: nth,
			})
		}
	}
	return k.begin(faults)
}

// begin makes faults. The end tells how many requests they answered.
func (k *FakeKafka) begin(faults []kfake.Fault) (end func() (answers int)) {
	handle := k.cluster.Fault(faults...)
	return func() int {
		handle.Remove()
		return handle.Hits()
	}
}

// everyNth counts requests, of which it may be asked about one several times.
func everyNth(n int) func(kmsg.Request) bool {
	var last kmsg.Request
	count := 0
	return func(r kmsg.Request) bool {
		if r != last {
			last = r
			count++
		}
		return count%n == 0
	}
}

// errorOf is a code as an error, also one that nobody knows.
func errorOf(code int16) *kerr.Error {
	if known, ok := kerr.ErrorForCode(code).(*kerr.Error); ok && known.Code == code {
		return known
	}
	return &kerr.Error{Message: "UNKNOWN_CODE", Code: code}
}

// AppendAndRefuse appends batches, and answers every nth with one of these codes
// in turn, over and over until end: what the client sees as failed took effect.
func (k *FakeKafka) AppendAndRefuse(every int, codes []int16) (end func() (answers int)) {
	t := &turns{every: every, codes: codes}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.appended = t
	return func() int {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.appended == t {
			k.appended = nil
		}
		return t.asked / t.every
	}
}

// RefuseClaims answers requests for a producer id, and for who coordinates it,
// with each of these codes, times each, until end.
func (k *FakeKafka) RefuseClaims(times int, codes []int16) (end func() (answers int)) {
	var faults []kfake.Fault
	for _, code := range codes {
		faults = append(faults, kfake.Fault{
			Keys: []kmsg.Key{kmsg.InitProducerID, kmsg.FindCoordinator}, Err: errorOf(code), Count: times,
		})
	}
	return k.begin(faults)
}

// Slow holds each answer to a produce request back for a random time, until
// end. Answers of one connection keep their order, those of others overtake.
// Other answers come at once.
func (k *FakeKafka) Slow(seed uint64, shortest, longest time.Duration) (end func() (answers int)) {
	s := &slowness{random: rand.New(rand.NewPCG(seed, 0)), shortest: shortest, longest: longest, over: make(chan struct{})}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.slow = s
	return sync.OnceValue(func() int {
		k.mu.Lock()
		defer k.mu.Unlock()
		close(s.over)
		if k.slow == s {
			k.slow = nil
		}
		return s.held
	})
}

// ShuffleLeaders gives every partition a leader at random, and every
// transactional id a coordinator.
func (k *FakeKafka) ShuffleLeaders() {
	k.cluster.ShufflePartitionLeaders()
	k.cluster.RehashCoordinators()
}

// hold waits for as long as an answer is to be late.
func (k *FakeKafka) hold() {
	k.mu.Lock()
	s := k.slow
	if s == nil {
		k.mu.Unlock()
		return
	}
	s.held++
	late := s.shortest + time.Duration(s.random.Int64N(int64(s.longest-s.shortest)+1))
	k.mu.Unlock()
	timer := time.NewTimer(late)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.over:
	}
}

// codeForAppended is the code that an appended batch is answered with, 0 mostly.
func (k *FakeKafka) codeForAppended() int16 {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.appended == nil {
		return 0
	}
	return k.appended.next()
}

// turns hands out codes, one after the other.
type turns struct {
	every int
	codes []int16
	asked int
}

func (t *turns) next() int16 {
	if t.asked++; t.asked%t.every != 0 {
		return 0
	}
	return t.codes[t.asked/t.every%len(t.codes)]
}

func (k *FakeKafka) listen(network, address string) (net.Listener, error) {
	listener, err := net.Listen(network, address)
	if err != nil {
		return nil, err
	}
	return &fakeListener{listener, k}, nil
}

type fakeListener struct {
	net.Listener
	of *FakeKafka
}

func (l *fakeListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &fakeConn{Conn: conn, of: l.of, produces: map[int32]int16{}}, nil
}
