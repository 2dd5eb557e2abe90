package kafka

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cdcpub/cdcpub/internal/pipeline"
	"github.com/cdcpub/cdcpub/router"
)

// poisoned makes the cluster refuse batches that hold one of the numbers while
// it is poison.
type poisoned struct {
	c         *kfake.Cluster
	withIndex bool
	numbers   atomic.Pointer[[]uint64]
	refused   atomic.Int64
}

func poison(t *testing.T, c *kfake.Cluster, withIndex bool, numbers ...uint64) *poisoned {
	p := &poisoned{c: c, withIndex: withIndex}
	p.numbers.Store(&numbers)
	c.ControlKey(0, func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return p.answer(t, r.(*kmsg.ProduceRequest))
	})
	return p
}

// cure makes everything acceptable but the numbers.
func (p *poisoned) cure(numbers ...uint64) { p.numbers.Store(&numbers) }

// answer refuses a request of one partition as a broker does.
func (p *poisoned) answer(t *testing.T, r *kmsg.ProduceRequest) (kmsg.Response, error, bool) {
	partition := r.Topics[0].Partitions[0]
	var b kmsg.RecordBatch
	if err := b.ReadFrom(partition.Records); err != nil {
		t.Errorf("batch: %v", err)
	}
	records, err := kfake.BatchRecords(b)
	if err != nil {
		t.Errorf("records: %v", err)
	}
	answer := kmsg.NewProduceResponseTopicPartition()
	answer.Partition = partition.Partition
	answer.ErrorCode = kerr.InvalidRecord.Code
	for i, record := range records {
		n, err := strconv.ParseUint(string(record.Value), 10, 64)
		if err != nil || !slices.Contains(*p.numbers.Load(), n) {
			continue
		}
		bad := kmsg.NewProduceResponseTopicPartitionErrorRecord()
		bad.RelativeOffset = int32(i)
		text := "poison " + strconv.FormatUint(n, 10)
		bad.ErrorMessage = &text
		answer.ErrorRecords = append(answer.ErrorRecords, bad)
	}
	if len(answer.ErrorRecords) == 0 {
		return nil, nil, false
	}
	p.refused.Add(1)
	if !p.withIndex {
		answer.ErrorRecords = nil
	}
	response := r.ResponseKind().(*kmsg.ProduceResponse)
	topic := kmsg.NewProduceResponseTopic()
	topic.Topic = r.Topics[0].Topic
	topic.Partitions = append(topic.Partitions, answer)
	response.Topics = append(response.Topics, topic)
	return response, nil, true
}

func TestPoisonStopsItsPartitionUntilItIsCured(t *testing.T) {
	const n = 200
	for name, bad := range map[string][]uint64{
		"first": {0}, "middle": {77}, "last": {n - 1}, "two adjacent": {100, 101}, "two apart": {3, 150}, "most": {1, 2, 3, 5, 6, 7, 8},
	} {
		for _, withIndex := range []bool{true, false} {
			t.Run(name+" index "+strconv.FormatBool(withIndex), func(t *testing.T) {
				t.Parallel()
				c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
				p := poison(t, c, withIndex, bad...)
				s := startSession(t, newTestClient(t, fastConfig(c.ListenAddrs()...)), always)
				s.Send(s.numbered("orders", n, oneKey))
				for i, number := range bad {
					got := s.rejects(i + 1)
					if got.Message.Seq != number || got.Partition != 0 || got.MayBePublished || !errors.Is(got.Cause, sarama.ErrInvalidRecord) {
						t.Fatalf("rejected %+v, expected %d", got, number)
					}
					if withIndex && !strings.Contains(got.Cause.Error(), "poison") {
						t.Errorf("cause %v lacks the broker's text", got.Cause)
					}
					// What was in front is acknowledged, nothing behind is.
					s.acks(int(number))
					// It is tried again in place, and is the same rejection each time.
					refused := p.refused.Load()
					for ctx := patiently(t); p.refused.Load() < refused+2 && ctx.Err() == nil; {
						rest(ctx)
					}
					if acked, rejected, _ := s.got(); len(acked) != int(number) || len(rejected) != i+1 {
						t.Errorf("%d acked and %d rejected with %d in the way", len(acked), len(rejected), number)
					}
					p.cure(bad[i+1:]...)
				}
				s.acks(n)
				requireExactly(t, c, "orders", n)
				if _, rejected, _ := s.got(); len(rejected) != len(bad) {
					t.Errorf("%d rejections for %d bad records", len(rejected), len(bad))
				}
			})
		}
	}
}

