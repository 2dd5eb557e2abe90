package slotctl

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/slotmon"
)

// Mark is the end of the WAL at one moment: what was committed before Time, by
// the server's clock, ends at or before LSN.
type Mark struct {
	LSN  pglogrepl.LSN
	Time time.Time
}

// MarkEnd returns the mark of this moment, and makes sure that a reader can get
// past it on a server that writes nothing more. On a standby it is the end of
// what was replayed.
func MarkEnd(ctx context.Context, conn *pgx.Conn) (Mark, error) {
	var mark Mark
	var recovery bool
	// The clock first: what committed before it is in the WAL read after it.
	if err := conn.QueryRow(ctx, "SELECT clock_timestamp(), pg_is_in_recovery()").Scan(&mark.Time, &recovery); err != nil {
		return Mark{}, fmt.Errorf("read the clock: %w", err)
	}
	end := "pg_current_wal_insert_lsn()"
	if recovery {
		end = "pg_last_wal_replay_lsn()"
	}
	var err error
	if mark.LSN, err = position(ctx, conn, end); err != nil || recovery {
		return mark, err
	}
	if _, err := conn.Exec(ctx, "SELECT txid_current()"); err != nil {
		return Mark{}, fmt.Errorf("write beyond the mark: %w", err)
	}
	return mark, nil
}

// Progress is how far a slot is from a mark.
type Progress struct {
	Confirmed pglogrepl.LSN
	// Remaining is in bytes of WAL.
	Remaining int64
	// Rate is in bytes of WAL a second since the wait began; 0 at first.
	Rate float64
	// Holder is nil while nobody is connected.
	Holder *slotmon.Holder
}

// Left is how long it takes at the present rate, 0 if that is not known.
func (p Progress) Left() time.Duration {
	if p.Rate <= 0 {
		return 0
	}
	return time.Duration(float64(p.Remaining) / p.Rate * float64(time.Second))
}

// NobodyError says that nobody reads the slot, so that it cannot be drained.
type NobodyError struct {
	Slot     string
	Mark     Mark
	Progress Progress
}

func (e *NobodyError) Error() string {
	return fmt.Sprintf("nobody is connected to slot %s, and the %d bytes of WAL from %s to %s are not confirmed: there may be rows in them that are not published; start the publisher and try again, or wait for it with --wait",
		e.Slot, e.Progress.Remaining, e.Progress.Confirmed, e.Mark.LSN)
}

// NotDrainedError says that the time was over before the slot was drained.
type NotDrainedError struct {
	Slot     string
	Mark     Mark
	Progress Progress
	Cause    error
}

func (e *NotDrainedError) Error() string {
	who := "nobody is connected to it: start the publisher"
	if e.Progress.Holder != nil {
		who = "it is held by " + Holder(e.Progress.Holder) + ", which confirms nothing or too slowly: ask that process what it waits for (`cdcpub slot status " + e.Slot + "`)"
	}
	return fmt.Sprintf("slot %s is not drained (%v): confirmed_flush_lsn is %s, %d bytes of WAL before %s; %s",
		e.Slot, e.Cause, e.Progress.Confirmed, e.Progress.Remaining, e.Mark.LSN, who)
}

func (e *NotDrainedError) Unwrap() error { return e.Cause }

// Drain waits until everything before a mark is confirmed.
type Drain struct {
	Slot string
	Mark Mark
	// Wait: do not fail at once because nobody is connected.
	Wait bool
	// Report is called with each look at the server.
	Report func(Progress)
}

