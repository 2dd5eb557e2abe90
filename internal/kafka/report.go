package kafka

import "go.uber.org/zap"

// reporter logs when the cluster is reached and lost, once each, and when it
// turns out that only a human can help. What stands
// still, and why, is in Status. Owned by the producer's goroutine.
type reporter struct {
	log                    *zap.Logger
	connected, unreachable bool
	// operator: what is unreachable waits for a human.
	operator bool
}

func (r *reporter) reach(err error) {
	switch {
	case err == nil && !r.connected:
		r.log.Info("kafka connected", zap.String("event", "kafka_connected"))
	case err != nil && (!r.unreachable || r.operator != needsHuman(err)):
		r.log.Warn("not publishing to Kafka; trying again, nothing is lost", zap.String("event", "kafka_unreachable"), zap.Error(err))
	}
	r.connected, r.unreachable, r.operator = err == nil, err != nil, needsHuman(err)
}

// unfenced is told once a session.
func (r *reporter) unfenced(transactionalID, reason string) {
	r.log.Warn("publishing without a fence: a request that an earlier publisher of this slot left in a broker's hands may repeat records late, which consumers that drop repeats do not see; grant Write and Describe on the transactional id, or set kafka.fencing: false to publish without it",
		zap.String("event", "kafka_unfenced"), zap.String("transactional_id", transactionalID), zap.String("reason", reason))
}
