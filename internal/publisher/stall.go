package publisher

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/cdcpub/cdcpub/internal/pipeline"
)

// StallKind is one of the few causes that a Stall can have: what monitoring
// and alerts tell apart, where Stall.Cause is for people.
type StallKind string

// The kinds of stalls. Those of the first group are seen while streaming, the
// others say why nothing is streamed.
const (
	StallRejected         StallKind = "rejected"          // Kafka refuses a record for what it is
	StallStandbySlots     StallKind = "standby_slots"     // PostgreSQL waits for a standby of synchronized_standby_slots
	StallPostgresSilent   StallKind = "postgres_silent"   // nothing was heard for longer than wal_sender_timeout
	StallLease            StallKind = "lease"             // not heard from PostgreSQL for too long, so nothing may be sent
	StallPartition        StallKind = "partition"         // the head of a partition does not get through, or its topic is not known
	StallKafkaUnreachable StallKind = "kafka_unreachable" // no broker answers

	StallConnecting StallKind = "connecting" // no session with PostgreSQL; it is tried again by itself
	StallStandby    StallKind = "standby"    // another process publishes
	StallBlocked    StallKind = "blocked"    // a human must act, or it is tried again after that
	StallStopped    StallKind = "stopped"    // Run has ended with an error
)

// StallKinds returns every kind there is.
func StallKinds() []StallKind {
	return []StallKind{
		StallRejected, StallStandbySlots, StallPostgresSilent, StallLease, StallPartition, StallKafkaUnreachable,
		StallConnecting, StallStandby, StallBlocked, StallStopped,
	}
}

// Stall is a cause and when it began.
type Stall struct {
	Kind  StallKind `json:"kind"`
	Cause string    `json:"cause"`
	Since time.Time `json:"since"`
	// Topic and Partition name the place, where the cause has one.
	Topic     string `json:"topic,omitempty"`
	Partition *int32 `json:"partition,omitempty"`

	// logged: the log has lines of its own about it.
	logged bool
}

// kindOf is why a publisher in a state that has a cause publishes nothing.
func kindOf(name State) StallKind {
	switch name {
	case Standby:
		return StallStandby
	case Blocked:
		return StallBlocked
	case Stopped:
		return StallStopped
	}
	return StallConnecting
}

// stall names the one cause that explains the standstill best, nil when there
// is none.
func (s *session) stall(pipe pipeline.Status, producer pipeline.ProducerStatus, timeout time.Duration) *Stall {
	if pipe.Rejected != nil {
		return &Stall{Kind: StallRejected, Cause: pipe.Rejected.Error(), Since: pipe.Rejected.Since, logged: true}
	}
	if cause := s.stream.Stall(); cause != nil {
		return &Stall{Kind: StallStandbySlots, Cause: cause.Cause, Since: cause.Since}
	}
	if silence := s.stream.Silence(); silence > timeout {
		return &Stall{Kind: StallPostgresSilent, Cause: "PostgreSQL has sent nothing for longer than wal_sender_timeout", Since: time.Now().Add(-silence)}
	}
	var oldest *pipeline.PartitionStatus
	for i := range producer.Partitions {
		partition := &producer.Partitions[i]
		if partition.Stall != "" && (oldest == nil || partition.StallSince.Before(oldest.StallSince)) {
			oldest = partition
		}
	}
	if oldest != nil {
		return partitionStall(oldest)
	}
	if !producer.Connected && time.Since(producer.DisconnectedSince) >= connectGrace {
		return &Stall{Kind: StallKafkaUnreachable, Cause: "Kafka has not answered; see kafka.brokers", Since: producer.DisconnectedSince}
	}
	return walsenderStall(s.stream.Quiet(), timeout)
}

// walsenderStall is a walsender that holds the slot for us and says nothing. It
// explains a standstill only when nothing else does: what waits for Kafka does
// not need it.
func walsenderStall(quiet, timeout time.Duration) *Stall {
	if quiet <= timeout {
		return nil
	}
	return &Stall{
		Kind: StallPostgresSilent, Since: time.Now().Add(-quiet),
		Cause: "PostgreSQL holds the slot for this process but has sent nothing on the replication connection for longer than wal_sender_timeout: its walsender decodes a large transaction of other tables, or stands still; see it in pg_stat_activity, and end it with pg_terminate_backend if it does nothing",
	}
}

// partitionStall tells what the head of a partition waits for. While the
// topic's metadata is missing nobody knows the partition.
func partitionStall(p *pipeline.PartitionStatus) *Stall {
	stall := &Stall{Kind: StallPartition, Cause: fmt.Sprintf("topic %s: %s", p.Topic, p.Stall), Since: p.StallSince, Topic: p.Topic}
	if p.LeaseLost {
		stall.Kind = StallLease
	}
	if p.Partition >= 0 {
		stall.Cause = fmt.Sprintf("topic %s partition %d: %s", p.Topic, p.Partition, p.Stall)
		stall.Partition = &p.Partition
	}
	return stall
}

func (s *Stall) fields() []zap.Field {
	fields := []zap.Field{
		zap.String("event", "stalled"), zap.String("kind", string(s.Kind)),
		zap.String("cause", s.Cause), zap.Time("since", s.Since),
	}
	if s.Topic != "" {
		fields = append(fields, zap.String("topic", s.Topic))
	}
	if s.Partition != nil {
		fields = append(fields, zap.Int32("partition", *s.Partition))
	}
	return fields
}
