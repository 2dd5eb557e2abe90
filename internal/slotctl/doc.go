// Package slotctl changes replication slots: create, drop, advance, takeover,
// and it proves that a slot is drained. Package slotmon looks at them.
//
// # Look first, act on what was seen
//
// Every action has two halves, so that a human can be asked between them: one
// that finds out what the action would mean for data and refuses what must not
// be done, and one that acts. The server changes meanwhile. The second half
// therefore never trusts the first: it states what it expects in the statement
// that acts (takeover compares pid and application_name again, drop the slot's kind
// and position), or it relies on the server to refuse (an active slot is neither
// dropped nor advanced, none goes back).
//
// # Counting without confirming
//
// What an advance would skip is counted by reading the slot itself, since only
// the slot knows what of its WAL is an unpublished row. The server decodes for
// a walsender as it does for any reader: with bounded memory, large
// transactions in files that it removes. pg_logical_slot_peek_changes would
// collect everything in temporary files before the first row is returned.
//
// The reader's status updates have flush 0, which the server takes for "do not
// move": confirmed_flush_lsn stays where it is whatever was received, a reader
// of this kind never counts as a synchronous standby, and a server that shuts
// down does not wait for it, because its write position is kept current
// (walsender.c, ProcessStandbyReplyMessage and WalSndDone). pglogrepl would
// replace the 0 by the write position, so updates are encoded here.
//
// A transaction belongs to the skipped ones if its commit record starts before
// the target: that is how the server decides (SnapBuildXactNeedsSkip), and it
// is the same as "ends at or before the target" unless the target lies within a
// commit record.
//
// # A failover slot that nobody reads may never become ready
//
// A standby takes a failover slot over as temporary and keeps it only when the
// slot's catalog_xmin and restart_lsn on the primary have reached what the
// standby still has. A primary with older transactions or slots gives a new
// slot an older catalog_xmin, which moves only when somebody reads the slot and
// confirms. So Wait.Ready reads a new slot until a standby has it, holding it
// against other readers, and the slot begins where that reading ended.
//
// The standby's worker ends with an error when it finds a slot of a database
// that has not been replayed yet, and starts again a minute later.
//
// # Draining
//
// MarkEnd reads the end of what was inserted into the WAL, which lies beyond
// every commit that any client was told of, also of those with
// synchronous_commit = off. Then it commits a transaction that has an id and
// nothing else: its commit record lies beyond the mark, so a walsender gets past
// the mark on an idle server too, where the mark may lie behind a page header
// that no record follows. No logical message is used: other slots of the
// database would publish it.
//
// Functions run on the caller's connection and leave its session settings as
// they were. No function is safe for concurrent use of one connection.
package slotctl
