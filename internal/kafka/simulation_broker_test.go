package kafka

import (
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// wired is the model cluster behind connections that carry Kafka's protocol, so
// that a Producer can be driven as it is, with its goroutines, its links and
// sarama underneath. mu guards the world.
type wired struct {
	mu    sync.Mutex
	w     *world
	conns atomic.Uint64
}

// dial returns a Config.Dial for a process; session is the one it runs.
func (n *wired) dial(session *atomic.Pointer[simulated]) func(context.Context, string, string) (net.Conn, error) {
	return func(_ context.Context, _, address string) (net.Conn, error) {
		rng := rand.New(rand.NewPCG(n.w.seed, n.conns.Add(1)<<32))
		if n.troubled(rng, 20) {
			n.note(evDialFails)
			return nil, syscall.ECONNREFUSED
		}
		ours, theirs := net.Pipe()
		c := &wiredConn{wired: n, Conn: theirs, rng: rng, session: session.Load(), frames: make(chan []byte, 1000)}
		if strings.HasPrefix(address, "kafka-1:") {
			c.broker = 1
		}
		go c.read()
		go c.serve()
		return ours, nil
	}
}

// troubled: one time of n something goes wrong, until the world heals.
func (n *wired) troubled(rng *rand.Rand, of int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.w.healing && rng.IntN(of) == 0
}

func (n *wired) note(e event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.w.count(e)
}

// wiredConn is a broker's end of a connection. What was written to it is
// handled even when the sender has gone, unless it is lost.
type wiredConn struct {
	net.Conn
	*wired
	rng     *rand.Rand
	broker  int32
	session *simulated
	frames  chan []byte
	gone    atomic.Bool // the sender
}

func (c *wiredConn) read() {
	defer close(c.frames)
	defer c.gone.Store(true)
	for {
		var size [4]byte
		if _, err := io.ReadFull(c.Conn, size[:]); err != nil {
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(c.Conn, frame); err != nil {
			return
		}
		c.frames <- frame
	}
}

func (c *wiredConn) serve() {
	defer func() { _ = c.Close() }()
	lost := false
	for frame := range c.frames {
		if introduces(frame) {
			_, _ = c.Write(c.handle(frame))
			continue
		}
		c.pause()
		if c.gone.Load() && c.rng.IntN(2) == 0 {
			time.Sleep(time.Duration(c.rng.IntN(30_000)) * time.Millisecond)
		}
		if c.troubled(c.rng, 40) {
			c.note(evCut)
			_ = c.Close()
			lost = lost || c.rng.IntN(3) == 0
		}
		switch late := c.gone.Load(); {
		case lost:
			c.note(evLateGone)
			continue
		case late:
			c.note(evLate)
		}
		answer := c.handle(frame)
		c.pause()
		_, _ = c.Write(answer) // its end is seen by read
	}
}

// introduces tells the first request on a connection. sarama holds a mutex while
// it waits for the answer, and a bubble's clock stands still meanwhile.
func introduces(frame []byte) bool {
	return int16(binary.BigEndian.Uint16(frame)) == kmsg.ApiVersions.Int16()
}

// pause is the time that the network and the broker take.
func (c *wiredConn) pause() {
	if c.troubled(c.rng, 30) {
		time.Sleep(time.Duration(c.rng.IntN(20_000)) * time.Millisecond)
		return
	}
	time.Sleep(time.Duration(c.rng.IntN(2000)) * time.Microsecond)
}

// handle answers a request (Kafka protocol, "Request Header").
func (c *wiredConn) handle(frame []byte) []byte {
	key, version := int16(binary.BigEndian.Uint16(frame)), int16(binary.BigEndian.Uint16(frame[2:]))
	correlation, rest := frame[4:8], frame[8:]
	if n := int16(binary.BigEndian.Uint16(rest)); n > 0 {
		rest = rest[n:]
	}
	rest = rest[2:]
	request := kmsg.RequestForKey(key)
	request.SetVersion(version)
	if request.IsFlexible() {
		rest = rest[1:] // no tags
	}
	if err := request.ReadFrom(rest); err != nil {
		panic(err)
	}
	response := c.answer(request)
	response.SetVersion(version)
	answer := append(make([]byte, 4, 256), correlation...)
	if response.IsFlexible() && !introduces(frame) {
		answer = append(answer, 0)
	}
	answer = response.AppendTo(answer)
	binary.BigEndian.PutUint32(answer, uint32(len(answer)-4))
	return answer
}

func (c *wiredConn) answer(request kmsg.Request) kmsg.Response {
	if r, ok := request.(*kmsg.ProduceRequest); ok {
		return c.produce(r)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r := request.(type) {
	case *kmsg.MetadataRequest:
		return c.metadata()
	case *kmsg.InitProducerIDRequest:
		response := kmsg.NewPtrInitProducerIDResponse()
		id := identity{r.ProducerID, r.ProducerEpoch}
		code := sarama.ErrNoError
		if r.TransactionalID == nil {
			id = c.w.cluster.newProducerID()
		} else {
			id, code = c.w.cluster.take(id)
		}
		response.ProducerID, response.ProducerEpoch, response.ErrorCode = id.producer, id.epoch, int16(code)
		return response
	case *kmsg.FindCoordinatorRequest:
		response := kmsg.NewPtrFindCoordinatorResponse()
		response.Host, response.Port = "kafka-0", 9092
		return response
	case *kmsg.ApiVersionsRequest:
		response := kmsg.NewPtrApiVersionsResponse()
		for key, newest := range map[int16]int16{0: 9, 3: 11, 10: 3, 18: 3, 22: 4, 32: 2} {
			offered := kmsg.NewApiVersionsResponseApiKey()
			offered.ApiKey, offered.MaxVersion = key, newest
			response.ApiKeys = append(response.ApiKeys, offered)
		}
		return response
	default:
		return request.ResponseKind()
	}
}

func (c *wiredConn) metadata() kmsg.Response {
	response := kmsg.NewPtrMetadataResponse()
	for id, host := range []string{"kafka-0", "kafka-1"} {
		b := kmsg.NewMetadataResponseBroker()
		b.NodeID, b.Host, b.Port = int32(id), host, 9092
		response.Brokers = append(response.Brokers, b)
	}
	t := kmsg.NewMetadataResponseTopic()
	t.Topic, t.TopicID = kmsg.StringPtr(simulatedTopic), [16]byte{1}
	for i := range c.w.cluster.partitions {
		p := kmsg.NewMetadataResponseTopicPartition()
		p.Partition, p.Leader = int32(i), c.w.cluster.partitions[i].leader
		t.Partitions = append(t.Partitions, p)
	}
	response.Topics = append(response.Topics, t)
	return response
}

func (c *wiredConn) produce(produce *kmsg.ProduceRequest) kmsg.Response {
	r := new(request)
	for _, t := range produce.Topics {
		for _, p := range t.Partitions {
			r.parts = append(r.parts, readBatch(c.session.number, p.Partition, p.Records))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	leader := &conn{session: c.session, broker: c.broker}
	leader.arrive(r, c.rng)
	if r.waiting {
		c.mu.Unlock()
		c.pause()
		c.mu.Lock()
		leader.replicate(r)
	}
	response := produce.ResponseKind().(*kmsg.ProduceResponse)
	t := kmsg.NewProduceResponseTopic()
	t.Topic = simulatedTopic
	for i, v := range r.answers {
		p := kmsg.NewProduceResponseTopicPartition()
		p.Partition, p.ErrorCode, p.BaseOffset = r.parts[i].partition, int16(v.code), v.offset
		for _, index := range v.culprits {
			culprit := kmsg.NewProduceResponseTopicPartitionErrorRecord()
			culprit.RelativeOffset = index
			p.ErrorRecords = append(p.ErrorRecords, culprit)
		}
		t.Partitions = append(t.Partitions, p)
	}
	response.Topics = append(response.Topics, t)
	return response
}

// readBatch reads what sarama has encoded.
func readBatch(session int, partition int32, raw []byte) sentBatch {
	var wire kmsg.RecordBatch
	if err := wire.ReadFrom(raw); err != nil {
		panic(err)
	}
	b := sentBatch{
		partition: partition, session: session, identity: identity{wire.ProducerID, wire.ProducerEpoch},
		sequence: wire.FirstSequence, first: wire.FirstTimestamp,
	}
	rest := wire.Records
	for range wire.NumRecords {
		size, n := binary.Varint(rest)
		var r kmsg.Record
		if err := r.ReadFrom(rest[:n+int(size)]); err != nil {
			panic(err)
		}
		rest = rest[n+int(size):]
		b.rows = append(b.rows, int32(binary.BigEndian.Uint32(r.Value)))
		record := sarama.Record{Key: r.Key, Value: r.Value, TimestampDelta: time.Duration(r.TimestampDelta64) * time.Millisecond}
		for _, h := range r.Headers {
			record.Headers = append(record.Headers, &sarama.RecordHeader{Key: []byte(h.Key), Value: h.Value})
		}
		b.records = append(b.records, record)
	}
	return b
}
