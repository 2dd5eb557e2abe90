// Package publisher keeps the service running: it opens sessions one after the
// other and decides after each what its end means.
//
// A session is a replication connection, a decoder, a producer, a tracker and a
// pipeline, all new, starting at the slot's confirmed_flush_lsn. Start,
// reconnect and recovery are therefore the same path. What outlives a session:
// the Kafka client (connections, producer ids, what topics looked like), the
// server's identity, and the counters.
//
//	connecting --> streaming --> draining --> stopped
//	   ^  |            |
//	   |  +-> standby  |   the slot is in use by another process
//	   |  +-> blocked  |   a human must act; tried again every minute
//	   +---------------+   anything that a new connection may cure
//
// A new session also compares what it finds with what the process remembers of
// the last one (past): a slot that is further than this process confirmed, or a
// publication of which the monitor knows that it was altered, is no place to go
// on from without a human. The exception is evidence of how the slot moved: another
// cdcpub was seen to hold it, or a human was called for what moves it (between).
// The epoch of the fence tells of other publishers too, but only when the
// session's producer has heard from Kafka, which is after the decision.
// Reasons for a human name the LSN from which on rows may be missing, as far as
// the process knows it.
//
// Ends of a session are of two classes, decided in classify: retry, and stop. A
// stop before the first session began, or with on_stop: exit, ends Run.
package publisher
