package verify_test

import (
	"strconv"
	"time"

	"github.com/jackc/pglogrepl"
	"pgregory.net/rapid"

	"github.com/cdcpub/cdcpub/internal/verify"
)

var firstCommit = time.Date(2026, 3, 1, 12, 0, 0, 123_456_000, time.UTC)

// history has n rows of one aggregate, e1 with version 1 and so on, each in
// a transaction of its own that ends at LSN 16 times its number.
func history(n int) []verify.Row {
	rows := make([]verify.Row, n)
	for i := range rows {
		number := i + 1
		rows[i] = verify.Row{
			CommitEnd:     pglogrepl.LSN(16 * number),
			CommitTime:    firstCommit.Add(time.Duration(number) * time.Second),
			EventID:       "e" + strconv.Itoa(number),
			AggregateType: "order",
			AggregateID:   "42",
			Version:       int64(number),
			EventType:     "OrderPlaced",
			Payload:       []byte(`{"n": ` + strconv.Itoa(number) + `}`),
		}
	}
	return rows
}

const orderTopic = "outbox.event.order"

// record is what the default configuration makes of a row, written out here so
// that the tests do not believe the package's own expectation.
func record(r verify.Row, partition int32, offset int64) verify.Record {
	return verify.Record{
		Topic:     "outbox.event." + r.AggregateType,
		Partition: partition,
		Offset:    offset,
		Key:       []byte(r.AggregateID),
		Value:     r.Payload,
		Headers: []verify.Header{
			{Key: "id", Value: []byte(r.EventID)},
			{Key: "aggregateVersion", Value: []byte(strconv.FormatInt(r.Version, 10))},
			{Key: "eventType", Value: []byte(r.EventType)},
		},
		Timestamp: r.CommitTime.Truncate(time.Millisecond),
	}
}

// partitionOf42 is where the Java client puts key "42" among 12 partitions.
const partitionOf42 = 4

// topic holds the rows with these numbers, in this order.
func topic(rows []verify.Row, numbers ...int) []verify.Record {
	records := make([]verify.Record, len(numbers))
	for n, number := range numbers {
		records[n] = record(rows[number-1], partitionOf42, int64(n))
	}
	return records
}

func options() verify.Options {
	return verify.Options{Partitions: map[string]int32{orderTopic: 12}, Rewinds: -1}
}

func end(offset int64) map[verify.TopicPartition]int64 {
	return map[verify.TopicPartition]int64{{Topic: orderTopic, Partition: partitionOf42}: offset}
}

var allKinds = []verify.Kind{
	verify.Lost, verify.OutOfOrder, verify.VersionInverted, verify.Foreign, verify.Altered,
	verify.WrongPartition, verify.ExcessRewinds, verify.EarlyConfirmed, verify.NeedlessRepeat,
	verify.QuarantinedPublished, verify.Input,
}

type counts map[verify.Kind]int

func broken(r verify.Report) counts {
	c := counts{}
	for _, k := range allKinds {
		if n := r.Count(k); n > 0 {
			c[k] = n
		}
	}
	return c
}

// requireListed checks that the list agrees with the counts and that every
// violation is a sentence.
func requireListed(t rapid.TB, r verify.Report) {
	t.Helper()
	listed := counts{}
	for _, v := range r.Violations {
		listed[v.Kind]++
		if v.Detail == "" {
			t.Errorf("violation without a sentence: %+v", v)
		}
	}
	for k, n := range broken(r) {
		if listed[k] != min(n, 20) {
			t.Errorf("%s: %d counted, %d listed", k, n, listed[k])
		}
	}
	if r.OK() != (len(r.Violations) == 0) {
		t.Errorf("OK is %v with %d violations", r.OK(), len(r.Violations))
	}
}
