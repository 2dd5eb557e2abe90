// Package metrics shows Prometheus what the snapshots of the publisher, of the
// Kafka client and of the monitor say. It keeps nothing of its own: every scrape
// takes one snapshot of each and makes constant metrics of it, so nothing has to
// be kept in step, and the work of publishing knows nothing of Prometheus.
//
// # Rules
//
//   - A metric says in its HELP what is counted, and when it is absent.
//   - State sets are complete: one series per state, 1 for the present one and 0
//     for the others, from the first scrape on. So are the causes of stalls and
//     of the ends of sessions.
//   - What is not known is absent, never zero. What has ended has a value: a lost
//     slot retains 0 bytes, has 0 seconds left and is not up. Losing a slot makes
//     no series disappear.
//   - +Inf means that a limit does not exist or, for the time until something
//     happens, that it does not happen at the present rate.
//   - Labels are bounded: topics by kafka.Counters, partitions to the 100 with
//     the oldest record, and slots by max_replication_slots.
//   - No snapshot makes a scrape fail: invalid UTF-8 in a label is replaced,
//     NaN is absent, and of two series with the same labels the first one counts.
package metrics
