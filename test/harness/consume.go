package harness

import (
	"context"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/internal/witness"
)

// ReadAll reads topics from the beginning to what was their end when it was
// called, records of open and aborted transactions included. The records of a
// partition are in offset order; partitions are mixed.
func ReadAll(ctx context.Context, brokers []string, topics ...string) ([]verify.Record, error) {
	return witness.ReadAll(ctx, brokers, topics...)
}

// ReadEach is ReadAll for topics that do not fit into memory. An error of each
// ends it and is returned.
func ReadEach(ctx context.Context, brokers, topics []string, each func(verify.Record) error) error {
	return witness.ReadEach(ctx, brokers, topics, each)
}

// Follow reads topics from the beginning and goes on with what comes, until
// each returns false (then Follow returns nil) or ctx ends. Topics need not
// exist yet; new partitions are read too.
func Follow(ctx context.Context, brokers, topics []string, each func(verify.Record) (more bool)) error {
	return witness.Follow(ctx, brokers, topics, func(arrived []verify.Record, _ time.Time) bool {
		for _, r := range arrived {
			if !each(r) {
				return false
			}
		}
		return true
	})
}

// Consumer follows topics in the background and keeps every record, so that a
// test can wait for what it expects. Its methods are safe from any goroutine.
type Consumer = witness.Consumer

// NewConsumer follows the topics until the test ends.
func NewConsumer(t testing.TB, brokers []string, topics ...string) *Consumer {
	t.Helper()
	c := witness.NewConsumer(brokers, topics, nil)
	t.Cleanup(c.Close)
	return c
}

// EndOffsets returns the end offset (high watermark) of every partition of the
// topics: the offset that the next record gets.
func EndOffsets(ctx context.Context, brokers []string, topics ...string) (map[verify.TopicPartition]int64, error) {
	return witness.EndOffsets(ctx, brokers, topics...)
}

// AgreedEndOffsets is EndOffsets of brokers that all answer and agree who leads;
// else it is an error.
func AgreedEndOffsets(ctx context.Context, brokers []string, topics ...string) (map[verify.TopicPartition]int64, error) {
	return witness.AgreedEndOffsets(ctx, brokers, topics...)
}

// Partitions returns how many partitions each topic has.
func Partitions(ctx context.Context, brokers []string, topics ...string) (map[string]int32, error) {
	return witness.Partitions(ctx, brokers, topics...)
}
