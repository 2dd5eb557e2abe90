package kafka

import (
	"time"

	"go.uber.org/zap"
)

// reporter logs changes of state, few lines however long an outage lasts: the
// pause between two lines about the same outage grows tenfold. Owned by the
// producer's goroutine.
type reporter struct {
	log *zap.Logger
	// stalled counts the partitions and topics that stand still.
	stalled int
	// reported: a stall of the present outage was logged.
	reported bool
	nextLine time.Time
	pause    time.Duration

	connected   bool
	unreachable bool
}

const firstPause = 10 * time.Second

// stall logs why a partition stands still.
func (r *reporter) stall(topic string, partition int32, cause string, now time.Time) {
	if now.Before(r.nextLine) {
		return
	}
	r.pause = max(firstPause, 10*r.pause)
	r.nextLine = now.Add(r.pause)
	r.reported = true
	r.log.Warn("producing stands still", zap.String("event", "kafka_stalled"),
		zap.String("topic", topic), zap.Int32("partition", partition),
		zap.String("cause", cause), zap.Int("stalled", r.stalled))
}

// add changes the number of what stands still, and logs when it comes to 0.
func (r *reporter) add(delta int, now time.Time) {
	r.stalled += delta
	if r.stalled > 0 || !r.reported {
		return
	}
	r.reported = false
	// An outage that comes back at once is the same outage.
	if now.After(r.nextLine) {
		r.pause = 0
	}
	r.log.Info("producing goes on", zap.String("event", "kafka_recovered"))
}

// reach logs when the cluster is reached or lost.
func (r *reporter) reach(err error) {
	switch {
	case err == nil && !r.connected:
		r.log.Info("kafka connected", zap.String("event", "kafka_connected"))
	case err != nil && !r.unreachable:
		r.log.Warn("kafka cannot be reached", zap.String("event", "kafka_unreachable"), zap.Error(err))
	}
	r.connected, r.unreachable = err == nil, err != nil
}
