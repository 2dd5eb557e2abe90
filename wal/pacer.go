package wal

import "time"

// pacer decides when a status update is due: on a timer, when an advance is
// announced, and when the server asks for a reply; the latter two at most ten
// times a second, since a server that shuts down asks thousands of times.
// Times are monotonic. A value owned by the stream's goroutine.
type pacer struct {
	interval time.Duration // between status updates with nothing to say
	last     time.Time
	reply    bool
}

const minStatusInterval = 100 * time.Millisecond

func (p *pacer) replyRequested() { p.reply = true }

func (p *pacer) sent(now time.Time) { p.last, p.reply = now, false }

func (p *pacer) at(announced bool) time.Time {
	if announced || p.reply {
		return p.last.Add(minStatusInterval)
	}
	return p.last.Add(p.interval)
}

func (p *pacer) due(now time.Time, announced bool) bool { return !now.Before(p.at(announced)) }

// next is when the owner must be awake again: for a status update, or earlier
// for other (zero: nothing else is planned).
func (p *pacer) next(announced bool, other time.Time) time.Time {
	at := p.at(announced)
	if !other.IsZero() && other.Before(at) {
		return other
	}
	return at
}
