package metrics

import (
	"slices"
	"strconv"

	"github.com/cdcpub/cdcpub/internal/publisher"
)

type publisherFamilies struct {
	state, role, ready, stall                  *family
	transactions, rows, bytes, sessions, ends  *family
	inFlightRecords, inFlightBytes, windowFull *family
	oldest, partitionOldest                    *family
	connected, lastConfirmed, lastAcknowledged *family
}

func newPublisherFamilies(c *collector) publisherFamilies {
	return publisherFamilies{
		state: c.gauge("publisher_state",
			"1 for the state that the publisher is in, 0 for every other one: connecting, streaming, standby (another process holds the slot), blocked (a human must act), draining, stopped.", "state"),
		role: c.gauge("publisher_role",
			"1 for the role of this process, 0 for the other one: active (it holds the slot) or standby (it does not, for whatever reason: see cdcpub_publisher_state).", "role"),
		ready: c.gauge("publisher_ready",
			"1 while the publisher publishes, idles, or stands by; 0 while it can do none of it, or has been stalled for more than 10 seconds. The same as /readyz."),
		stall: c.gauge("publisher_stall_seconds",
			"How long the publisher has been stalled for the cause, 0 for every other cause and while it publishes or idles. "+
				"connecting, standby, blocked and stopped: it does not stream. "+
				"rejected: Kafka refuses a record. standby_slots: PostgreSQL waits for a standby of synchronized_standby_slots. "+
				"postgres_silent: nothing heard for longer than wal_sender_timeout. lease: not heard for too long, nothing may be sent. "+
				"partition: the oldest batch of a partition does not get through. kafka_unreachable: no broker answers.", "cause"),
		transactions: c.counter("reader_transactions_total",
			"Transactions read from the slot since the start of the process, also those without an outbox row, and again after a reconnect."),
		rows: c.counter("reader_rows_total",
			"Outbox rows read from the slot since the start of the process, also again after a reconnect."),
		bytes: c.counter("reader_bytes_total",
			"Bytes of the column values, in text form, of the rows in cdcpub_reader_rows_total."),
		sessions: c.counter("reader_sessions_total",
			"Replication sessions that began since the start of the process. The first one counts; attempts that did not come to stream do not."),
		ends: c.counter("reader_session_ends_total",
			"Replication sessions that ended, by cause. Every cause is always there: "+
				"stop, cancelled and shutdown_timeout (asked to); server_stopping, server_ended, terminated (pg_terminate_backend), postgres_error, postgres_silent, connection_lost, slot_taken, unknown_table (another session may cure it); "+
				"refused, malformed, unpublishable, rejected, kafka (a human must act); defect, other.", "cause"),
		inFlightRecords: c.gauge("in_flight_records",
			"Records in the window: from the oldest one that Kafka has not acknowledged to the newest one sent. 0 without a session."),
		inFlightBytes: c.gauge("in_flight_bytes",
			"Memory that the records in the window cost, every copy counted; compare with window.bytes of the configuration. 0 without a session."),
		windowFull: c.gauge("window_full",
			"1 while the window is full, so that nothing more is read from the slot; 0 otherwise. Short times of 1 are normal under load."),
		oldest: c.gauge("oldest_unacknowledged_seconds",
			"How long the oldest record that Kafka has not acknowledged has waited, of all partitions. 0 when there is none."),
		partitionOldest: c.gauge("partition_oldest_unacknowledged_seconds",
			"The same by partition. Present only for partitions with a record that is not acknowledged, at most the 100 that have waited longest. Partition -1: not assigned yet, since the topic's metadata is missing.", "topic", "partition"),
		connected: c.gauge("kafka_connected",
			"1 if the Kafka cluster answered last time, 0 if not. 0 also without a session, since only one that holds the slot connects: see cdcpub_publisher_role."),
		lastConfirmed: c.gauge("last_confirm_timestamp_seconds",
			"When the LSN that is confirmed to PostgreSQL last advanced. Absent until that has happened in this process. On a server that writes no WAL it stands still."),
		lastAcknowledged: c.gauge("last_acknowledged_timestamp_seconds",
			"When Kafka last acknowledged a record. Absent until that has happened in this process. While the outbox is quiet it stands still."),
	}
}

// maxPartitions bounds the series of partition_oldest_unacknowledged_seconds.
const maxPartitions = 100

func (f *publisherFamilies) collect(s *scrape, status *publisher.Status) {
	for _, state := range []publisher.State{publisher.Connecting, publisher.Streaming, publisher.Standby, publisher.Blocked, publisher.Draining, publisher.Stopped} {
		s.put(f.state, truth(status.State == state), string(state))
	}
	for _, role := range []string{"active", "standby"} {
		s.put(f.role, truth(status.Role == role), role)
	}
	s.put(f.ready, truth(status.Ready))
	for _, kind := range publisher.StallKinds() {
		stalled := 0.0
		if status.Stall != nil && status.Stall.Kind == kind {
			stalled = s.since(status.Stall.Since)
		}
		s.put(f.stall, stalled, string(kind))
	}
	s.put(f.transactions, float64(status.Transactions))
	s.put(f.rows, float64(status.RowsRead))
	s.put(f.bytes, float64(status.BytesRead))
	s.put(f.sessions, float64(status.Sessions))
	for _, cause := range publisher.EndCauses() {
		s.put(f.ends, float64(status.SessionEnds[cause]), string(cause))
	}
	s.put(f.inFlightRecords, float64(status.InFlight.Records))
	s.put(f.inFlightBytes, float64(status.InFlight.Bytes))
	s.put(f.windowFull, truth(status.InFlight.Full))
	f.partitions(s, status.Kafka)
	s.put(f.connected, truth(status.Kafka != nil && status.Kafka.Connected))
	s.at(f.lastConfirmed, status.LastConfirmed)
	s.at(f.lastAcknowledged, status.LastAcknowledged)
}

func (f *publisherFamilies) partitions(s *scrape, k *publisher.Kafka) {
	var waiting []publisher.Partition
	if k != nil {
		waiting = slices.SortedFunc(slices.Values(k.Partitions), func(a, b publisher.Partition) int { return a.OldestSince.Compare(b.OldestSince) })
	}
	oldest := 0.0
	if len(waiting) > 0 {
		oldest = s.since(waiting[0].OldestSince)
	}
	s.put(f.oldest, oldest)
	for _, p := range waiting[:min(len(waiting), maxPartitions)] {
		s.put(f.partitionOldest, s.since(p.OldestSince), p.Topic, strconv.Itoa(int(p.Partition)))
	}
}
