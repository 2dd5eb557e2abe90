// Package checkpoint answers one question: up to which LSN is everything
// safely in Kafka?
//
// A Tracker is told, in stream order, of transactions that open, records that
// are sent, transactions that end and keepalive positions, and in any order of
// records that are acknowledged. It confirms the end LSN of the newest
// transaction such that every record of it and of everything before it is
// acknowledged; a keepalive's position waits in the same line. It never
// confirms a row's LSN, what was merely received, or a keepalive's position
// while a transaction is open.
//
// # Window
//
// Records are numbered from 0. The window is the run from the oldest
// unacknowledged record to the newest sent one, acknowledged or not:
//
//	tail ..................... head
//	unacked acked unacked acked | next
//
// Its length is limited in records and in bytes. Counting the acknowledged
// records in between keeps three things bounded that would otherwise grow while
// one partition stands still and others go on: what is remembered here, the
// memory that rows share with their neighbours, and what a crash repeats.
//
// A Tracker is a value without clock, context or goroutine and must be owned by
// one goroutine. Impossible calls (an acknowledgement twice, of a record never
// sent, an end LSN that does not increase) are errors: they mean that
// something upstream is wrong, and confirming further could lose rows.
package checkpoint