// Run waits until confirmed_flush_lsn is at or beyond the mark, and returns what
// it saw last. It ends with ctx. Errors: *NobodyError, *NotDrainedError, *UnknownSlotError,
// and *RefusedError for a slot whose position proves nothing.
func (d *Drain) Run(ctx context.Context, conn *pgx.Conn) (Progress, error) {
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	var first *sighting
	for {
		sample, slot, err := Find(ctx, conn, d.Slot)
		if err == nil {
			err = d.provable(ctx, conn, slot)
		}
		switch {
		case err != nil && ctx.Err() != nil && first != nil:
			return first.last, d.late(ctx, first.last)
		case err != nil:
			return Progress{}, err
		}
		now := sighting{at: sample.Taken, last: Progress{Confirmed: pglogrepl.LSN(*slot.ConfirmedFlushLSN), Holder: slot.Holder}}
		if now.last.Confirmed >= d.Mark.LSN {
			return now.last, nil
		}
		now.last.Remaining = int64(d.Mark.LSN - now.last.Confirmed)
		if first == nil {
			if !slot.Active && !d.Wait {
				return now.last, &NobodyError{Slot: d.Slot, Mark: d.Mark, Progress: now.last}
			}
			first = &sighting{at: now.at, begin: now.last.Confirmed}
		}
		now.last.Rate = first.rate(now)
		first.last = now.last
		d.Report(now.last)
		select {
		case <-poll.C:
		case <-ctx.Done():
			return first.last, d.late(ctx, first.last)
		}
	}
}

// Unconfirmed counts the rows before the mark that nobody has confirmed, as
// Advance.Count does. None means that the slot is drained, although its
// confirmed_flush_lsn lies before the mark.
func (d *Drain) Unconfirmed(ctx context.Context, conn *pgx.Conn, server *pgconn.Config, publications []string, limits CountLimits) (Count, error) {
	sample, slot, err := Find(ctx, conn, d.Slot)
	if err != nil {
		return Count{}, err
	}
	if slot.Database != sample.Server.Database {
		return Count{Incomplete: "the slot belongs to database " + slot.Database + ", and the connection is to " + sample.Server.Database}, nil
	}
	way := Advance{Slot: slot, From: pglogrepl.LSN(*slot.ConfirmedFlushLSN), To: d.Mark.LSN}
	return way.Count(ctx, conn, server, publications, limits)
}

// sighting remembers when a wait began, at which position, and what was seen
// last.
type sighting struct {
	at    time.Time
	begin pglogrepl.LSN
	last  Progress
}

func (s *sighting) rate(now sighting) float64 {
	seconds := now.at.Sub(s.at).Seconds()
	if seconds <= 0 {
		return 0
	}
	return float64(now.last.Confirmed-s.begin) / seconds
}

func (d *Drain) late(ctx context.Context, last Progress) error {
	return &NotDrainedError{Slot: d.Slot, Mark: d.Mark, Progress: last, Cause: context.Cause(ctx)}
}

// provable refuses slots whose confirmed_flush_lsn does not tell what was read.
func (d *Drain) provable(ctx context.Context, conn *pgx.Conn, slot *slotmon.Slot) error {
	refuse := func(cure, format string, args ...any) error {
		return &RefusedError{Slot: d.Slot, Message: fmt.Sprintf(format, args...), Cure: cure}
	}
	switch {
	case slot.Type != "logical":
		return refuse("", "is a %s slot: nothing is published through it", slot.Type)
	case slot.Lost():
		return refuse(fmt.Sprintf("see `cdcpub slot status %s`", d.Slot), "is lost: what it had not delivered can no longer be read through it")
	case slot.ConfirmedFlushLSN == nil:
		return refuse("try again when it has finished", "is being created at this moment")
	}
	end, err := position(ctx, conn, "CASE WHEN pg_is_in_recovery() THEN greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) ELSE pg_current_wal_insert_lsn() END")
	if err != nil {
		return err
	}
	if confirmed := pglogrepl.LSN(*slot.ConfirmedFlushLSN); confirmed > end {
		return refuse(fmt.Sprintf("see `cdcpub slot status %s`", d.Slot),
			"proves nothing: its confirmed_flush_lsn %s lies beyond the end of the server's WAL, %s, so somebody confirmed what was never sent, and every row until then will be skipped", confirmed, end)
	}
	return nil
}
