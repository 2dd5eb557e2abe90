package publisher

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/internal/kafka"
	"github.com/cdcpub/cdcpub/wal"
)

// onlyHere is what no other process would stop for.
type onlyHere struct{ error }

func (onlyHere) Remembered() bool { return true }

func TestTheSlotIsKeptForWhatOnlyThisProcessRemembers(t *testing.T) {
	p, _ := observed(nil)
	for _, m := range meanings {
		if m.err != nil && p.keeps(m.err) {
			t.Errorf("kept for %v, which a standby finds too", m.err)
		}
	}
	if p.keeps(&kafka.StopError{Topic: "t", What: "another producer has taken over"}) || p.keeps(nil) {
		t.Error("kept without a reason")
	}
	if !p.keeps(onlyHere{io.EOF}) {
		t.Error("not kept")
	}
	p.config.ExitOnStop = true
	if p.keeps(onlyHere{io.EOF}) {
		t.Error("kept with on_stop: exit")
	}
}

// What is kept and lost is taken back faster than a standby asks for it, and
// stays an open question whatever else happens.
func TestASlotThatIsKeptAndLostIsTakenBack(t *testing.T) {
	for name, test := range map[string]struct {
		err   error
		says  string
		pause time.Duration
	}{
		"a lost connection":             {io.ErrUnexpectedEOF, "not held at present", keepInterval},
		"PostgreSQL is down":            {noServer, "not held at present", keepInterval},
		"our own walsender still lives": {heldBy(ownPID, "cdcpub"), "not held at present", keepInterval},
		"somebody looks into the slot":  {somebody, "not held at present", standbyInterval},
		"a rotated password":            {stopFor(wal.AccessDenied), "what; next", refusedInterval},
	} {
		p, _ := observed(nil)
		p.kept = onlyHere{errors.New("the topic is another one")}
		p.own.connected(ownPID, "cdcpub")
		p.own.connected(ownPID+1, "cdcpub")
		pause, err := p.next(test.err, &steady{})
		if err != nil || p.kept == nil || p.state.name != Blocked || !strings.Contains(p.state.cause.Error(), test.says) {
			t.Errorf("%s: %s for %v, %v", name, p.state.name, p.state.cause, err)
		}
		if pause != test.pause {
			t.Errorf("%s: pause %s", name, pause)
		}
	}
}

// Somebody who ends the walsender of a blocked process wants another to go on,
// if there is one.
func TestASlotThatIsKeptGoesToAnotherCdcpubByForce(t *testing.T) {
	forgets := 0
	p, logs := observed(func(c *Config) { c.ForgetTopics = func() { forgets++ } })
	p.kept = onlyHere{errors.New("the topic is another one")}
	pause, err := p.next(&pgconn.PgError{Code: "57P01"}, &steady{})
	if err != nil || pause != handoverLook || p.walConfig().BeforeStart() == nil || p.state.name != Blocked || forgets != 0 {
		t.Errorf("%s, pause %s, %v, forgets %d", p.state.name, pause, err, forgets)
	}
	pause, err = p.next(another, &steady{})
	if err != nil || pause != standbyInterval || p.state.name != Standby || p.kept != nil || forgets != 1 {
		t.Errorf("%s, pause %s, %v, forgets %d", p.state.name, pause, err, forgets)
	}
	if !slices.Contains(events(logs), "overruled") {
		t.Errorf("logged %q", events(logs))
	}
}

// PostgreSQL was away: who had the slot may be a process that waits for a human
// with it, and is not faster by nature.
func TestAStandbyLetsTheOtherComeBackFirst(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile []error
		waits     bool
	}{
		"the slot is free":                           {[]error{another}, false},
		"PostgreSQL was away":                        {[]error{another, noServer}, true},
		"PostgreSQL was away for long":               {slices.Concat([]error{another}, slices.Repeat([]error{noServer}, 100)), true},
		"the other was seen again":                   {[]error{another, noServer, another}, false},
		"no cdcpub was seen":                         {[]error{somebody, noServer}, false},
		"only PostgreSQL was away, of an active one": {[]error{noServer}, false},
	} {
		p, _ := observed(nil)
		p.own.connected(ownPID, "cdcpub")
		for _, err := range test.meanwhile {
			p.own.connected(ownPID+1, "cdcpub")
			mustGoOn(t, p, err)
		}
		err := p.walConfig().BeforeStart()
		if (err != nil) != test.waits {
			t.Fatalf("%s: %v", name, err)
		}
		if err == nil {
			continue
		}
		if pause, err := p.next(err, &steady{}); err != nil || pause != comeback || p.state.name != Standby {
			t.Errorf("%s: %s, pause %s, %v", name, p.state.name, pause, err)
		}
		if err := p.walConfig().BeforeStart(); err != nil {
			t.Errorf("%s: waits twice: %v", name, err)
		}
	}
}
