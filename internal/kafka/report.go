package kafka

import "go.uber.org/zap"

// reporter logs when the cluster is reached and lost, once each, and when it
// turns out that only a human can help. What stands
// still, and why, is in Status. Owned by the producer's goroutine.
type reporter struct {
	log                    *zap.Logger
	connected, unreachable bool
	unfenced               bool
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

// fence tells that publishing goes without one for a reason, and, with nil,
// that it no longer does.
func (r *reporter) fence(transactionalID string, reason error) {
	id := zap.String("transactional_id", transactionalID)
	switch {
	case reason != nil && !r.unfenced:
		r.log.Warn("publishing without a fence: a request that an earlier publisher of this slot left in a broker's hands may repeat records late, which consumers that drop repeats do not see; it is tried again; grant Write on the transactional id, or set kafka.fencing: false to do without",
			zap.String("event", "kafka_unfenced"), id, zap.String("reason", classifyError(reason).String()))
	case reason == nil && r.unfenced:
		r.log.Info("publishing with a fence again", zap.String("event", "kafka_fenced"), id)
	}
	r.unfenced = reason != nil
}
