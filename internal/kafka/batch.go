package kafka

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/IBM/sarama"

	"github.com/cdcpub/cdcpub/router"
)

const (
	// batchOverhead is the header of a record batch of format 2, as
	// max.message.bytes counts it (Kafka protocol, "Record Batch").
	batchOverhead = 61
	// deltaAllowance is how much a record may grow behind others in a batch,
	// by its offset and timestamp deltas.
	deltaAllowance = 6
	// maxRequestBytes bounds the batches of one produce request together,
	// before compression. A larger record goes alone.
	maxRequestBytes = 8 << 20
	// maxRecordBytes is the largest record that sarama encodes: its
	// MaxRequestSize (100 MiB, applied before and after compression) less
	// room for the request around it. Brokers close the connection on
	// requests above socket.request.max.bytes, which is 100 MiB too.
	maxRecordBytes = 100<<20 - 64<<10
)

// latestTimestamp is the last millisecond that sarama encodes: it computes in
// int64 nanoseconds.
var latestTimestamp = time.UnixMilli(math.MaxInt64 / int64(time.Millisecond))

// batch is one record batch and the arenas its parts live in, so that a batch
// costs no allocation once the arenas have grown.
type batch struct {
	wire    sarama.RecordBatch
	records []sarama.Record
	headers []sarama.RecordHeader
	names   []byte
	// The wire form wants pointers.
	recordPointers []*sarama.Record
	headerPointers []*sarama.RecordHeader
	// size is the estimate of the encoded size before compression, payload the
	// sum of the keys, values and headers alone.
	size, payload int
}

// count is the number of records in b.
func (b *batch) count() int { return len(b.wire.Records) }

// fill makes b the batch of the first n entries of q, which are encodable.
// Everything but the producer id, epoch and sequence is a function of the
// entries alone.
func (b *batch) fill(q *queue, n int, codec sarama.CompressionCodec) {
	b.grow(q, n)
	first := q.at(0).message.Record.Timestamp.UnixMilli()
	latest := first
	for i := range n {
		record := &q.at(i).message.Record
		millis := record.Timestamp.UnixMilli()
		latest = max(latest, millis)
		b.records = append(b.records, sarama.Record{
			TimestampDelta: time.Duration(millis-first) * time.Millisecond,
			OffsetDelta:    int64(i),
			Key:            record.Key,
			Value:          record.Value,
			Headers:        b.appendHeaders(record.Headers),
		})
		b.recordPointers = append(b.recordPointers, &b.records[i])
		b.size += q.at(i).size + deltaAllowance
		b.payload += len(record.Key) + len(record.Value)
	}
	b.wire = sarama.RecordBatch{
		Version:          2,
		Codec:            codec,
		CompressionLevel: sarama.CompressionLevelDefault,
		LastOffsetDelta:  int32(n - 1),
		FirstTimestamp:   time.UnixMilli(first),
		MaxTimestamp:     time.UnixMilli(latest),
		Records:          b.recordPointers,
	}
}

// grow empties the arenas and makes room for n entries: pointers into them
// must stay valid while they fill.
func (b *batch) grow(q *queue, n int) {
	headers, names, values := 0, 0, 0
	for i := range n {
		for j := range q.at(i).message.Record.Headers {
			h := &q.at(i).message.Record.Headers[j]
			headers++
			names += len(h.Key)
			values += len(h.Value)
		}
	}
	b.records = emptied(b.records, n)
	b.recordPointers = emptied(b.recordPointers, n)
	b.headers = emptied(b.headers, headers)
	b.headerPointers = emptied(b.headerPointers, headers)
	b.names = emptied(b.names, names)
	b.size, b.payload = batchOverhead, names+values
}

func emptied[T any](s []T, capacity int) []T {
	if cap(s) < capacity {
		return make([]T, 0, capacity+capacity/4)
	}
	return s[:0]
}

func (b *batch) appendHeaders(headers []router.Header) []*sarama.RecordHeader {
	start := len(b.headerPointers)
	for i := range headers {
		name := len(b.names)
		b.names = append(b.names, headers[i].Key...)
		b.headers = append(b.headers, sarama.RecordHeader{Key: b.names[name:], Value: headers[i].Value})
		b.headerPointers = append(b.headerPointers, &b.headers[len(b.headers)-1])
	}
	return b.headerPointers[start:]
}

// stamp sets what the broker recognises a repeat by. The compressed records
// stay as they are.
func (b *batch) stamp(id identity, sequence int32) {
	b.wire.ProducerID, b.wire.ProducerEpoch, b.wire.FirstSequence = id.producer, id.epoch, sequence
}

// release drops the references to the records' bytes.
func (b *batch) release() {
	clear(b.records)
	clear(b.headers)
	b.wire = sarama.RecordBatch{}
}

// recordSize is the encoded size of r as the only record of a batch, without
// the batch header (Kafka protocol, "Record").
func recordSize(r *router.Record) int {
	body := 1 + 1 + 1 // attributes, timestamp delta 0, offset delta 0
	body += fieldSize(len(r.Key)) + fieldSize(len(r.Value)) + varintSize(len(r.Headers))
	for i := range r.Headers {
		body += fieldSize(len(r.Headers[i].Key)) + fieldSize(len(r.Headers[i].Value))
	}
	return varintSize(body) + body
}

// fieldSize is the size of n bytes behind their length. Null takes as much as
// empty.
func fieldSize(n int) int { return varintSize(n) + n }

// varintSize is the size of n >= 0 as a zigzag varint.
func varintSize(n int) int { return (bits.Len64(uint64(n)<<1|1) + 6) / 7 }

// encodable says why sarama cannot put the record on the wire, or nil.
func encodable(e *entry) error {
	timestamp := e.message.Record.Timestamp
	switch {
	case timestamp.UnixMilli() < 0:
		return fmt.Errorf("timestamp %s is before 1970, which Kafka cannot represent", timestamp.UTC().Format(time.RFC3339))
	case timestamp.After(latestTimestamp):
		return fmt.Errorf("timestamp %s is after %s, the last one that can be encoded",
			timestamp.UTC().Format(time.RFC3339), latestTimestamp.UTC().Format(time.RFC3339))
	case e.size > maxRecordBytes:
		return fmt.Errorf("%d bytes are more than a produce request can hold (%d)", e.size, maxRecordBytes)
	}
	return nil
}
