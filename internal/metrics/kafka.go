package metrics

import "github.com/cdcpub/cdcpub/internal/kafka"

type kafkaFamilies struct{ records, bytes, errors, commitToAck, occurredToAck *family }

func newKafkaFamilies(c *collector) kafkaFamilies {
	return kafkaFamilies{
		records: c.counter("records_acknowledged_total",
			"Records that all in-sync replicas have acknowledged since the start of the process, also those sent again after a reconnect. A topic is present from its first record on; topics beyond the first 1000 are counted as other.", "topic"),
		bytes: c.counter("record_bytes_acknowledged_total",
			"Bytes of keys, values and headers, before compression, of the records in cdcpub_records_acknowledged_total.", "topic"),
		errors: c.counter("produce_errors_total",
			"Attempts to deliver a record batch that failed, each attempt counted, by Kafka's name of the error code; transport: the connection failed before an answer came; other: a code that this cdcpub does not know, or a batch that could not be encoded. "+
				"A code is present from its first error on, transport and other always. No error loses a record.", "code"),
		commitToAck: c.histogram("commit_to_ack_seconds",
			"Time from COMMIT, by PostgreSQL's clock, to the acknowledgement by Kafka, by the clock of this host, of every acknowledged record. Clocks that differ shift it; less than 0 counts as 0."),
		occurredToAck: c.histogram("occurred_to_ack_seconds",
			"Time from the row's column occurred_at to the acknowledgement by Kafka, of acknowledged records whose row has one. Without such a column it has no observations."),
	}
}

func (f *kafkaFamilies) collect(s *scrape, counters *kafka.Counters) {
	for topic, acknowledged := range counters.Topics {
		s.put(f.records, float64(acknowledged.Records), topic)
		s.put(f.bytes, float64(acknowledged.Bytes), topic)
	}
	for code, n := range counters.Errors {
		s.put(f.errors, float64(n), code)
	}
	s.histogram(f.commitToAck, &counters.CommitToAck)
	s.histogram(f.occurredToAck, &counters.OccurredToAck)
}
