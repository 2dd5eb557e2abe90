// Package slotmon tells how replication slots are: what holds WAL, how long
// until a slot is lost or a volume is full, who is to blame, and what to type.
//
// # Parts
//
//	Read    asks a server and returns a Sample; the only part with a connection
//	Series  remembers what samples of one server showed, and gives a Trend
//	Judge   makes a Report of one slot: a verdict, its reasons, its culprit
//	Alerts  makes alerts of findings that last
//
// All but Read are values without context, clock, logger or goroutine; each
// Series and Alerts is owned by one goroutine. They depend on nothing but what
// they are given, so a wrong alert can be had again from its samples.
//
// # Verdicts
//
//	OK        nothing is near a limit. Info findings may be there
//	Warning   somebody should look at it during the day
//	Critical  rows are lost, will be soon, or the server's disk is in danger
//	Unknown   the server or the slot could not be looked at. It is never OK
//
// The verdict is the worst of the findings, where Critical is worse than
// Unknown, and Unknown worse than Warning. Findings that say that something is
// wrong are critical as soon as they are seen (AtOnce); findings about a number
// compare it with a pair of Limits. Info findings explain and change no
// verdict: an old transaction that holds restart_lsn is not the fault of a
// reader that is not behind. If what it holds reaches a limit, that limit's
// finding names the transaction as its cause.
//
// Whether a slot is missing, reads another database, has two_phase or another
// plugin, and what its publication lacks, is judged only for a slot that is
// Expected: of others it is their owner's business.
//
// # NULL
//
// A value that is NULL or cannot be seen gives no finding, and never counts as
// zero. A slot whose restart_lsn is NULL and that is not lost (physical, never
// used; or logical and being created) holds no WAL: it can neither be lost nor
// fill a volume. A lost slot is critical whatever its other columns say; of its
// numbers only the age of catalog_xmin is still judged.
//
// # Numbers
//
//   - Retained WAL: end of WAL - restart_lsn. Confirmed lag: end of WAL -
//     confirmed_flush_lsn. Both as the Sample has them.
//   - Rates: the change from the oldest to the newest sample in the window of
//     the Series, by the time between the two; only samples since the reader
//     came or went count, as soon as there are two. A slot that is made anew, a
//     position that goes back, another server: what was before is forgotten.
//   - Growth of retained WAL, for the two times below: the rate of WAL less
//     that of confirmed_flush_lsn, unless retained WAL has grown beyond that by
//     more than what is written, or confirmed, in 30 seconds; then something
//     holds restart_lsn, and it is the rate of retained WAL. Without confirmed_flush_lsn it is that too.
//     restart_lsn of a healthy slot moves in steps, about every 15 seconds, and
//     a rate over such a step would give a slot minutes that has years.
//   - Time until lost: safe_wal_size / growth; the time until
//     idle_replication_slot_timeout if that is sooner; 0 if the slot is lost,
//     unreserved, or safe_wal_size <= 0. Less than 1 byte per second is no
//     growth. A time that is not finite or not known is absent, with the reason.
//   - Time until full: free bytes of the volume of pg_wal / growth; 0 if nothing
//     is free and the slot retains more than 16 MiB.
//   - What the two times foretell by growth is, while somebody reads the slot, a
//     warning only when a tenth of the room is used, retained WAL / (retained WAL +
//     what is left), and critical only when a quarter is. A large transaction lets
//     a slot grow until it is published, and is no danger to one that has room.
//   - The limits of the time until idle_replication_slot_timeout are a half and a
//     quarter of that timeout where these are shorter.
//   - Share of max_slot_wal_keep_size: 1 - safe_wal_size / limit, which knows
//     of whole segments and wal_keep_size; without safe_wal_size retained WAL /
//     limit.
//   - Inactive for: see the clocks below.
//   - Confirmed lag not falling for: the length of the stretch of samples in
//     which the lag was larger than 16 MiB and than 30 seconds of WAL, was never
//     below its lowest value since the stretch began, and never a fifth below
//     its highest; absent while no WAL was written in it. So a reader that
//     confirms, but slower than WAL is written, counts as well.
//   - Not ready for: since the first sample at which no standby had the
//     failover slot synced, permanent and valid. A standby that cannot be asked
//     is not ready, and neither is a server that is no standby of the primary.
//   - Only a copy for: since the first sample that saw our slot as the synced
//     copy on a standby, where nobody can read it; judged as inactivity.
//   - Held by a transaction: at least 16 MiB and three quarters of retained WAL
//     are confirmed already, and the oldest transaction that writes, in any
//     database, is older than Limits.LongTransaction.
//
// # Clocks
//
// The server's clock (Server.Now) is compared with what the server remembers:
// inactive_since, the begin of transactions, prepared transactions. Our clock
// (Sample.Taken, the now of Alerts) measures everything between samples: rates,
// stretches, how long a finding lasts; and the publisher's stall. Two are
// mixed in one place, the age of the holder's last status, which is the client's
// clock against the server's and stands only in a text. PostgreSQL before 17
// does not know since when a slot is inactive: it is then since the first
// sample that saw it so, a lower bound. That holds too when a restart of the
// server has begun its memory anew.
//
// # Hysteresis
//
// Each limit has a relaxed twin a fifth away: 0.8 of the limit where more is
// worse, the limit / 0.8 where less is. Finding.Severity goes by the limit,
// Finding.Hold by its twin. A finding begins when its Severity says so and ends
// when its Hold no longer does; what lies between, with the Severity OK, is in
// Report.ForAlerts and not in Report.Findings. An alert begins when the finding
// has lasted for Timing.RaiseAfter (and its limit is exceeded at that moment)
// and ends when it has been absent for Timing.ResolveAfter.
package slotmon
