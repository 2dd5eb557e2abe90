package kafka

import "go.uber.org/zap"

// reporter logs when the cluster is reached and lost, once each. What stands
// still, and why, is in Status. Owned by the producer's goroutine.
type reporter struct {
	log                    *zap.Logger
	connected, unreachable bool
}

func (r *reporter) reach(err error) {
	switch {
	case err == nil && !r.connected:
		r.log.Info("kafka connected", zap.String("event", "kafka_connected"))
	case err != nil && !r.unreachable:
		r.log.Warn("kafka cannot be reached; trying again, nothing is lost; see kafka.brokers", zap.String("event", "kafka_unreachable"), zap.Error(err))
	}
	r.connected, r.unreachable = err == nil, err != nil
}
