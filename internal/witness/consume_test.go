package witness

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/cdcpub/cdcpub/internal/verify"
)

func startBroker(t *testing.T, partitions int32) []string {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster.ListenAddrs()
}

// produce writes the values from..to-1, value n to partition n%partitions.
func produce(t *testing.T, brokers []string, partitions, from, to int) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for n := from; n < to; n++ {
		r := &kgo.Record{
			Topic: "orders", Partition: int32(n % partitions), Value: []byte(strconv.Itoa(n)),
			Headers: []kgo.RecordHeader{{Key: "id", Value: []byte("event")}, {Key: "null"}},
		}
		if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// inOrder fails the test unless records are 0..n-1 with each partition by
// rising offset.
func inOrder(t *testing.T, records []verify.Record, partitions, n int) {
	t.Helper()
	if len(records) != n {
		t.Fatalf("%d records, want %d", len(records), n)
	}
	next := map[int32]int64{}
	for _, r := range records {
		want := fmt.Sprint(r.Offset*int64(partitions) + int64(r.Partition))
		if r.Offset != next[r.Partition] || string(r.Value) != want || r.Key != nil || len(r.Headers) != 2 || r.Headers[1].Value != nil {
			t.Errorf("partition %d, offset %d, want offset %d: %+v", r.Partition, r.Offset, next[r.Partition], r)
		}
		next[r.Partition]++
	}
}

func TestReadAllReadsToTheEndOfEveryPartition(t *testing.T) {
	brokers := startBroker(t, 4)
	produce(t, brokers, 3, 0, 30) // partition 3 stays empty
	records, err := ReadAll(t.Context(), brokers, "orders")
	if err != nil {
		t.Fatal(err)
	}
	inOrder(t, records, 3, 30)
	for name, endOffsets := range map[string]func(context.Context, []string, ...string) (map[verify.TopicPartition]int64, error){
		"of the leaders": EndOffsets, "agreed": AgreedEndOffsets,
	} {
		ends, err := endOffsets(t.Context(), brokers, "orders")
		if err != nil {
			t.Fatal(err)
		}
		for p, want := range []int64{10, 10, 10, 0} {
			if got := ends[verify.TopicPartition{Topic: "orders", Partition: int32(p)}]; got != want {
				t.Errorf("%s: partition %d ends at %d, want %d", name, p, got, want)
			}
		}
	}
}

func TestEndOffsetsAreNotAgreedOnWhileABrokerIsSilent(t *testing.T) {
	brokers := append(startBroker(t, 1), "127.0.0.1:1")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if ends, err := AgreedEndOffsets(ctx, brokers, "orders"); err == nil {
		t.Errorf("%v", ends)
	}
}

func TestConsumerSeesWhatCameBeforeItAndWhatComesLater(t *testing.T) {
	brokers := startBroker(t, 2)
	produce(t, brokers, 2, 0, 10)
	told := 0
	began := time.Now()
	c := NewConsumer(brokers, []string{"orders"}, func(arrived []verify.Record, at time.Time) {
		told += len(arrived)
		if at.Before(began) || at.After(time.Now()) {
			t.Errorf("arrived at %v", at)
		}
	})
	if _, err := c.WaitN(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	produce(t, brokers, 2, 10, 20)
	records, err := c.WaitN(t.Context(), 20)
	if err != nil {
		t.Fatal(err)
	}
	inOrder(t, records, 2, 20)
	c.Close()
	if told != 20 || len(c.Records()) != 20 || c.Err() == nil {
		t.Errorf("told %d, kept %d, error %v", told, len(c.Records()), c.Err())
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	c := NewConsumer(startBroker(t, 1), []string{"orders"}, nil)
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.WaitN(ctx, 1); err == nil {
		t.Error("it returned a record that nobody wrote")
	}
}
