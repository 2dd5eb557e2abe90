package bench

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// warmTime is how long the broker is written to before anything is measured. Its
// just-in-time compiler takes about as long to be done, and takes a core that
// the first subjects would then lack.
const warmTime = 20 * time.Second

// warm writes records like those of the loads, in batches like theirs.
func (o offsets) warm(b *testing.B, broker string) {
	t := topics{"bench.warm", 1, 12}
	o.create(b, t)
	defer o.remove(b, t)
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.DefaultProduceTopic(t.name(0)),
		kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.MaxBufferedRecords(5000))
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(b.Context(), warmTime)
	defer cancel()
	var failed atomic.Pointer[error]
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Appendf(nil, "order-%d", n%10_000)
		record := &kgo.Record{Key: key, Value: fmt.Appendf(nil, `{"note": "%s", "number": %d}`, strings.Repeat("x", 200), n),
			Headers: []kgo.RecordHeader{{Key: "id", Value: fmt.Appendf(nil, "%036d", n)}, {Key: "eventType", Value: key}}}
		client.Produce(b.Context(), record, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.Store(&err)
			}
		})
	}
	if err := client.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := failed.Load(); err != nil {
		b.Fatal(*err)
	}
}
