package publisher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"

	"github.com/cdcpub/cdcpub/internal/pipeline"
	"github.com/cdcpub/cdcpub/wal"
)

// between is what was seen of the slot since the last session. It is the
// evidence when the slot turns out to have moved: slots have no identity, and
// none of them says who moved it.
type between struct {
	// published: another cdcpub held the slot. It will have moved it, and has
	// published what it moved past.
	published bool
	// away: PostgreSQL could not be asked since then.
	away bool
	// handover is until when the slot is left to others.
	handover time.Time
	// answered: a human was called for something whose cure moves the slot.
	answered bool
	// holder is the last one that was seen and is not known to be a cdcpub.
	holder *wal.SlotInUseError
	// moved: a human was called because the slot had moved. Nothing but
	// published, or a restart, answers for the human.
	moved *movedError
}

// held notes who holds the slot. Our own walsender of before may for a while,
// and whoever looks into the slot, or consumes from it, publishes nothing.
func (p *Publisher) held(inUse error) {
	p.own.refused()
	holder, ok := errors.AsType[*wal.SlotInUseError](inUse)
	if ok && p.server == "" {
		p.server = holder.SystemID
	}
	switch {
	case !ok, p.own.left(holder.PID):
	case p.own.isPublisher(holder.ApplicationName):
		p.past.since.published, p.past.since.away = true, false
		p.config.ForgetTopics()
	default:
		p.past.since.holder = holder
	}
}

// Why a free slot is not taken.
var (
	errComesBack = errors.New("PostgreSQL answers again and the slot is free; whoever had it may come back for it first")
	errHandover  = errors.New("the walsender was terminated; the slot is left to a standby for a moment")
)

// handOver leaves the slot to others for a while. It returns the pause until
// the first look.
func (b *between) handOver() time.Duration {
	b.handover = time.Now().Add(handover)
	return handoverLook
}

// leave says why the slot is not taken although it is free. When PostgreSQL was
// away the cdcpub that had it may have it back: it is connected to nothing
// either, and may be one that waits for a human with the slot. Called before
// the slot is taken.
func (b *between) leave() error {
	switch {
	case time.Now().Before(b.handover):
		return errHandover
	case b.away:
		b.away = false
		return errComesBack
	}
	return nil
}

// called notes why a human is called.
func (b *between) called(err error) {
	if moved, ok := errors.AsType[*movedError](err); ok {
		b.moved = moved
	}
	b.answered = b.answered || curedByMoving(err)
}

// unanswered is why a human was called for a slot that had moved, nil if none
// was, or another cdcpub has taken the slot over since.
func (b *between) unanswered() *movedError {
	if b.published {
		return nil
	}
	return b.moved
}

// curedByMoving says whether the slot is moved by what cures err: it is made
// anew, or advanced past a transaction that is given up.
func curedByMoving(err error) bool {
	if stop, ok := errors.AsType[*wal.StopError](err); ok {
		switch stop.Reason {
		case wal.SlotMissing, wal.SlotLost, wal.SlotUnusable, wal.SlotAhead,
			wal.PublicationMissing, wal.PublicationTooNew, wal.RowUnreadable:
			return true
		}
		return false
	}
	return isA[*pipeline.UnpublishableError](err) || isA[*pipeline.RejectedError](err) ||
		isA[*stillUnknownError](err) || isA[*wal.MalformedError](err)
}

// moved compares where the slot stands with where this process left it. After
// a crash of PostgreSQL it may stand earlier, later never by itself.
func (p *Publisher) moved(start pglogrepl.LSN) error {
	from, since := p.past.confirmed, &p.past.since
	if from == 0 || start <= from {
		return nil
	}
	fields := []zap.Field{zap.String("event", "slot_moved"), zap.Stringer("from_lsn", from), zap.Stringer("lsn", start)}
	switch {
	case since.published:
		p.log.Info("the slot is not where this process left it: another cdcpub has held it since; going on where it stands now", fields...)
	case since.answered && since.moved == nil:
		p.log.Warn("the slot is not where this process left it: it was moved while this process waited for a human; going on where it stands now", fields...)
	default:
		return &movedError{slot: p.config.WAL.Slot, from: from, to: start, holder: since.holder}
	}
	return nil
}

// movedError: the slot is not where this process left it, and nobody who could
// have published was seen there.
type movedError struct {
	slot     string
	from, to pglogrepl.LSN
	holder   *wal.SlotInUseError // nil: nobody was seen
}

func (e *movedError) Error() string {
	return fmt.Sprintf("slot %s stands at LSN %s, and this process had confirmed no more than %s (%s): either another cdcpub published while this one could not look, and has ended, or somebody has advanced the slot, or dropped it and created it again; if a second cdcpub runs on this slot and its log has `resumed` in that time, nothing is missing: restart this one to go on; otherwise rows committed between %s and %s do not come through the slot and are missing in the topics: compare the outbox with the topics for that time and publish what is missing again, then restart cdcpub to go on from %s",
		e.slot, e.to, e.from, e.seen(), e.from, e.to, e.to)
}

func (e *movedError) seen() string {
	switch h := e.holder; {
	case h == nil:
		return "nobody was seen to hold it since"
	case h.PID == 0:
		return "it was seen in use since, by whom is not known"
	case h.ApplicationName == "":
		return fmt.Sprintf("it was seen in use since, by pid %d, whose application_name this role may not see", h.PID)
	default:
		return fmt.Sprintf("it was seen in use since, by pid %d, application_name %q", h.PID, h.ApplicationName)
	}
}

// own is what PostgreSQL knows of this process's connections that ask for the
// slot. Run's goroutine owns it.
type own struct {
	// application is their application_name, as the server has it.
	application string
	// pids are the newest of them, in the order they were made. One whose
	// connection was cut holds the slot until the server notices.
	pids []int
}

// ownPIDs is how many are remembered.
const ownPIDs = 8

// watch notes the first connection that connect's configuration makes, which
// is the one that asks for the slot. It is made before wal.Open returns, those
// of later looks on goroutines of their own.
func (o *own) watch(connect func(context.Context) (*wal.ConnConfig, error)) func(context.Context) (*wal.ConnConfig, error) {
	var first sync.Once
	return func(ctx context.Context) (*wal.ConnConfig, error) {
		config, err := connect(ctx)
		if err != nil {
			return nil, err
		}
		config = config.Copy()
		config.AfterConnect = func(_ context.Context, conn *pgconn.PgConn) error {
			first.Do(func() { o.connected(int(conn.PID()), conn.ParameterStatus("application_name")) })
			return nil
		}
		return config, nil
	}
}

func (o *own) connected(pid int, application string) {
	o.application = application
	o.pids = append(o.pids, pid)
	if len(o.pids) > ownPIDs {
		o.pids = slices.Delete(o.pids, 0, len(o.pids)-ownPIDs)
	}
}

// refused forgets the newest: it did not get the slot, or did not ask for it, so
// that it has left nothing.
func (o *own) refused() {
	if n := len(o.pids); n > 0 {
		o.pids = o.pids[:n-1]
	}
}

// left says whether the holder of the slot is a walsender that this process
// has left behind.
func (o *own) left(holder int) bool { return slices.Contains(o.pids, holder) }

// isPublisher says whether that is the application_name of a cdcpub that
// publishes: ours, or one that begins with cdcpub. The commands that do not
// publish have a space behind that.
func (o *own) isPublisher(application string) bool {
	return application != "" && application == o.application ||
		strings.HasPrefix(application, "cdcpub") && !strings.HasPrefix(application, "cdcpub ")
}
