package publisher

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"go.uber.org/zap/zapcore"

	"github.com/cdcpub/cdcpub/internal/kafka"
	"github.com/cdcpub/cdcpub/internal/pipeline"
	"github.com/cdcpub/cdcpub/wal"
)

// Where this process left the slot, and where somebody else has moved it.
const ours, theirs = pglogrepl.LSN(100), pglogrepl.LSN(200)

func heldBy(pid int, application string) error {
	return &wal.SlotInUseError{Slot: "s", PID: pid, ApplicationName: application}
}

var (
	moved    = &movedError{slot: "s", from: ours, to: theirs}
	noServer = &wal.UnreachableError{Address: "db", Text: "no route to host", Cause: errors.New("no route to host")}
	ownPID   = 41
	otherPID = 4711
	somebody = heldBy(otherPID, "psql")
	another  = heldBy(otherPID, "cdcpub")
)

func TestASlotThatWentOnWithoutUsStopsThePublisherWithoutEvidence(t *testing.T) {
	for name, meanwhile := range map[string][]error{
		"nothing":                                        nil,
		"a lost connection":                              {wal.ErrServerEnded},
		"no connection for long":                         slices.Repeat([]error{noServer}, 100),
		"a session without a human":                      {io.EOF},
		"that it had moved":                              {moved},
		"somebody looked into the slot":                  {somebody},
		"somebody consumed from it":                      {heldBy(otherPID, "pg_recvlogical")},
		"a command of cdcpub held it":                    {heldBy(otherPID, "cdcpub slot")},
		"somebody held it whose name may not be seen":    {heldBy(otherPID, "")},
		"somebody took it as we asked for it":            {heldBy(0, "")},
		"our own walsender held it":                      {heldBy(ownPID, "cdcpub"), heldBy(ownPID, "cdcpub")},
		"a rotated password":                             {stopFor(wal.AccessDenied)},
		"another server":                                 {stopFor(wal.ServerChanged)},
		"a changed publication":                          {stopFor(wal.PublicationChanged)},
		"a topic made anew":                              {&kafka.StopError{Topic: "t", What: "made anew"}},
		"it had moved, and somebody looked":              {moved, somebody},
		"it had moved, and a password was rotated":       {moved, stopFor(wal.AccessDenied)},
		"it had moved, and was then dropped and created": {moved, stopFor(wal.SlotMissing)},
		"it had moved, after a human was called":         {moved, rejectedAt(7), moved},
	} {
		t.Run(name, func(t *testing.T) {
			p, logs := observed(nil)
			p.past.confirmed = ours
			p.own.connected(ownPID, "cdcpub")
			for _, err := range meanwhile {
				p.own.connected(ownPID+1, "cdcpub") // each try has a connection
				mustGoOn(t, p, err)
			}
			err := p.moved(theirs)
			found, ok := errors.AsType[*movedError](err)
			if !ok || found.from != ours || found.to != theirs || classify(err) != decision {
				t.Errorf("goes on past the gap: %v", err)
			}
			if count(events(logs), "slot_moved") != 0 {
				t.Error("the log says that it goes on")
			}
		})
	}
}

func TestASlotThatWentOnWithoutUsIsGoneOnFromWithEvidence(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile []error
		level     zapcore.Level
	}{
		"another cdcpub held it":                          {[]error{another}, zapcore.InfoLevel},
		"another of a name of its own":                    {[]error{heldBy(otherPID, "cdcpub-b")}, zapcore.InfoLevel},
		"another of the name that ours has":               {[]error{heldBy(otherPID, "relay")}, zapcore.InfoLevel},
		"another, then nobody could be reached":           {[]error{another, noServer}, zapcore.InfoLevel},
		"another, then somebody looked":                   {[]error{another, somebody}, zapcore.InfoLevel},
		"it had moved, and another cdcpub took it then":   {[]error{moved, another}, zapcore.InfoLevel},
		"a human was called for a slot that was missing":  {[]error{stopFor(wal.SlotMissing)}, zapcore.WarnLevel},
		"a human was called for a slot that was lost":     {[]error{stopFor(wal.SlotLost)}, zapcore.WarnLevel},
		"a human was called for a slot that was too old":  {[]error{stopFor(wal.PublicationTooNew)}, zapcore.WarnLevel},
		"a human was called for a record":                 {[]error{rejectedAt(7)}, zapcore.WarnLevel},
		"a human was called for a row":                    {[]error{&pipeline.UnpublishableError{Table: outbox, Cause: io.EOF}}, zapcore.WarnLevel},
		"a human was called, then somebody peeked":        {[]error{stopFor(wal.RowUnreadable), somebody}, zapcore.WarnLevel},
		"a human was called, then a password was rotated": {[]error{stopFor(wal.SlotMissing), stopFor(wal.AccessDenied)}, zapcore.WarnLevel},
	} {
		t.Run(name, func(t *testing.T) {
			p, logs := observed(nil)
			p.past.confirmed = ours
			p.past.lookAgain(stopFor(wal.PublicationTooNew)) // that has been done
			p.own.connected(ownPID, "relay")
			for _, err := range test.meanwhile {
				p.own.connected(ownPID+1, "relay")
				mustGoOn(t, p, err)
			}
			if err := p.moved(theirs); err != nil {
				t.Fatalf("stops: %v", err)
			}
			lines := logs.FilterMessageSnippet("not where this process left it").All()
			if len(lines) != 1 || lines[0].Level != test.level || lines[0].ContextMap()["from_lsn"] != ours.String() || lines[0].ContextMap()["lsn"] != theirs.String() {
				t.Errorf("the log says %v", lines)
			}
			p.past.began(theirs, time.Now())
			if p.moved(theirs+1) == nil {
				t.Error("it is taken as evidence for what happens after the next session as well")
			}
		})
	}
}

