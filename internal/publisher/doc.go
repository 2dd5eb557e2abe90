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
//	   |  +-> blocked  |   a human must act; tried again every minute, or
//	   |               |   kept until a restart, with the slot
//	   +---------------+   anything that a new connection may cure
//
// A new session also compares what it finds with what the process remembers of
// the last one (past): a slot that is further than this process confirmed, or a
// publication of which the monitor knows that it was altered, is no place to go
// on from without a human. The exception is evidence of how the slot moved: another
// cdcpub was seen to hold it, or a human was called for what moves it (between).
// The epoch of the fence is no such evidence, though another publisher's claim
// raises it too. A claim says that its session had the slot before it asked, not
// that it had it since we did: one that was held up may come from whoever had
// the slot before us. Claims of ours whose answers were lost raise it as well,
// and so does whoever fences producers by hand. And the stop that it would save
// is short: the next cdcpub that takes the slot, a restarted standby for
// instance, is evidence by itself.
// Reasons for a human name the LSN from which on rows may be missing, as far as
// the process knows it.
//
// A pair of processes on one slot is told once what a human decides. What a
// standby finds or watches as well stops both. What only one remembers (the
// topics that it published to) it keeps the slot for until it is restarted, and
// a process that has lost the slot to another remembers nothing of it (keep).
//
// Ends of a session are of two classes, decided in classify: retry, and stop. A
// stop before the first session began, or with on_stop: exit, ends Run.
package publisher
