package publisher

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cdcpub/cdcpub/internal/pipeline"
	"github.com/cdcpub/cdcpub/wal"
)

func TestReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		ago := func(d time.Duration) *Stall { return &Stall{Cause: "c", Since: time.Now().Add(-d)} }
		for _, c := range []struct {
			state State
			stall *Stall
			ready bool
		}{
			{Streaming, nil, true},
			{Streaming, ago(notReadyAfter - time.Second), true},
			{Streaming, ago(notReadyAfter + time.Second), false},
			{Draining, nil, true},
			{Draining, ago(notReadyAfter + time.Second), false},
			{Standby, nil, true},
			{Standby, ago(time.Hour), true}, // the slot is in use: that is its place
			{Connecting, nil, false},
			{Connecting, ago(0), false},
			{Blocked, ago(0), false},
			{Stopped, nil, false},
		} {
			status := Status{State: c.state, Stall: c.stall}
			if status.ready() != c.ready {
				t.Errorf("%s with stall %+v: ready %v", c.state, c.stall, !c.ready)
			}
		}
	})
}

func TestStatusSaysWhySessionsAreNotOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := observed(nil)
		began := time.Now()
		_, _ = p.next(rejectedAt(1), &steady{})
		time.Sleep(time.Minute)
		// It was no better in between: the next session ended in the same way.
		p.began(silentSession(p))
		p.ended(p.state.session, EndConnectionLost)
		_, _ = p.next(rejectedAt(1), &steady{})
		s := p.Status()
		if s.State != Blocked || s.Ready || s.Role != "standby" || s.Stall == nil || !s.Stall.Since.Equal(began) || !s.Since.Equal(began) {
			t.Errorf("%+v, stall %+v, since %s", s, s.Stall, began)
		}
	})
}

// silentSession is one that has sent and confirmed nothing.
func silentSession(p *Publisher) *session {
	return &session{p: p, began: time.Now(), reading: &reading{stream: &wal.Stream{}}, pipe: pipeline.New(pipeline.Config{})}
}

// A server that accepts us and fails at once, all night, fills no log.
func TestFruitlessSessionsAreFewLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, logs := observed(nil)
		for range 100 {
			s := silentSession(p)
			p.began(s)
			time.Sleep(time.Second)
			p.ended(s, EndConnectionLost)
			_, _ = p.next(io.EOF, &steady{})
			time.Sleep(maxRetry / 4)
		}
		if names := events(logs); len(names) > 2*maxFruitless+2 || names[len(names)-1] != "connecting" {
			t.Errorf("logged %q", names)
		}
		// One that lasts is told of, although it began as the others did.
		s := silentSession(p)
		p.began(s)
		time.Sleep(settled + time.Second)
		if p.fruitfulSession() != s {
			t.Error("a session that lasts is not noticed")
		}
		p.ended(s, EndConnectionLost)
		if names := events(logs); len(names) != 1 || names[0] != "resumed" {
			t.Errorf("logged %q", names)
		}
	})
}
