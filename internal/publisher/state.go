package publisher

import (
	"time"

	"go.uber.org/zap"
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
	reported time.Time // when the cause was last logged
	sessions int       // begun so far
	acked    int       // records acknowledged in sessions that ended
}

// remindAfter is how long the same state and cause stay unmentioned in the log.
const remindAfter = 10 * time.Minute

// enter changes the state and logs the change: one line, however often the
// same thing is tried.
func (p *Publisher) enter(name State, cause error) {
	p.mu.Lock()
	changed := p.state.name != name || (cause == nil) != (p.state.cause == nil)
	quiet := remindAfter
	if name == Blocked {
		quiet = decisionInterval / 2 // the operator reads it in any minute of the log
	}
	report := changed || time.Since(p.state.reported) > quiet
	if changed {
		p.state.since = time.Now()
	}
	if report {
		p.state.reported = time.Now()
	}
	p.state.name, p.state.cause = name, cause
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
	case cause != nil:
		p.log.Warn("not publishing", event, zap.Error(cause))
	default:
		p.log.Info("now "+string(name), event)
	}
}

func (p *Publisher) current() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.name
}

func (p *Publisher) began(s *session) {
	p.mu.Lock()
	p.state.session = s
	p.state.sessions++
	p.mu.Unlock()
	p.enter(Streaming, nil)
	p.log.Info("resumed at the slot's position", zap.String("event", "resumed"), zap.Stringer("lsn", s.stream.Start()),
		zap.String("system_id", s.stream.Identity().SystemID), zap.Int32("timeline", s.stream.Identity().Timeline))
}

func (p *Publisher) ended(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.acked += s.pipe.Status().Acked
	p.state.session = nil
}

func (p *Publisher) draining() { p.enter(Draining, nil) }
