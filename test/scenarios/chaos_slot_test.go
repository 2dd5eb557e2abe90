package scenarios

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

// chaosGap is a time without a slot. Rows whose commit ended beyond low and not
// beyond high are in no slot; everything else must be published.
type chaosGap struct {
	low, high pglogrepl.LSN
	ended     time.Time                // zero: there is no slot yet
	read      map[*harness.Process]int // how much of their logs was there when it began
	lost      bool                     // there is a slot, which is lost
}

// slotWasGone says whether a process that was started then has lived without a
// slot.
func (w *chaosWorld) slotWasGone(started time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.gaps {
		if g.ended.IsZero() || started.Before(g.ended) {
			return true
		}
	}
	return false
}

// dropSlotUnderLoad ends the walsender and drops the slot before another comes.
// It waits until a publisher has said that it is gone.
func (w *chaosWorld) dropSlotUnderLoad(chaosFault) error {
	up := w.hold(onPostgres, 0) // what was done must be known to be done
	gap := w.gapBegins(false)
	err := w.again(func() error {
		_ = w.terminateWalsender(chaosFault{})
		return w.lookAtSlot(&gap.low, "SELECT confirmed_flush_lsn, pg_drop_replication_slot(slot_name)::text")
	})
	up()
	if err != nil {
		return err
	}
	return w.awaitComplaint(gap, "slot "+w.slot+" does not exist on this server")
}

// invalidateSlot keeps all publishers from the slot for longer than
// idle_replication_slot_timeout allows.
func (w *chaosWorld) invalidateSlot(chaosFault) error {
	for i := range w.publishers { // no other fault thaws them
		defer w.hold(onPublisher, i)()
	}
	up := w.hold(onPostgres, 0) // the oracle reads
	gap := w.gapBegins(true)
	err := w.query("ALTER SYSTEM SET idle_replication_slot_timeout = '3s'")
	for lost := false; err == nil && !lost; {
		lost, err = w.keepIdle(gap)
		pause(w.ctx, 2*tenth)
	}
	for i := range w.publishers {
		err = errors.Join(err, w.process(i).Thaw())
	}
	err = errors.Join(err, w.query("ALTER SYSTEM RESET idle_replication_slot_timeout"), w.query("SELECT pg_reload_conf()"))
	up()
	if err != nil {
		return err
	}
	return w.awaitComplaint(gap, "slot "+w.slot+" is lost")
}

// keepIdle keeps publishers from the slot, but not the oracle from its own, and
// says whether it is lost. A publisher that ended and was started again
// meanwhile is frozen by the next call.
func (w *chaosWorld) keepIdle(gap *chaosGap) (lost bool, err error) {
	for i := range w.publishers {
		if err := w.process(i).Freeze(); err != nil {
			return false, err
		}
	}
	_ = w.terminateWalsender(chaosFault{})
	err = w.oracle.Each(w.ctx, func(row verify.Row) error {
		w.rows = append(w.rows, row)
		return nil
	})
	if err != nil {
		return false, err
	}
	// The checkpoint is what invalidates, and keeps how far the oracle has read.
	if err := errors.Join(w.query("SELECT pg_reload_conf()"), w.query("CHECKPOINT")); err != nil {
		return false, err
	}
	err = w.lookAtSlot(&gap.low, "SELECT CASE wal_status WHEN 'lost' THEN confirmed_flush_lsn END, ''")
	if errors.Is(err, errNotYet) {
		return false, nil
	}
	return err == nil, err
}

var errNotYet = errors.New("the slot does not look like this yet")

// lookAtSlot runs a query on the slot that returns its position and nothing. No
// slot and no position are errNotYet.
func (w *chaosWorld) lookAtSlot(position *pglogrepl.LSN, query string) error {
	conn, err := pgx.Connect(w.ctx, w.url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(w.ctx))
	var found *pglogrepl.LSN
	var nothing string
	err = conn.QueryRow(w.ctx, query+" FROM pg_replication_slots WHERE slot_name = $1", w.slot).Scan(&found, &nothing)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && found == nil {
		return errNotYet
	}
	if err == nil {
		*position = max(*position, *found)
	}
	return err
}

