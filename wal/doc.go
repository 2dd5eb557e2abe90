// Package wal reads one PostgreSQL logical replication slot through pgoutput
// and hands out what was committed, in commit order. It confirms to the server
// only what it is told to confirm.
//
// # Parts and owners
//
//   - Open connects, checks everything from which rows could be lost later,
//     and starts replication. Start, reconnect and recovery are the same call:
//     a Stream is never repaired, it ends and the next is opened.
//   - Stream owns the replication connection. Run's goroutine is the only one
//     that reads it, writes it, decodes, and decides when a status is due.
//     Confirm, Stop and Finish are for everyone: they set an atomic value and
//     wake Run. So is Look, which waits for what Run finds out, and so are
//     Silence, Quiet, Counters and Stall, which only read one.
//   - link is the socket. It lies below TLS, reads in large pieces, and asks
//     Run's goroutine before it waits. To wake a goroutine that waits for the
//     socket, others move its read deadline into the past, and do nothing else
//     to it. Contexts end with Open: a deadline of a context applies to writes
//     too, and would tear a status update.
//   - dial.go opens connections. A try on which nothing comes goes on, and others
//     are made beside it, so that neither a slow server nor one that was behind a
//     black hole is waited for longer than it must be.
//   - Decoder turns messages into events. It is pure and can be used alone.
//   - hold.go keeps the slot when the server has ended the stream at a text that
//     it cannot convert.
//   - pacer and prober decide when to send a status and when to look at the
//     server from outside. They are values that belong to Run's goroutine.
//
// # The life of a Stream
//
// Open returns a Stream that has started. Run must be called once, even if
// only with a cancelled context, since it is Run that closes the connection.
//
//	reading   read, decode, offer batches, send status
//	leaving   the channel of batches is closed; status goes on, so that what
//	          still drains can be confirmed; nothing is read any more
//	ending    last status update, CopyDone, wait until the server is through
//
// Stop leads from reading to leaving, but not before the Commit of an open
// transaction has been handed over. A server that shuts down leads to leaving
// at once, and bounds it, and so does a message that cannot be read, after what
// was read before it has been handed over. Finish leads to ending from either.
// Only when Run returns nil has the server processed the last confirmed LSN. A
// cancelled context and every other error skip leaving and ending: nothing more
// is confirmed, and a missing Commit is never made up for.
//
// At a text that PostgreSQL cannot convert it ends decoding by itself and gives
// the slot free, while rows in front of it are still to be confirmed. So the
// lease ends, the slot is taken again on another connection, at the end of all
// LSNs where it only holds it (hold.go), and only then is the rest handed over
// and confirmed there. If somebody else has the slot, nothing more is sent.
//
// # Batches and the lifetime of bytes
//
// A Batch is what one read of the socket gave, or less when that is much. The
// server writes every message to the socket by itself, so a reader that keeps
// up would hand over every row by itself, at many times the cost of the row.
// After a batch the next is therefore held back for a millisecond to gather
// what comes, unless it is full; after a pause a row is handed over at once.
// When a backlog is read the wait grows to as long as the socket has room. That is
// made little if the server is on this host: then the server's kernel gathers, too,
// and one packet carries what hundreds carried (gather.go, window_linux.go).
//
// While the receiver does not take it, Run does not read: PostgreSQL waits,
// and memory stays bounded. The little room is given back to the kernel then: in
// a full one status updates can get stuck (window_linux.go). A message of any size
// passes alone.
//
// The driver writes over a message at its next read, so the Decoder copies a
// row once, into a chunk that many rows share. These bytes are never written
// again and stay valid as long as somebody keeps them. The Batch itself, its
// Events and every Row.Values are reused after Release.
//
// # Confirming
//
// Only the flush field of a standby status update moves the slot (PostgreSQL
// documentation, "Streaming Replication Protocol"). It begins at the slot's
// confirmed_flush_lsn, never decreases, is never zero, and never exceeds what
// was received on this connection: the server would believe any number, and
// skip everything before it. The write field is what was received.
//
// What may be confirmed is the end LSN of a Commit event, and the LSN of a
// Keepalive event, once everything before it in the stream is acknowledged.
// Keepalive positions keep a quiet outbox from holding WAL. One that arrives
// within a transaction is not handed out.
//
// A status update is sent every StatusInterval, and at once when an advance is
// announced or the server asks, but not more than ten times a second: a server
// that shuts down asks thousands of times. When nothing was heard for a while
// it asks the server to answer, which an idle one would otherwise not do.
//
// # Looking at the server from outside
//
// A replication connection cannot tell everything about its server. A look
// asks on a short connection of its own who holds the slot. It is taken every
// two seconds while one of these holds:
//
//   - What was received is not confirmed, and has not moved for two seconds. A
//     server that shuts down then waits for us without end, and if the window
//     is full we do not read the message that says so. The look is refused
//     with SQLSTATE 57P03, and Run ends with ErrServerStopping.
//   - Nothing was heard for half of wal_sender_timeout. An older minor release
//     sends nothing while it decodes a huge transaction of other tables; to
//     reconnect would make it start over. If our walsender holds the slot, the
//     stream stays, however often. If another does, or none, it ends with
//     ErrSlotTaken. If looks fail until wal_sender_timeout has passed since the
//     last sign of life, it ends with ErrSilent.
//
// Silence is the time since the last proof that the slot was ours: bytes from
// the server, or the beginning of a look that found our walsender. Whoever
// publishes must stop when it exceeds less than wal_sender_timeout. Bytes are
// no proof when this process stood still for so long that the server may have
// given up on it: they may have waited in the socket since before a takeover.
//
// Look is for whoever must know that the slot was still ours after something else
// had happened. What is read from the replication connection does not tell: a
// keepalive answers no question in particular, and may come out of a buffer long
// after the slot was lost. The answer to a look was made after the question, and
// needs no room in the window. A walsender is known by its pid and its start, since
// a server in a container that starts again gives the same pids.
//
// Quiet is the time for which Run has listened and heard nothing, whatever looks
// found. A walsender that holds the slot for us and stands still shows in Quiet
// alone. So that an idle server does not, the status update asks it to answer
// also while looks keep Silence short.
//
// # Not obvious
//
//   - R, Y and some B messages carry LSN 0, and a transaction may begin at a
//     lower LSN than an earlier one ended: received keeps the maximum.
//   - With an idle server that is asked for nothing, nothing arrives at all.
//   - A FATAL error of the server arrives as an error of the read, any other
//     as a message.
//   - PostgreSQL 18 reports a missing publication as a notice and skips rows.
//     The SQLSTATE of that notice is also that of the wait for standbys, so
//     the Routine field decides.
//   - Session settings are sent in the startup message, where they win over
//     those of role, database and URL. The same name in other letters would be
//     sent as well, so it is removed.
//   - Settings that a supported version does not know cannot be asked for at the
//     start: the server would refuse the session. They are set by the first query.
//   - A database with the encoding SQL_ASCII stores any bytes, and PostgreSQL ends
//     a stream that wants UTF-8 at the first that are not. So nothing is asked of
//     it, and the router looks, which knows the row. In every other encoding a
//     text without an equivalent in UTF-8 is a StopError: the server sends no
//     row, only the transaction is known.
//   - The types of users are described before each relation that has them. A
//     domain comes with its own OID and the name of its base type.
//   - confirmed_flush_lsn can move between two queries when another publisher
//     holds the slot. Before a slot is called ahead of the WAL, the WAL's end
//     is read again.
//   - A partition is known by its oid, because it arrives under its own name
//     unless the publication publishes via the root. Every leaf must be
//     published, not just some.
//   - To drop a table from a publication and add it again leaves a gap, and no
//     trace but new rows in the catalogs. Identity.Publication is made of their
//     oids and xmins.
//   - After a failed read the driver would open a connection to cancel what it
//     takes for a running query. It is not let.
package wal
