// Package verify judges whether the publisher kept its promises. It compares
// two things that the publisher did not make: the history of the outbox as the
// database tells it, and the content of the topics as a consumer reads it.
// Every test scenario and the demo end in this judgement.
//
// # Evidence
//
// The history is a slice of Row in commit order. It comes from a logical slot
// of its own, created before the load and read by another decoder than the
// publisher's, so that a row which the publisher never saw is still expected.
// The topics are read by a Kafka client that the publisher does not use, from
// the first offset to the end. A Sample is the slot's confirmed_flush_lsn as
// pg_replication_slots shows it, with the end offsets of the partitions.
//
// This package imports nothing of the publisher. It has its own murmur2, its
// own idea of headers and topics, and its own record type. An error would have
// to be made twice, in the same way, to stay unseen.
//
// # What is asserted
//
// No loss: each row has a record, or the quarantine has its event id.
// Nothing foreign: each record is explained by a row that is not quarantined.
// In topics that are shared with other producers the rest is counted only.
//
// Place and content: each record lies in the topic and the partition that its
// row leads to, and its key, value, headers (names, values, order) and
// timestamp are those that the row makes; null and empty differ. Since every
// occurrence of an event is compared with the same expectation, repeats are
// identical to each other as well.
//
// Order: in each partition, number the rows that it holds in commit order.
// Then each record is at most one further than the record before it. That is
// the whole rule: one further continues a run, anything else starts over at or
// before the previous end. 7 8 7 8 is correct; a first 8 before the first 7 is
// not, nor is 7 9 8, nor a repeat that leaves out a row. It follows that first
// occurrences are in commit order. A partition may start over at most as often
// as the publisher was restarted.
//
// Versions: for each aggregate, the first record of a higher version never
// precedes that of a lower one, unless the writers themselves committed them
// so. The latter is counted as the writers' inversion, in the history alone,
// and is no violation: commit order was kept.
//
// Confirm after acknowledgement: each row whose commit end LSN is at or before
// a sampled confirmed_flush_lsn lies below the end offset of its partition that
// was read after it. Offsets never change, so one reading of a topic serves
// samples from any time before it.
//
// Repeats are bounded: no record that was written after a restart belongs to a
// row that the slot had confirmed before it.
//
// Input: where the evidence cannot be judged, the report says so and is not
// OK. That is an empty history, one event id for two rows, a history out of
// commit order, a topic of unknown size, or offsets that do not rise.
//
// # What is not asserted
//
// What a topic cannot show: memory, retained WAL, health, metrics, the end of
// a stall. A second publisher shows only by what it writes. The content of the
// quarantine is the caller's to read. A backward repeat of single records (8,
// then 7, both seen before) is the same as two restarts and is found by their
// number only, so give Options.Rewinds wherever the number is known. Topics
// must keep all they were given while they are judged: no compaction, no
// retention, and a fixed number of partitions.
//
// The tests prove that the judgement can fail: a model of a correct publisher
// with random crashes must pass, each of a list of mutations of its output must
// be caught by the count named for it, and the verdict on order is compared
// with its definition for every small topic there is.
package verify
