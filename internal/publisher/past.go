package publisher

import (
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/cdcpub/cdcpub/internal/human"
	"github.com/cdcpub/cdcpub/wal"
)

// past is what is remembered from one session to the next, to tell whether the
// slot and the publication are still those of before, and else from which LSN
// on rows may be missing. It dies with the process: a new one takes what it
// finds. Run's goroutine owns it.
type past struct {
	// confirmed is the highest position that this process has confirmed, 0 when
	// there is none yet.
	confirmed pglogrepl.LSN
	// since is what has happened to the slot since the last session.
	since between
	whole Whole
	// undecodable is how the last session ended, if it met WAL at which the
	// publication did not exist; nil otherwise.
	undecodable *wal.StopError
}

// Whole says that the publication was seen to publish the outbox whole: no row
// written before LSN is missing because of it.
type Whole struct {
	LSN  pglogrepl.LSN // 0: not known
	Seen time.Time
}

// Doubt is what somebody found who looks at the publication beside the stream,
// where a change of it does not show.
type Doubt struct {
	// Whole is the last time that all was well.
	Whole Whole
	// Altered: the publication is not the one that this process began with. It
	// may look right again, and lack the rows of the time between.
	Altered bool
}

// Recheck ends the present session, so that the next one looks at slot,
// publication and tables before it reads on. Between sessions it only leaves
// the doubt for the next. Safe from any goroutine.
func (p *Publisher) Recheck(doubt Doubt) {
	p.mu.Lock()
	p.doubt.Altered = p.doubt.Altered || doubt.Altered
	if doubt.Whole.LSN > p.doubt.Whole.LSN {
		p.doubt.Whole = doubt.Whole
	}
	p.mu.Unlock()
	select {
	case p.recheck <- struct{}{}:
	default:
	}
}

func (p *Publisher) doubts() Doubt {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.doubt
}

// lastWhole is the later of what sessions and others have seen.
func (p *Publisher) lastWhole() Whole {
	if seen := p.doubts().Whole; seen.LSN > p.past.whole.LSN {
		return seen
	}
	return p.past.whole
}

// altered refuses a publication of which others know that it is another than
// before. A standby has no session to compare with, and would go on where the
// active process has stopped.
func (p *Publisher) altered() error {
	if !p.doubts().Altered {
		return nil
	}
	return &wal.StopError{
		Reason: wal.PublicationChanged, Slot: p.config.WAL.Slot,
		Message: fmt.Sprintf("publication %s was changed while this process was running: outbox rows written while it did not publish the outbox are not in the stream", p.config.WAL.Publication),
		Cure:    "compare the outbox with the topics for that time, then restart cdcpub, standbys too, to go on from here",
	}
}

// watched says whether err is about something that a process watches before
// its first session, as a standby: it must not begin where the active one has
// stopped.
func (p *Publisher) watched(err error) bool {
	stop, ok := errors.AsType[*wal.StopError](err)
	return p.doubts().Altered || ok && stop.Reason == wal.ServerChanged
}

// began notes a session that may read.
func (m *past) began(start pglogrepl.LSN, now time.Time) {
	m.since = between{}
	m.confirmed = max(m.confirmed, start)
	if start > m.whole.LSN {
		m.whole = Whole{LSN: start, Seen: now}
	}
}

// ended notes how far a session came.
func (m *past) ended(s *session) {
	m.confirmed = max(m.confirmed, s.stream.Confirmed())
	if s.advanced() {
		m.undecodable = nil
	}
}

// lookAgain says whether the catalogs should be read before err is believed:
// the publication existed when the session began, and only they tell whether it
// was dropped since, or whether the slot is older than it.
func (m *past) lookAgain(err error) bool {
	stop, ok := errors.AsType[*wal.StopError](err)
	if !ok || stop.Reason != wal.PublicationTooNew || m.undecodable != nil {
		return false
	}
	m.undecodable = stop
	return true
}

// errLookAgain is why nothing is published until that is done.
type errLookAgain struct{ cause *wal.StopError }

func (e *errLookAgain) Error() string {
	return fmt.Sprintf("PostgreSQL has no publication at the WAL that it decodes (%v); looking at it again", e.cause.Unwrap())
}

// located is a StopError that says from which LSN on rows are affected.
type located struct {
	stop  *wal.StopError
	where string
	err   error // as it came
}

func (e *located) Error() string {
	text := e.stop.Message
	if e.stop.Cause != nil {
		text += ": " + e.stop.Cause.Error()
	}
	return text + "; " + e.where + "; " + e.stop.Cure
}

func (e *located) Unwrap() error { return e.err }

// locate adds what is remembered to the reason why a human must act.
func (p *Publisher) locate(err error) error {
	stop, ok := errors.AsType[*wal.StopError](err)
	if !ok {
		return err
	}
	if stop.Reason == wal.PublicationChanged && p.past.undecodable != nil {
		stop = p.recreated()
		err = stop
	}
	where := ""
	switch confirmed, whole := p.past.confirmed, p.lastWhole(); stop.Reason {
	case wal.SlotMissing:
		if confirmed != 0 && !p.past.since.published {
			where = fmt.Sprintf("everything committed up to LSN %s is published, and rows committed after it are in no slot", confirmed)
		}
	case wal.PublicationMissing, wal.PublicationTooNew:
		if confirmed != 0 && !p.past.since.published {
			where = fmt.Sprintf("everything committed up to LSN %s is published, and rows committed after it wait", confirmed)
		}
	case wal.PublicationUnusable, wal.PublicationChanged, wal.TableUnusable:
		if whole.LSN != 0 {
			where = fmt.Sprintf("rows written after LSN %s may be missing in the topics (until then, %s, it published them all)", whole.LSN, human.Moment(whole.Seen))
		}
	}
	if where == "" {
		return err
	}
	return &located{stop, where, err}
}

// recreated: a publication of the same name exists again, and the WAL between
// cannot be decoded with it.
func (p *Publisher) recreated() *wal.StopError {
	cause := p.past.undecodable
	return &wal.StopError{
		Reason: wal.PublicationTooNew, Slot: cause.Slot, Cause: cause.Cause,
		Message: fmt.Sprintf("publication %s was dropped and created again while cdcpub was running; PostgreSQL cannot decode with it what was written before it was created, so nothing was skipped", p.config.WAL.Publication),
		Cure:    cause.Cure + "; then restart cdcpub",
	}
}
