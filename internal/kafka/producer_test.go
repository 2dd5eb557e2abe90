package kafka

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
)

func TestEveryRecordArrivesOnceAndInOrder(t *testing.T) {
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		t.Run(codec, func(t *testing.T) {
			c := startCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(12, "orders"))
			config := fastConfig(c.ListenAddrs()...)
			config.Compression = codec
			s := startSession(t, newTestClient(t, config), always)
			const n = 20_000
			for range n / 100 {
				s.Send(s.numbered("orders", 100, manyKeys(500)))
			}
			s.acks(n)
			requireExactly(t, c, "orders", n)
			for partition, records := range consume(t, c, "orders") {
				for _, r := range records {
					if want := partitionOf(r.Key, 12); want != partition {
						t.Fatalf("key %q is in partition %d, not %d", r.Key, partition, want)
					}
					if i := number(t, r); r.Timestamp.UnixMilli() != 1_700_000_000_000+int64(i) {
						t.Fatalf("record %d has timestamp %v", i, r.Timestamp)
					}
					if len(r.Headers) != 1 || r.Headers[0].Key != "id" || string(r.Headers[0].Value) != string(r.Value) {
						t.Fatalf("record %s has headers %v", r.Value, r.Headers)
					}
				}
			}
		})
	}
}

// leased is a slot that PostgreSQL always says is ours.
type leased func() bool

func (l leased) Leased() bool { return l() }

func (l leased) Look(context.Context) error { return nil }