func (w *chaosWorld) gapBegins(lost bool) *chaosGap {
	w.mu.Lock()
	defer w.mu.Unlock()
	gap := &chaosGap{read: map[*harness.Process]int{}, lost: lost}
	for _, s := range w.samples {
		gap.low = max(gap.low, s.confirmed)
	}
	for _, s := range w.sampler.taken() {
		gap.low = max(gap.low, s.Confirmed)
	}
	for _, p := range w.logs {
		gap.read[p] = len(p.Stderr())
	}
	w.gaps = append(w.gaps, gap)
	return gap
}

// awaitComplaint waits until a publisher has said so and stands still.
func (w *chaosWorld) awaitComplaint(gap *chaosGap, words string) error {
	return w.again(func() error {
		if !strings.Contains(w.saidSince(gap), words) {
			return fmt.Errorf("no publisher says %q", words)
		}
		return nil
	})
}

// saidSince is what publishers wrote to their logs since the gap began.
func (w *chaosWorld) saidSince(gap *chaosGap) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var said strings.Builder
	for _, p := range w.logs {
		said.WriteString(p.Stderr()[gap.read[p]:])
		said.WriteByte('\n')
	}
	return said.String()
}

var (
	publishedUpTo = regexp.MustCompile(`everything committed up to LSN ([0-9A-F]+/[0-9A-F]+) is published`)
	slotBeginsAt  = regexp.MustCompile(`begins at LSN ([0-9A-F]+/[0-9A-F]+)`)
)

// createSlotAgain does what the message says: it creates the slot and restarts
// the publishers, which have no rows of the time between.
func (w *chaosWorld) createSlotAgain(chaosFault) error {
	w.mu.Lock()
	gap := w.gaps[len(w.gaps)-1]
	w.mu.Unlock()
	defer w.hold(onPostgres, 0)()
	if gap.lost {
		if err := w.again(func() error { _, err := w.operate("slot", "drop", w.slot, "--yes"); return err }); err != nil {
			return err
		}
	}
	var out string
	err := w.again(func() (err error) { out, err = w.operate("slot", "create", w.slot, "--yes"); return err })
	if err != nil {
		return err
	}
	begins := slotBeginsAt.FindStringSubmatch(out)
	if begins == nil {
		return fmt.Errorf("`cdcpub slot create` does not say where the slot begins: %s", out)
	}
	high, err := pglogrepl.ParseLSN(begins[1])
	if err != nil {
		return err
	}
	if err := w.gapEnds(gap, high); err != nil {
		return err
	}
	w.note("rows committed after %s and up to %s are in no slot", gap.low, gap.high)
	return w.restart()
}

// gapEnds: what a publisher says is published is not in the gap, as little as
// what was ever confirmed.
func (w *chaosWorld) gapEnds(gap *chaosGap, high pglogrepl.LSN) error {
	said := publishedUpTo.FindAllStringSubmatch(w.saidSince(gap), -1)
	w.mu.Lock()
	defer w.mu.Unlock()
	gap.high, gap.ended = high, time.Now()
	for _, match := range said {
		lsn, err := pglogrepl.ParseLSN(match[1])
		if err != nil {
			return err
		}
		gap.low = max(gap.low, lsn)
	}
	return nil
}

// operate runs a command as a human does.
func (w *chaosWorld) operate(args ...string) (string, error) {
	p := harness.StartProcess(w.t, harness.ProcessOptions{Binary: w.options.binary, Args: append(args, "-c", "{config}"), Config: w.operator})
	code, err := p.Wait(w.ctx)
	said := strings.TrimSpace(p.Stderr() + "\n" + p.Stdout())
	if err == nil && code != 0 {
		err = fmt.Errorf("exit %d: %s", code, said)
	}
	if err != nil {
		return "", fmt.Errorf("cdcpub %s: %w", strings.Join(args, " "), err)
	}
	w.note("cdcpub %s", strings.Join(args, " "))
	return said, nil
}
