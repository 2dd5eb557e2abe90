package publisher

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/wal"
)

func TestWhatStopsThePublisherNamesTheLSN(t *testing.T) {
	const published, written = "everything committed up to LSN 0/64 is published", "rows written after LSN 0/50 may be missing in the topics (until then, 2026-03-01 12:00:00 UTC"
	says := map[wal.Reason]string{
		wal.SlotMissing: published, wal.PublicationMissing: published, wal.PublicationTooNew: published,
		wal.PublicationUnusable: written, wal.PublicationChanged: written, wal.TableUnusable: written,
		wal.SlotLost: "", wal.SlotAhead: "", wal.SlotUnusable: "", wal.ServerChanged: "", wal.AccessDenied: "",
	}
	for reason, want := range says {
		p, _ := observed(nil)
		p.past.confirmed = 0x64
		p.Recheck(Doubt{Whole: Whole{LSN: 0x50, Seen: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}})
		got := p.locate(stopFor(reason)).Error()
		if !strings.Contains(got, "what; ") || !strings.HasSuffix(got, "; next") || !strings.Contains(got, want) {
			t.Errorf("reason %d: %q, want %q", reason, got, want)
		}
		if located := p.locate(stopFor(reason)); classify(located) != classify(stopFor(reason)) {
			t.Errorf("reason %d means something else with an LSN", reason)
		}
		fresh, _ := observed(nil)
		if got := fresh.locate(stopFor(reason)).Error(); strings.Contains(got, "LSN") {
			t.Errorf("reason %d: a process that knows nothing says %q", reason, got)
		}
	}
}

func TestTheLaterLookAtTheWholePublicationCounts(t *testing.T) {
	p, _ := observed(nil)
	now := time.Now()
	p.past.began(10, now)
	if whole := p.lastWhole(); whole != (Whole{10, now}) {
		t.Errorf("after a session began: %+v", whole)
	}
	p.Recheck(Doubt{Whole: Whole{LSN: 20, Seen: now}, Altered: true})
	p.Recheck(Doubt{Whole: Whole{LSN: 15}})
	if whole := p.lastWhole(); whole.LSN != 20 || !p.doubts().Altered {
		t.Errorf("%+v, altered %v: a doubt is gone", whole, p.doubts().Altered)
	}
	p.past.began(30, now)
	p.past.began(5, now) // a crash of PostgreSQL set the slot back
	if whole := p.lastWhole(); whole.LSN != 30 || p.past.confirmed != 30 {
		t.Errorf("%+v, confirmed %s", whole, p.past.confirmed)
	}
}

// Only the catalogs tell whether a publication that is missing in the WAL was
// dropped a moment ago: the cures are different ones.
func TestAPublicationMissingInTheWALIsLookedAtOnceMore(t *testing.T) {
	tooNew := &wal.StopError{Reason: wal.PublicationTooNew, Slot: "s", Message: "too new", Cure: "slot drop", Cause: errors.New("42704")}
	p, logs := observed(nil)
	pause, err := p.next(tooNew, &steady{})
	if err != nil || pause != minRetry || p.state.name != Connecting {
		t.Fatalf("%s, pause %s, %v", p.state.name, pause, err)
	}
	for _, line := range logs.All() {
		if strings.Contains(line.ContextMap()["error"].(string), "slot drop") {
			t.Errorf("tells to drop the slot before the catalogs were read again: %v", line.ContextMap())
		}
	}
	if changed := p.locate(stopFor(wal.PublicationChanged)); !strings.Contains(changed.Error(), "was dropped and created again") || classify(changed) != decision {
		t.Errorf("%v", changed)
	}
	if missing := p.locate(stopFor(wal.PublicationMissing)); !strings.Contains(missing.Error(), "what") {
		t.Errorf("%v", missing)
	}
	if pause, err = p.next(tooNew, &steady{}); err != nil || pause != decisionInterval || p.state.name != Blocked {
		t.Fatalf("the same again: %s, pause %s, %v", p.state.name, pause, err)
	}
}

// A standby has no session whose end could be a stop.
func TestAnAlteredPublicationBlocksAStandbyToo(t *testing.T) {
	p, _ := observed(nil)
	p.identity = nil
	if p.altered() != nil {
		t.Error("altered without a doubt")
	}
	p.Recheck(Doubt{})
	if p.altered() != nil {
		t.Error("a publication that should be looked at is not an altered one")
	}
	p.Recheck(Doubt{Altered: true})
	pause, err := p.next(p.altered(), &steady{})
	if err != nil || pause != decisionInterval || p.state.name != Blocked {
		t.Fatalf("%s, pause %s, %v", p.state.name, pause, err)
	}
}

// A standby has no session to compare with, but has seen a server.
func TestAnotherServerBlocksAStandbyToo(t *testing.T) {
	p, _ := observed(nil)
	p.identity = nil
	if previous := p.walConfig().Previous; previous != nil {
		t.Fatalf("before the first look: compares with %+v", previous)
	}
	for _, server := range []string{"7", "8"} { // the first one counts
		inUse := &wal.SlotInUseError{Slot: "s", SystemID: server}
		if _, err := p.next(inUse, &steady{}); err != nil {
			t.Fatal(err)
		}
	}
	if previous := p.walConfig().Previous; previous == nil || *previous != (wal.Identity{SystemID: "7"}) {
		t.Errorf("compares with %+v", previous)
	}
	for range 2 {
		pause, err := p.next(stopFor(wal.ServerChanged), &steady{})
		if err != nil || pause != decisionInterval || p.state.name != Blocked {
			t.Errorf("%s, pause %s, %v", p.state.name, pause, err)
		}
	}
	p.config.ExitOnStop = true
	var stopped *StoppedError
	if _, err := p.next(stopFor(wal.ServerChanged), &steady{}); !errors.As(err, &stopped) || !stopped.Decision {
		t.Errorf("on_stop: exit: %v", err)
	}
}