func TestNothingPassesAPoisonedRecord(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	p := poison(t, c, false, 50)
	s := startSession(t, newTestClient(t, fastConfig(c.ListenAddrs()...)), always)
	s.Send(s.numbered("orders", 100, oneKey))
	s.rejects(1)
	s.Send(s.numbered("orders", 100, oneKey))
	refused := p.refused.Load()
	for ctx := patiently(t); p.refused.Load() < refused+3 && ctx.Err() == nil; {
		rest(ctx)
	}
	s.stop(patience)
	var missing []uint64
	for i := uint64(50); i < 200; i++ {
		missing = append(missing, i)
	}
	requireExactly(t, c, "orders", 200, missing...)
}

// noise is incompressible.
func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestBatchTooLargeTogetherIsSplitAndNotRejected(t *testing.T) {
	for _, codec := range []string{"none", "lz4"} {
		t.Run(codec, func(t *testing.T) {
			c := startCluster(t, kfake.NumBrokers(1))
			limit := "5000"
			if err := c.CreateTopic("orders", 1, map[string]string{"max.message.bytes": limit}); err != nil {
				t.Fatal(err)
			}
			config := fastConfig(c.ListenAddrs()...)
			config.Compression = codec
			s := startSession(t, newTestClient(t, config), always)
			messages := s.numbered("orders", 300, oneKey)
			for i := range messages {
				messages[i].Record.Headers = []router.Header{{Key: "noise", Value: noise(400 + i)}}
			}
			s.Send(messages)
			s.acks(300)
			if _, rejected, _ := s.got(); len(rejected) > 0 {
				t.Errorf("rejected: %v", rejected[0].Cause)
			}
			requireExactly(t, c, "orders", 300)
		})
	}
}

func TestRecordTooLargeAloneIsRejectedWithItsSizeAndLimit(t *testing.T) {
	for name, forbidden := range map[string]bool{"limit known": false, "describe forbidden": true} {
		t.Run(name, func(t *testing.T) {
			c := startCluster(t, kfake.NumBrokers(1))
			if err := c.CreateTopic("orders", 1, map[string]string{"max.message.bytes": "5000"}); err != nil {
				t.Fatal(err)
			}
			wantLimit := 5000
			if forbidden {
				wantLimit = 0
				c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeConfigs}, Err: kerr.TopicAuthorizationFailed, Count: -1})
			}
			config := fastConfig(c.ListenAddrs()...)
			config.Compression = "none"
			s := startSession(t, newTestClient(t, config), always)
			messages := s.numbered("orders", 100, oneKey)
			messages[40].Record.Headers = []router.Header{{Key: "noise", Value: noise(6000)}}
			s.Send(messages)
			r := s.rejects(1)
			if r.Message.Seq != 40 || r.Limit != wantLimit || r.Size < 6000 || r.Size > 6200 || !errors.Is(r.Cause, sarama.ErrMessageSizeTooLarge) {
				t.Errorf("rejection %+v", r)
			}
			s.stop(patience)
			if len(s.acked) != 40 {
				t.Errorf("%d acked", len(s.acked))
			}
		})
	}
}

// Noise grows by compression: the limit that RejectedError names is enough for
// every codec. And after the record was refused by another limit, that one is
// reported.
func TestTheLimitThatIsNamedIsEnoughAndNew(t *testing.T) {
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		t.Run(codec, func(t *testing.T) {
			c := startCluster(t, kfake.NumBrokers(1))
			if err := c.CreateTopic("orders", 1, map[string]string{"max.message.bytes": "5000"}); err != nil {
				t.Fatal(err)
			}
			config := fastConfig(c.ListenAddrs()...)
			config.Compression = codec
			s := startSession(t, newTestClient(t, config), always)
			m := s.numbered("orders", 1, oneKey)
			m[0].Record.Headers = []router.Header{{Key: "noise", Value: noise(1_900_000)}}
			s.Send(m)
			first := s.rejects(1)
			setLimit(t, c, "orders", first.Size-1000)
			s.until("the new limit", func() bool {
				return len(s.again) > 0 && s.again[len(s.again)-1].Limit == first.Size-1000
			})
			named := regexp.MustCompile(`raise max.message.bytes of the topic to (\d+)`).FindStringSubmatch((&pipeline.RejectedError{Rejection: *first}).Error())
			if named == nil {
				t.Fatalf("names no limit: %v", &pipeline.RejectedError{Rejection: *first})
			}
			limit, err := strconv.Atoi(named[1])
			if err != nil {
				t.Fatal(err)
			}
			setLimit(t, c, "orders", limit)
			s.acks(1)
		})
	}
}

