package kafka

import (
	"bytes"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/zap"

	"github.com/cdcpub/cdcpub/internal/pipeline"
	"github.com/cdcpub/cdcpub/router"
)

// BenchmarkProducer sends records of 300 bytes with 4 headers to 12 partitions
// of an in-process cluster that stores nothing, with at most 20,000 records
// unacknowledged. CPU and allocations include the cluster's share.
func BenchmarkProducer(b *testing.B) {
	for _, codec := range []string{"none", "lz4", "zstd"} {
		b.Run(codec, func(b *testing.B) { benchmarkProducer(b, codec) })
	}
}

func benchmarkProducer(b *testing.B, codec string) {
	c := startCluster(b, kfake.NumBrokers(3), kfake.SeedTopics(12, "orders"), kfake.BlackholeProduce())
	client := newTestClient(b, Config{Brokers: c.ListenAddrs(), Compression: codec})
	p := client.NewProducer("", leased(always), zap.NewNop())
	defer func() {
		p.Close(patiently(b))
		for range p.Results() {
		}
	}()
	const window, chunk = 20_000, 100
	value := bytes.Repeat([]byte(`{"amount": 12345, "state": "paid"}, `), 9)[:300]
	header := []byte("0190d5e2-7f3a-7000-8000-000000000000")
	headers := []router.Header{{Key: "id", Value: header}, {Key: "eventType", Value: header[:12]}, {Key: "aggregateVersion", Value: header[:4]}, {Key: "schemaVersion", Value: header[:1]}}
	keys := make([][]byte, 1000)
	for i := range keys {
		keys[i] = strconv.AppendInt(nil, int64(100000+i), 10)
	}
	at := time.UnixMilli(1_700_000_000_000)
	b.ReportAllocs()
	b.ResetTimer()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	sent, acked := 0, 0
	for acked < b.N {
		for sent < b.N && sent-acked < window {
			messages := make([]pipeline.Message, min(chunk, b.N-sent))
			now := time.Now().UnixMicro()
			for i := range messages {
				messages[i] = pipeline.Message{Seq: uint64(sent), Committed: now, Record: router.Record{
					Topic: "orders", Key: keys[sent%len(keys)], Value: value, Headers: headers, Timestamp: at, OccurredAt: now,
				}}
				sent++
			}
			p.Send(messages)
		}
		acked += len((<-p.Results()).Acked)
	}
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N), "mallocs/record")
}

// BenchmarkBatch fills a batch with 500 records of 300 bytes with 4 headers. It is
// encoded and compressed by sarama, whose part BenchmarkProducer includes.
func BenchmarkBatch(b *testing.B) {
	const records = 500
	value := bytes.Repeat([]byte("v"), 300)
	headers := []router.Header{{Key: "id", Value: value[:36]}, {Key: "eventType", Value: value[:12]}, {Key: "aggregateVersion", Value: value[:4]}, {Key: "schemaVersion", Value: value[:1]}}
	var q queue
	for i := range records {
		record := router.Record{Topic: "orders", Key: strconv.AppendInt(nil, int64(i), 10), Value: value, Headers: headers, Timestamp: time.UnixMilli(1_700_000_000_000)}
		q.push(entry{message: pipeline.Message{Seq: uint64(i), Record: record}, size: recordSize(&record)})
	}
	filled := new(batch)
	b.ReportAllocs()
	for b.Loop() {
		filled.fill(&q, records, sarama.CompressionLZ4)
		filled.stamp(identity{1, 2}, 3)
		filled.release()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*records), "ns/record")
}
