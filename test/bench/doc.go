// Package bench measures cdcpub beside what bounds it and what it replaces:
// pg_recvlogical, which reads the same slot and throws the rows away, and
// Debezium on Kafka Connect with the Outbox Event Router. All of them run on
// one machine, in turn, on the same rows, with the same topics, so that ratios
// count and figures do not. `make bench` runs it and writes docs/benchmarks.
// No figure is asserted; a test holds the README to the report.
//
// A drain begins when the subject's process is started (a warm Debezium: when
// its connector is) on a slot that holds the whole backlog, and ends when the
// end offsets of the topics say that the last record is there; for
// pg_recvlogical when it has ended. A steady load measures each event from just
// before the writer sends COMMIT until the poll of an independent consumer
// returns the record, by one clock. PostgreSQL keeps fsync and
// synchronous_commit on.
//
// The loads have letters: a and b are drains of large and of single-row
// transactions, c is one huge transaction, d are steady rates, e varies the
// payload, f partitions, keys and topics, g the size of the backlog. a, b and d
// are the core set, the only one with Debezium.
//
// Processor time is that of the processes by proc(5): the walsender, the
// subject, the broker. Peak memory is VmHWM.
package bench