func setLimit(t *testing.T, c *kfake.Cluster, topic string, limit int) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	entry := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	value := strconv.Itoa(limit)
	entry.Name, entry.Value = "max.message.bytes", &value
	resource.Configs = append(resource.Configs, entry)
	request.Resources = append(request.Resources, resource)
	answer, err := request.RequestWith(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	if err := kerr.ErrorForCode(answer.Resources[0].ErrorCode); err != nil {
		t.Fatal(err)
	}
}

// The broker's verdict on a single record agrees with Size to the byte.
func TestSizeIsWhatTheBrokerCompares(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1))
	config := fastConfig(c.ListenAddrs()...)
	config.Compression = "none"
	s := startSession(t, newTestClient(t, config), always)
	outcomes := 0
	for _, size := range []int{0, 1, 63, 64, 100, 8191, 8192, 20_000} {
		m := message("", "some key", 7)
		m.Record.Value = bytes.Repeat([]byte("x"), size)
		m.Record.Headers = append(m.Record.Headers, router.Header{Key: "null"})
		limit := batchOverhead + recordSize(&m.Record)
		for _, less := range []int{0, 1} {
			topic := "t" + strconv.Itoa(size) + "-" + strconv.Itoa(less)
			if err := c.CreateTopic(topic, 1, map[string]string{"max.message.bytes": strconv.Itoa(limit - less)}); err != nil {
				t.Fatal(err)
			}
			m.Record.Topic = topic
			_, before, _ := s.got()
			outcomes++
			s.Send([]pipeline.Message{m})
			s.until("an outcome", func() bool { return len(s.acked)+len(s.rejected) == outcomes })
			_, after, _ := s.got()
			if got := len(after) > len(before); got != (less == 1) {
				t.Errorf("value of %d, %d under its size: rejected %t", size, less, got)
			}
		}
	}
}

func TestRecordThatCannotBeEncodedIsRejected(t *testing.T) {
	for name, spoil := range map[string]func(*router.Record){
		"before 1970":    func(r *router.Record) { r.Timestamp = time.Date(1969, 12, 31, 23, 59, 59, 0, time.UTC) },
		"zero time":      func(r *router.Record) { r.Timestamp = time.Time{} },
		"far future":     func(r *router.Record) { r.Timestamp = time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC) },
		"too many bytes": func(r *router.Record) { r.Value = make([]byte, maxRecordBytes) },
	} {
		t.Run(name, func(t *testing.T) {
			c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
			s := startSession(t, newTestClient(t, fastConfig(c.ListenAddrs()...)), always)
			messages := s.numbered("orders", 10, oneKey)
			spoil(&messages[4].Record)
			s.Send(messages)
			if r := s.rejects(1); r.Message.Seq != 4 || r.MayBePublished {
				t.Errorf("rejection %+v", r)
			}
			s.acks(4)
			s.stalls("stalled by it", func(p pipeline.PartitionStatus) bool {
				return strings.HasPrefix(p.Stall, "rejected: cannot be encoded") && p.Queued == 6
			})
			s.stop(patience)
			requireExactly(t, c, "orders", 10, 4, 5, 6, 7, 8, 9)
		})
	}
}

func TestFirstAndLastTimestampsThatCanBeEncoded(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	s := startSession(t, newTestClient(t, fastConfig(c.ListenAddrs()...)), always)
	messages := s.numbered("orders", 4, oneKey)
	times := []time.Time{latestTimestamp, time.UnixMilli(0), latestTimestamp, time.UnixMilli(1)}
	for i := range messages {
		messages[i].Record.Timestamp = times[i]
	}
	s.Send(messages)
	s.acks(4)
	for i, r := range consume(t, c, "orders")[0] {
		if !r.Timestamp.Equal(times[i]) {
			t.Errorf("record %d has timestamp %v, not %v", i, r.Timestamp, times[i])
		}
	}
}

func TestIllegalTopicNameIsRejected(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	s := startSession(t, newTestClient(t, fastConfig(c.ListenAddrs()...)), always)
	names := []string{"outbox.event.Order Created", "", ".", "..", strings.Repeat("x", 250), "größe"}
	for _, name := range names {
		s.Send(s.numbered(name, 2, oneKey))
	}
	s.Send(s.numbered("orders", 5, oneKey))
	s.acks(5)
	for i := range names {
		if r := s.rejects(i + 1); r.Message.Record.Topic != names[i] || r.Message.Seq != uint64(2*i) || r.Partition != -1 {
			t.Errorf("rejection %d: %+v", i, r)
		}
	}
}
