package publisher

import (
	"slices"
	"time"

	"github.com/jackc/pglogrepl"
	"go.uber.org/zap"

	"github.com/cdcpub/cdcpub/internal/human"
	"github.com/cdcpub/cdcpub/wal"
)

// State is what the publisher is doing.
type State string

// The states of the package documentation.
const (
	Connecting State = "connecting"
	Streaming  State = "streaming"
	Standby    State = "standby"
	Blocked    State = "blocked"
	Draining   State = "draining"
	Stopped    State = "stopped"
)

// state is what Status is made of. Guarded by Publisher.mu.
type state struct {
	name     State
	since    time.Time
	cause    error // why it is not streaming
	session  *session
	keeping  *wal.Stream // holds the slot while nothing may be published
	reported time.Time   // when the log last had a line about it
	told     []string    // the causes that it had lines about since then
	sessions int         // begun so far
	// Of sessions that ended: how, the last one's position, and what all of
	// them have done.
	ends      map[EndCause]int
	confirmed pglogrepl.LSN
	read      wal.Counters
	acked     int
	lastAcked time.Time
	// fruitless counts the sessions in a row that ended soon and sent nothing.
	fruitless int
	// blocked is why the state was last Blocked, until a session has come
	// further than that; nil otherwise.
	blocked *Stall
}

// remindAfter is how long the same state stays unmentioned in the log.
const remindAfter = 10 * time.Minute

// maxFruitless is how many fruitless sessions the log tells of. The rest of
// such a row, a session every few seconds, is one outage.
const maxFruitless = 3

// enter changes the state and logs the change: one line, however often the
// same thing is tried.
func (p *Publisher) enter(name State, cause error) {
	p.mu.Lock()
	report := p.state.change(name, cause)
	p.mu.Unlock()
	if !report {
		return
	}
	event := zap.String("event", string(name))
	switch {
	case name == Blocked:
		p.log.Error("stopped until a human acts", event, zap.Error(cause))
	case name == Standby:
		p.log.Info("standing by", event, zap.String("reason", cause.Error()))
	case name == Stopped && cause != nil: // reported by whoever called Run
	case cause != nil:
		p.log.Warn("not publishing", event, zap.String("error", human.OneLine(cause.Error())))
	default:
		p.log.Info("now "+string(name), event)
	}
}

// change changes the state and says whether the log should have a line.
func (s *state) change(name State, cause error) bool {
	now := time.Now()
	changed := s.name != name
	if changed {
		s.since = now
	}
	quiet := remindAfter
	switch name {
	case Blocked:
		if s.blocked != nil {
			s.since = s.blocked.Since // it was no better in between
		}
		s.blocked = &Stall{Cause: cause.Error(), Since: s.since}
		quiet = decisionInterval / 2 // the operator reads it in any minute of the log
	case Standby:
		s.blocked = nil
	}
	s.name, s.cause = name, cause
	if changed {
		s.told = nil
	}
	report := changed && s.worthALine(name) || now.Sub(s.reported) > quiet || s.learns(name, cause)
	if report {
		s.reported = now
	}
	if report && cause != nil {
		s.told = append(s.told, cause.Error())
	}
	return report
}

// maxCauses is how many causes the log names of one time without a session.
const maxCauses = 3

// learns says whether the cause tells more than those that the log had: the end
// of a connection says little, that nobody listens any more says what to do.
func (s *state) learns(name State, cause error) bool {
	return name == Connecting && cause != nil && len(s.told) < maxCauses && !slices.Contains(s.told, cause.Error()) && s.worthALine(name)
}

// worthALine leaves the coming and going of fruitless sessions out of the log
// after the first of them, at a point where the log says that it failed.
func (s *state) worthALine(name State) bool {
	switch name {
	case Streaming:
		return s.fruitless < maxFruitless
	case Connecting:
		return s.fruitless <= maxFruitless
	}
	return true
}

func (p *Publisher) began(s *session) {
	p.mu.Lock()
	p.state.session = s
	p.state.sessions++
	report := p.state.change(Streaming, nil)
	p.mu.Unlock()
	if report {
		p.announce(s)
	}
}

// announce logs that a session publishes, once.
func (p *Publisher) announce(s *session) {
	s.announced.Do(func() {
		p.log.Info("resumed at the slot's position", zap.String("event", "resumed"), zap.Stringer("lsn", s.stream.Start()),
			zap.String("system_id", s.stream.Identity().SystemID), zap.Int32("timeline", s.stream.Identity().Timeline))
	})
}

// ended takes over what a session leaves.
func (p *Publisher) ended(s *session, cause EndCause) {
	pipe := s.pipe.Status()
	fruitful := s.fruitful()
	if fruitful {
		p.announce(s)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.ends[cause]++
	p.state.acked += pipe.Acked
	p.state.lastAcked = later(p.state.lastAcked, pipe.LastAcked)
	p.state.confirmed = s.stream.Confirmed()
	p.state.read = continued(p.state.read, s.stream.Counters())
	p.state.session = nil
	p.state.fruitless++
	if fruitful {
		p.state.fruitless = 0
	}
	if s.advanced() {
		p.state.blocked = nil
	}
}

// continued adds what another stream has read.
func continued(before, next wal.Counters) wal.Counters {
	next.Transactions += before.Transactions
	next.Rows += before.Rows
	next.Bytes += before.Bytes
	next.Confirmed = later(before.Confirmed, next.Confirmed)
	return next
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (p *Publisher) draining() { p.enter(Draining, nil) }