func TestASlotThatDidNotGoOnWithoutUsIsNoReasonToStop(t *testing.T) {
	for name, c := range map[string]struct{ confirmed, start pglogrepl.LSN }{
		"where we left it":       {ours, ours},
		"earlier, after a crash": {ours, ours - 1},
		"nothing confirmed yet":  {0, theirs},
	} {
		p, logs := observed(nil)
		p.past.confirmed = c.confirmed
		if err := p.moved(c.start); err != nil || logs.Len() != 0 {
			t.Errorf("%s: %v, %v", name, err, logs.All())
		}
	}
}

// A standby is ready, and its place is to wait. A process that waits for a
// human is not, whoever holds the slot for a moment.
func TestALookIntoTheSlotDoesNotMakeAStandbyOfABlockedPublisher(t *testing.T) {
	p, _ := observed(nil)
	mustGoOn(t, p, moved)
	for range 3 {
		pause, err := p.next(somebody, &steady{})
		if err != nil || pause != decisionInterval || p.state.name != Blocked || !errors.Is(p.state.cause, moved) {
			t.Fatalf("%s for %v, pause %s, %v", p.state.name, p.state.cause, pause, err)
		}
	}
	pause, err := p.next(another, &steady{})
	if err != nil || pause != standbyInterval || p.state.name != Standby {
		t.Errorf("another publishes: %s, pause %s, %v", p.state.name, pause, err)
	}
}

// Whoever is called at night must learn that both are possible, and what to do.
func TestAStopForAMovedSlotNamesBothCauses(t *testing.T) {
	for seen, holder := range map[string]error{
		"nobody was seen to hold it":                            nil,
		`by pid 4711, application_name "psql"`:                  somebody,
		"by pid 4711, whose application_name this role may not": heldBy(otherPID, ""),
		"by whom is not known":                                  heldBy(0, ""),
	} {
		p, _ := observed(nil)
		p.past.confirmed = ours
		if holder != nil {
			mustGoOn(t, p, holder)
		}
		text := p.moved(theirs).Error()
		for _, part := range []string{
			seen, "slot s stands at LSN 0/C8", "confirmed no more than 0/64", "another cdcpub published", "nothing is missing: restart this one",
			"somebody has advanced the slot, or dropped it and created it again", "rows committed between 0/64 and 0/C8", "restart cdcpub to go on from 0/C8",
		} {
			if !strings.Contains(text, part) {
				t.Errorf("does not say %q: %s", part, text)
			}
		}
	}
}

// What another cdcpub has published meanwhile is not known.
func TestAMissingSlotThatAnotherHeldSaysNothingOfWhatIsPublished(t *testing.T) {
	p, _ := observed(nil)
	p.past.confirmed = ours
	mustGoOn(t, p, another)
	if text := p.locate(stopFor(wal.SlotMissing)).Error(); strings.Contains(text, "is published") {
		t.Error(text)
	}
}

// Tries that found the slot in use have left no walsender behind, and do not
// push out the one that did.
func TestOurOwnWalsenderIsKnownHoweverLongItHoldsTheSlot(t *testing.T) {
	p, _ := observed(nil)
	p.own.connected(ownPID, "cdcpub")
	for i := range 1000 {
		p.own.connected(10_000+i, "cdcpub")
		mustGoOn(t, p, heldBy(ownPID, "cdcpub"))
		if p.past.since.published || len(p.own.pids) != 1 {
			t.Fatalf("after %d tries our own walsender is another cdcpub; known are %v", i+1, p.own.pids)
		}
	}
	for i := range 1000 {
		p.own.connected(i, "cdcpub")
	}
	if len(p.own.pids) != ownPIDs || !p.own.left(999) {
		t.Errorf("remembers %v", p.own.pids)
	}
}

func mustGoOn(t *testing.T, p *Publisher, err error) {
	t.Helper()
	if _, final := p.next(err, &steady{}); final != nil {
		t.Fatal(final)
	}
}
