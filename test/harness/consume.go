package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/cdcpub/cdcpub/internal/verify"
)

// ReadAll reads topics from the beginning to what was their end when it was
// called, records of open and aborted transactions included. The records of a
// partition are in offset order; partitions are mixed.
func ReadAll(ctx context.Context, brokers []string, topics ...string) ([]verify.Record, error) {
	var records []verify.Record
	err := ReadEach(ctx, brokers, topics, func(r verify.Record) error {
		records = append(records, r)
		return nil
	})
	return records, err
}

// ReadEach is ReadAll for topics that do not fit into memory. An error of each
// ends it and is returned.
func ReadEach(ctx context.Context, brokers, topics []string, each func(verify.Record) error) error {
	client, err := kgo.NewClient(append(readOptions(brokers), kgo.KeepControlRecords())...)
	if err != nil {
		return err
	}
	defer client.Close()
	left, err := listOffsets(ctx, client, newest, topics)
	if err != nil {
		return err
	}
	begin, err := listOffsets(ctx, client, oldest, topics)
	if err != nil {
		return err
	}
	starts := map[string]map[int32]kgo.Offset{}
	for p, end := range left {
		if begin[p] >= end {
			delete(left, p) // empty
			continue
		}
		if starts[p.Topic] == nil {
			starts[p.Topic] = map[int32]kgo.Offset{}
		}
		starts[p.Topic][p.Partition] = kgo.NewOffset().At(begin[p])
	}
	client.AddConsumePartitions(starts)
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetchError(ctx, fetches); err != nil {
			return fmt.Errorf("%w (%d partitions not read to their end)", err, len(left))
		}
		for iter := fetches.RecordIter(); !iter.Done(); {
			record := iter.Next()
			p := verify.TopicPartition{Topic: record.Topic, Partition: record.Partition}
			end, wanted := left[p]
			// What was appended after the call does not belong to it.
			if !wanted || record.Offset >= end {
				continue
			}
			// The last offset may be that of a control record.
			if !record.Attrs.IsControl() {
				if err := each(convert(record)); err != nil {
					return err
				}
			}
			if record.Offset == end-1 {
				delete(left, p)
			}
		}
	}
	return nil
}

// Follow reads topics from the beginning and goes on with what comes, until
// each returns false (then Follow returns nil) or ctx ends. Topics need not
// exist yet; new partitions are read too.
func Follow(ctx context.Context, brokers, topics []string, each func(verify.Record) (more bool)) error {
	client, err := kgo.NewClient(append(readOptions(brokers), kgo.ConsumeTopics(topics...))...)
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		fetches := client.PollFetches(ctx)
		if err := fetchError(ctx, fetches); err != nil {
			return err
		}
		for iter := fetches.RecordIter(); !iter.Done(); {
			if !each(convert(iter.Next())) {
				return nil
			}
		}
	}
}

func readOptions(brokers []string) []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(brokers...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadUncommitted()),
		kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.MetadataMaxAge(time.Second), // finds new topics and partitions
		kgo.UnknownTopicRetries(-1),
	}
}

// fetchError is the first error of a poll that waiting does not cure. Brokers
// come and go in tests: the client itself retries that for ever. Data that the
// client saw and that is gone is a finding, never to be read over.
func fetchError(ctx context.Context, fetches kgo.Fetches) error {
	if ctx.Err() != nil {
		return fmt.Errorf("read from Kafka: %w", context.Cause(ctx))
	}
	for _, failed := range fetches.Errors() {
		var lost *kgo.ErrDataLoss
		var answer *kerr.Error
		if errors.As(failed.Err, &lost) || errors.As(failed.Err, &answer) && !answer.Retriable {
			return fmt.Errorf("read %s/%d: %w", failed.Topic, failed.Partition, failed.Err)
		}
	}
	return nil
}

func convert(record *kgo.Record) verify.Record {
	headers := make([]verify.Header, len(record.Headers))
	for i, h := range record.Headers {
		headers[i] = verify.Header{Key: h.Key, Value: h.Value}
	}
	return verify.Record{
		Topic:     record.Topic,
		Partition: record.Partition,
		Offset:    record.Offset,
		Key:       record.Key,
		Value:     record.Value,
		Headers:   headers,
		Timestamp: record.Timestamp.UTC(),
	}
}
