package slotctl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Readiness is what one look at the standbys showed.
type Readiness struct {
	// Ready names the standby that has the slot; empty while none has.
	Ready string
	// Reasons say of each standby why it does not.
	Reasons []string
	// Reader describes who else reads the slot; empty if this process does.
	Reader string
	// Begins is the slot's confirmed_flush_lsn when this process let go of it,
	// 0 before that and if it did not read the slot.
	Begins pglogrepl.LSN
}

// NotReadyError says that no standby had the slot in time. The slot exists.
type NotReadyError struct {
	Slot  string
	Last  Readiness
	Cause error
}

func (e *NotReadyError) Error() string {
	text := fmt.Sprintf("slot %s exists, but no standby has it ready (%v): it would not survive a failover", e.Slot, e.Cause)
	for _, reason := range e.Last.Reasons {
		text += "; " + reason
	}
	return text
}

func (e *NotReadyError) Unwrap() error { return e.Cause }

// Wait waits for a new failover slot.
type Wait struct {
	Slot string
	// Server says how to reach the slot's database, to read the slot itself.
	Server       *pgconn.Config
	Publications []string
	Standbys     []Standby
	Report       func(Readiness)
}

// lookInterval is how often standbys are asked. They look at the primary every
// 0.2 s, or up to 30 s while nothing changes.
const lookInterval = time.Second

// Ready waits until a standby has the slot ready. Meanwhile it reads the slot
// and confirms, unless somebody else does: rows that are committed until then
// are not published. The slot must be new. It ends with ctx. Errors:
// *NotReadyError.
func (w *Wait) Ready(ctx context.Context, conn *pgx.Conn) (Readiness, error) {
	reader, err := w.begin(ctx, conn)
	if err != nil {
		return Readiness{}, err
	}
	defer reader.end()
	looks := time.NewTicker(lookInterval)
	defer looks.Stop()
	var last Readiness
	for {
		now := w.look(ctx, conn)
		// What the end of ctx cut short tells nothing.
		if ctx.Err() == nil || now.Ready != "" || last.Reasons == nil {
			last = now
		}
		last.Reader = reader.other
		if now.Ready != "" {
			err := reader.settle(conn, w.Slot, &last)
			return last, err
		}
		w.Report(last)
		select {
		case <-looks.C:
		case err := <-reader.failed:
			return last, fmt.Errorf("read slot %s until a standby has it: %w", w.Slot, err)
		case <-ctx.Done():
			err := reader.settle(conn, w.Slot, &last)
			return last, errors.Join(&NotReadyError{Slot: w.Slot, Last: last, Cause: context.Cause(ctx)}, err)
		}
	}
}

// look asks every standby.
func (w *Wait) look(ctx context.Context, conn *pgx.Conn) (now Readiness) {
	primary, err := w.stir(ctx, conn)
	if err != nil {
		now.Reasons = append(now.Reasons, fmt.Sprintf("the primary cannot be asked: %v", err))
		return now
	}
	for _, standby := range w.Standbys {
		ready, reason := standby.look(ctx, w.Slot, primary)
		if ready {
			now.Ready = standby.Name
			return now
		}
		now.Reasons = append(now.Reasons, fmt.Sprintf("standby %s: %s", standby.Name, reason))
	}
	return now
}

// stir has the primary note its running transactions, since only such a note
// lets a slot move its catalog_xmin, and reads how far the slot is. A role that
// may not do this waits for the background writer's note, every 15 s. The end of
// ctx does not end a statement: the connection is needed afterwards.
func (w *Wait) stir(ctx context.Context, conn *pgx.Conn) (horizon, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if _, err := conn.Exec(ctx, "SELECT pg_log_standby_snapshot()"); err != nil && sqlState(err) != insufficientPrivilege {
		return horizon{}, err
	}
	return readHorizon(ctx, conn, w.Slot)
}

// reading is a goroutine that reads the new slot and confirms what the server
// has read, whatever it was.
type reading struct {
	stream    *stream // nil: somebody else reads the slot
	other     string  // who
	stop      context.CancelFunc
	done      chan struct{}
	failed    chan error
	confirmed pglogrepl.LSN // belongs to the goroutine until done is closed
}

func (w *Wait) begin(ctx context.Context, conn *pgx.Conn) (*reading, error) {
	r := &reading{done: make(chan struct{}), failed: make(chan error, 1)}
	_, slot, err := Find(ctx, conn, w.Slot)
	if err != nil {
		return nil, err
	}
	ctx, r.stop = context.WithCancel(ctx)
	r.stream, err = openStream(ctx, w.Server, w.Slot, w.Publications)
	switch {
	case err == nil:
		r.confirmed = pglogrepl.LSN(*slot.ConfirmedFlushLSN)
		go r.run(ctx)
		return r, nil
	case sqlState(err) == objectInUse:
		r.other = "another process"
		if _, slot, err := Find(ctx, conn, w.Slot); err == nil && slot.Holder != nil {
			r.other = Holder(slot.Holder)
		}
		close(r.done)
		return r, nil
	}
	r.stop()
	return nil, fmt.Errorf("read slot %s: %w", w.Slot, err)
}

func (r *reading) run(ctx context.Context) {
	defer close(r.done)
	for {
		e, err := r.stream.next(ctx, r.confirmed)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.failed <- err
			return
		}
		r.confirmed = max(r.confirmed, e.end)
	}
}

// settleTimeout bounds how long the server may need to let go of the slot.
const settleTimeout = 10 * time.Second

// settle lets go of the slot and reads where it begins, also when the wait is
// over.
func (r *reading) settle(conn *pgx.Conn, slot string, now *Readiness) error {
	if r.stream == nil {
		return nil
	}
	r.end()
	ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
	defer cancel()
	free, err := AwaitRelease(ctx, conn, slot, r.stream.pid())
	if err != nil {
		return fmt.Errorf("wait until slot %s is free: %w", slot, err)
	}
	now.Begins = pglogrepl.LSN(*free.ConfirmedFlushLSN)
	return nil
}

// end stops reading. It may be called more than once.
func (r *reading) end() {
	r.stop()
	<-r.done
	if r.stream != nil {
		r.stream.close()
	}
}
