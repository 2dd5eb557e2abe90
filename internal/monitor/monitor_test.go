package monitor

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/cdcpub/cdcpub/slotmon"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a scripted server: what it says may be changed between rounds.
type server struct {
	mu     sync.Mutex
	slots  []slotmon.Slot
	err    error
	hangs  bool
	rounds int
	// recovery: it is a standby.
	recovery bool
}

func (s *server) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *server) sample(ctx context.Context) (*slotmon.Sample, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rounds++
	switch {
	case s.hangs:
		<-ctx.Done()
		return nil, ctx.Err()
	case s.err != nil:
		return nil, s.err
	}
	sample := &slotmon.Sample{Taken: time.Now(), Slots: append([]slotmon.Slot(nil), s.slots...)}
	sample.Server = slotmon.Server{SystemID: "1", Database: "shop", WAL: 1 << 20, Now: time.Now(), InRecovery: s.recovery, MaxSlotWALKeepSize: -1}
	return sample, nil
}

func ptr[T any](v T) *T { return &v }

func healthy(name string) slotmon.Slot {
	return slotmon.Slot{
		Name: name, Plugin: "pgoutput", Type: "logical", Database: "shop", Active: true, Holder: &slotmon.Holder{PID: 1},
		RestartLSN: ptr(slotmon.LSN(1 << 20)), ConfirmedFlushLSN: ptr(slotmon.LSN(1 << 20)), WALStatus: ptr("reserved"),
		RetainedBytes: ptr(int64(0)), ConfirmedLagBytes: ptr(int64(0)),
	}
}

func lost(name string) slotmon.Slot {
	slot := healthy(name)
	slot.Active, slot.Holder, slot.RestartLSN, slot.RetainedBytes, slot.WALStatus = false, nil, nil, nil, ptr("lost")
	return slot
}

// rig is a monitor whose alerts are kept.
type rig struct {
	monitor *Monitor
	mu      sync.Mutex
	changed []slotmon.Alert
}

const (
	interval     = 10 * time.Second
	raiseAfter   = 30 * time.Second
	resolveAfter = time.Minute
)

func newRig(targets ...Target) *rig {
	r := &rig{}
	r.monitor = New(Config{
		Targets: targets, Interval: interval, Timeout: 5 * time.Second,
		Timing: slotmon.Timing{RaiseAfter: raiseAfter, ResolveAfter: resolveAfter},
		Limits: func(string) slotmon.Limits { return slotmon.DefaultLimits() },
		Changed: func(alerts []slotmon.Alert) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.changed = append(r.changed, alerts...)
		},
	})
	return r
}

// run runs the monitor while the test tells its story, in a bubble of its own
// time.
func run(t *testing.T, story func(t *testing.T, start func(*rig))) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		story(t, func(r *rig) { running.Go(func() { r.monitor.Run(ctx) }) })
		cancel()
		running.Wait()
	})
}

// pass lets time pass and every round end.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// alerts are "id severity" of each change, in order.
func (r *rig) alerts() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, a := range r.changed {
		text := string(a.ID) + " " + a.Severity.String()
		if !a.Resolved.IsZero() {
			text += " resolved"
		}
		all = append(all, text)
	}
	r.changed = nil
	return all
}

func (r *rig) expect(t *testing.T, want ...string) {
	t.Helper()
	got := r.alerts()
	if len(got) != len(want) {
		t.Fatalf("alerts %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("alerts %q, want %q", got, want)
		}
	}
}

func TestNothingIsFineBeforeItWasAsked(t *testing.T) {
	r := newRig(Target{Name: "db", Slot: "ours"})
	snapshot := r.monitor.Snapshot()
	server := snapshot.Servers[0]
	if server.Up || server.Verdict != slotmon.Unknown || len(server.Slots) != 1 || server.Slots[0].Report.Verdict != slotmon.Unknown {
		t.Errorf("%+v", server)
	}
}

func TestALostSlotIsCriticalWithinOneInterval(t *testing.T) {
	run(t, func(t *testing.T, start func(*rig)) {
		db := &server{slots: []slotmon.Slot{healthy("ours"), healthy("other")}}
		r := newRig(Target{Name: "db", Sample: db.sample, Slot: "ours", Expected: &slotmon.Expected{Database: "shop"}})
		start(r)
		pass(time.Second)
		if s := r.monitor.Snapshot(); !s.Servers[0].Up || s.Servers[0].Verdict != slotmon.OK || len(s.Servers[0].Slots) != 2 {
			t.Fatalf("%+v", s.Servers[0])
		}
		db.change(func() { db.slots[0] = lost("ours") })
		pass(interval)
		r.expect(t, "slot_lost critical")
		s := r.monitor.Snapshot()
		if s.Servers[0].Verdict != slotmon.Critical || len(s.Alerts) != 1 || s.Alerts[0].Server != "db" || s.Alerts[0].Slot != "ours" {
			t.Errorf("%+v", s)
		}
		db.change(func() { db.slots[0] = healthy("ours") })
		pass(resolveAfter + 2*interval)
		r.expect(t, "slot_lost critical resolved")
		if s := r.monitor.Snapshot(); len(s.Alerts) != 0 || s.Servers[0].Verdict != slotmon.OK {
			t.Errorf("%+v", s)
		}
	})
}

func TestAnExpectedSlotThatDoesNotExistIsShownAndCritical(t *testing.T) {
	run(t, func(t *testing.T, start func(*rig)) {
		db := &server{}
		r := newRig(Target{Name: "db", Sample: db.sample, Slot: "ours", Expected: &slotmon.Expected{Database: "shop"}})
		start(r)
		pass(time.Second)
		r.expect(t, "slot_missing critical")
		if slots := r.monitor.Snapshot().Servers[0].Slots; len(slots) != 1 || slots[0].Slot != nil || !slots[0].Ours {
			t.Errorf("%+v", slots)
		}
	})
}

// One alert, whatever the number of slots; their own alerts stay as they are.
func TestAnUnreachableServerIsUnknownAndOneAlert(t *testing.T) {
	run(t, func(t *testing.T, start func(*rig)) {
		db := &server{slots: []slotmon.Slot{healthy("a"), lost("b")}}
		r := newRig(Target{Name: "db", Sample: db.sample})
		start(r)
		pass(time.Second)
		r.expect(t, "slot_lost critical")
		db.change(func() { db.err = errors.New("connection refused") })
		pass(raiseAfter + 2*interval)
		r.expect(t, "server_unreachable critical")
		s := r.monitor.Snapshot()
		if s.Servers[0].Up || s.Servers[0].Unreachable != "connection refused" || s.Servers[0].Verdict != slotmon.Unknown || s.Servers[0].Sample == nil {
			t.Errorf("%+v", s.Servers[0])
		}
		for _, slot := range s.Servers[0].Slots {
			if slot.Report.Verdict != slotmon.Unknown {
				t.Errorf("%s is %s", slot.Name, slot.Report.Verdict)
			}
		}
		if len(s.Servers[0].Slots) != 2 || len(s.Alerts) != 2 {
			t.Errorf("%+v", s)
		}
		pass(10 * time.Minute)
		r.expect(t)
		db.change(func() { db.err = nil })
		pass(resolveAfter + 2*interval)
		r.expect(t, "server_unreachable critical resolved")
	})
}

func TestAServerThatHangsDelaysNoOther(t *testing.T) {
	run(t, func(t *testing.T, start func(*rig)) {
		stuck, fine := &server{hangs: true}, &server{slots: []slotmon.Slot{healthy("a")}}
		r := newRig(Target{Name: "stuck", Sample: stuck.sample}, Target{Name: "fine", Sample: fine.sample})
		start(r)
		pass(time.Second)
		if s := r.monitor.Snapshot(); !s.Servers[1].Up || s.Servers[0].Up {
			t.Errorf("%+v", s)
		}
		pass(interval)
		if s := r.monitor.Snapshot(); s.Servers[0].Unreachable != "no answer within 5s" {
			t.Errorf("%q", s.Servers[0].Unreachable)
		}
	})
}

func TestAloneJudgesNoOtherSlot(t *testing.T) {
	run(t, func(t *testing.T, start func(*rig)) {
		db := &server{slots: []slotmon.Slot{healthy("ours"), lost("other")}}
		r := newRig(Target{Name: "db", Sample: db.sample, Slot: "ours", Expected: &slotmon.Expected{Database: "shop"}, Alone: true})
		start(r)
		pass(time.Minute)
		r.expect(t)
		if s := r.monitor.Snapshot(); s.Servers[0].Verdict != slotmon.OK || len(s.Servers[0].Slots) != 1 || len(s.Servers[0].Sample.Slots) != 2 {
			t.Errorf("%+v", s.Servers[0])
		}
	})
}

func TestAlertsOfAWatchedSlotEndWhenItIsDropped(t *testing.T) {
	run(t, func(t *testing.T, start func(*rig)) {
		db := &server{slots: []slotmon.Slot{lost("other")}}
		r := newRig(Target{Name: "db", Sample: db.sample})
		start(r)
		pass(time.Second)
		r.expect(t, "slot_lost critical")
		db.change(func() { db.slots = nil })
		pass(interval)
		r.expect(t, "slot_lost critical resolved")
	})
}

func TestThePublishersStateIsJudgedWithItsSlot(t *testing.T) {
	run(t, func(t *testing.T, start func(*rig)) {
		db := &server{slots: []slotmon.Slot{healthy("ours"), healthy("other")}}
		r := newRig(Target{
			Name: "db", Sample: db.sample, Slot: "ours", Expected: &slotmon.Expected{Database: "shop"},
			Publisher: func() *slotmon.Publisher {
				return &slotmon.Publisher{State: "blocked", Slot: "ours", Stall: "a row cannot be published", StallSince: time.Now()}
			},
		})
		start(r)
		pass(time.Second)
		r.expect(t, "publisher_blocked critical")
	})
}

func TestStandbysAreAskedForFailoverSlotsOnly(t *testing.T) {
	run(t, func(t *testing.T, start func(*rig)) {
		primary, standby := &server{slots: []slotmon.Slot{healthy("plain")}}, &server{}
		r := newRig(Target{Name: "db", Sample: primary.sample, Standbys: []Standby{{Name: "standby", Sample: standby.sample}}})
		start(r)
		pass(interval + time.Second)
		if standby.rounds != 0 {
			t.Errorf("asked %d times without a failover slot", standby.rounds)
		}
		failover := healthy("f")
		failover.Failover = ptr(true)
		primary.change(func() { primary.slots = append(primary.slots, failover) })
		pass(slotmon.DefaultLimits().NotReady.Warning + raiseAfter + 3*interval)
		r.expect(t, "failover_not_ready warning")
		for _, slot := range r.monitor.Snapshot().Servers[0].Slots {
			if asked := len(slot.Standbys); (slot.Name == "f") != (asked == 1) {
				t.Errorf("slot %s has the answers of %d standbys", slot.Name, asked)
			}
		}
		synced := healthy("f")
		synced.Synced = ptr(true)
		// A server that was promoted keeps the mark, and is no standby any more.
		standby.change(func() { standby.slots = []slotmon.Slot{synced} })
		pass(resolveAfter + 2*interval)
		r.expect(t)
		standby.change(func() { standby.recovery = true })
		pass(resolveAfter + 2*interval)
		r.expect(t, "failover_not_ready warning resolved")
	})
}
