package slotmon

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var timing = Timing{RaiseAfter: 30 * time.Second, ResolveAfter: time.Minute}

// bell is one slot's Alerts, updated every ten seconds.
type bell struct {
	alerts *Alerts
	at     time.Time
}

func newBell() *bell { return &bell{NewAlerts(timing), noon} }

func (b *bell) after(d time.Duration, findings ...Finding) []Alert {
	b.at = b.at.Add(d)
	return b.alerts.Update(b.at, "db", "s", findings)
}

func retainedAlert(severity, hold Severity) Finding {
	return Finding{ID: RetainedWAL, Severity: severity, Hold: hold, Summary: severity.String() + "/" + hold.String()}
}

func expectAlerts(t *testing.T, got []Alert, want ...Alert) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d alerts, want %d: %+v", len(got), len(want), got)
	}
	for i := range got {
		g, w := got[i], want[i]
		if g.ID != w.ID || g.Severity != w.Severity || !g.Since.Equal(w.Since) || !g.Raised.Equal(w.Raised) || !g.Resolved.Equal(w.Resolved) || w.Summary != "" && g.Summary != w.Summary {
			t.Fatalf("got %+v\nwant %+v", g, w)
		}
	}
}

const ten = 10 * time.Second

func TestAnAlertIsRaisedWhenItsFindingHasLasted(t *testing.T) {
	b := newBell()
	warning := retainedAlert(Warning, Warning)
	expectAlerts(t, b.after(0, warning))
	expectAlerts(t, b.after(29*time.Second, warning))
	if len(b.alerts.Active()) != 0 {
		t.Fatal("it is pending")
	}
	raised := Alert{ID: RetainedWAL, Severity: Warning, Since: noon, Raised: noon.Add(30 * time.Second)}
	expectAlerts(t, b.after(time.Second, warning), raised)
	expectAlerts(t, b.after(ten, warning))
	expectAlerts(t, b.alerts.Active(), raised)
}

func TestAFindingThatGoesAwayBeforeThatIsForgotten(t *testing.T) {
	b := newBell()
	b.after(0, retainedAlert(Warning, Warning))
	expectAlerts(t, b.after(ten))
	expectAlerts(t, b.after(ten, retainedAlert(Warning, Warning)))
	expectAlerts(t, b.after(29*time.Second, retainedAlert(Warning, Warning)))
	if len(b.alerts.lives) != 1 {
		t.Fatal("memory")
	}
	b.after(ten)
	if len(b.alerts.lives) != 0 {
		t.Fatal("memory")
	}
}

func TestAtOnceNeedsNoTime(t *testing.T) {
	b := newBell()
	expectAlerts(t, b.after(0, *atOnce(SlotLost, "x", "", "")), Alert{ID: SlotLost, Severity: Critical, Since: noon, Raised: noon})
}

func TestInfoNeverAlertsAndUnknownIsCritical(t *testing.T) {
	b := newBell()
	findings := []Finding{*info(LongTransaction, "x", "", ""), {ID: ServerUnreachable, Severity: Unknown, Hold: Unknown}}
	b.after(0, findings...)
	expectAlerts(t, b.after(time.Minute, findings...), Alert{ID: ServerUnreachable, Severity: Critical, Since: noon, Raised: b.at})
}

func TestSeverityFollowsWhatLasts(t *testing.T) {
	b := newBell()
	b.after(0, retainedAlert(Warning, Warning))
	b.after(time.Minute, retainedAlert(Warning, Warning))
	raised := b.at
	expectAlerts(t, b.after(ten, retainedAlert(Critical, Critical)))
	expectAlerts(t, b.after(30*time.Second, retainedAlert(Critical, Critical)), Alert{ID: RetainedWAL, Severity: Critical, Since: noon, Raised: raised})
	expectAlerts(t, b.after(time.Hour, retainedAlert(Warning, Critical))) // still near
	expectAlerts(t, b.after(ten, retainedAlert(Warning, Warning)))
	expectAlerts(t, b.after(59*time.Second, retainedAlert(OK, Warning)))
	expectAlerts(t, b.after(time.Second, retainedAlert(OK, Warning)), Alert{ID: RetainedWAL, Severity: Warning, Since: noon, Raised: raised})
	expectAlerts(t, b.after(ten, *atOnce(RetainedWAL, "x", "", "")), Alert{ID: RetainedWAL, Severity: Critical, Since: noon, Raised: raised})
}

func TestAnAlertIsResolvedWhenItsFindingHasBeenAbsent(t *testing.T) {
	b := newBell()
	b.after(0, retainedAlert(Critical, Critical))
	b.after(30*time.Second, retainedAlert(Critical, Critical))
	raised := b.at
	b.after(time.Hour, retainedAlert(OK, Warning))
	expectAlerts(t, b.alerts.Active(), Alert{ID: RetainedWAL, Severity: Critical, Since: noon, Raised: raised, Summary: "ok/warning"})
	b.after(ten)
	expectAlerts(t, b.after(59*time.Second, retainedAlert(OK, OK)), Alert{ID: RetainedWAL, Severity: Warning, Since: noon, Raised: raised})
	expectAlerts(t, b.after(time.Second), Alert{ID: RetainedWAL, Severity: Warning, Since: noon, Raised: raised, Resolved: noon.Add(time.Hour + 100*time.Second), Summary: "critical/critical"})
	if len(b.alerts.lives) != 0 || len(b.alerts.Active()) != 0 {
		t.Fatal("it is remembered")
	}
}

func TestNothingIsRaisedOrResolvedWhileTheServerIsUnreachable(t *testing.T) {
	down := Finding{ID: ServerUnreachable, Severity: Unknown, Hold: Unknown}
	for _, slot := range []string{"s", ""} {
		b := newBell()
		unreserved, pending := *atOnce(SlotUnreserved, "x", "", ""), retainedAlert(Warning, Warning)
		b.after(0, unreserved)
		b.after(ten)
		b.after(0, pending)
		began := b.at
		for range 30 {
			b.at = b.at.Add(ten)
			for _, a := range b.alerts.Update(b.at, "db", slot, []Finding{down, retainedAlert(Critical, Critical)}) {
				if a.ID != ServerUnreachable {
					t.Fatalf("%+v", a)
				}
			}
		}
		b.alerts.Update(b.at, "db", "", nil)
		expectAlerts(t, b.after(0, pending), Alert{ID: RetainedWAL, Severity: Warning, Since: began, Raised: b.at})
		resolved := b.after(59*time.Second, pending)
		if slices.ContainsFunc(resolved, func(a Alert) bool { return a.ID == SlotUnreserved }) {
			t.Fatal("absence counts from when it could be looked at again")
		}
		resolved = b.after(time.Second, pending)
		if !slices.ContainsFunc(resolved, func(a Alert) bool { return a.ID == SlotUnreserved && !a.Resolved.IsZero() }) {
			t.Fatalf("%+v", resolved)
		}
	}
}

func TestOneSlotDoesNotTouchOthers(t *testing.T) {
	b := newBell()
	lost := *atOnce(SlotLost, "x", "", "")
	b.after(0, lost)
	b.alerts.Update(noon, "db", "other", []Finding{lost})
	b.alerts.Update(noon, "db2", "s", []Finding{lost})
	for i := range 10 {
		if changed := b.alerts.Update(noon.Add(time.Duration(i)*time.Minute), "db", "other", nil); len(changed) > 0 && changed[0].Slot != "other" {
			t.Fatalf("%+v", changed)
		}
	}
	if active := b.alerts.Active(); len(active) != 2 || active[0].Server != "db" || active[1].Server != "db2" {
		t.Fatalf("%+v", active)
	}
}

func TestASlotThatIsGoneIsForgotten(t *testing.T) {
	b := newBell()
	lost := *atOnce(SlotLost, "x", "", "")
	b.after(0, lost, retainedAlert(Warning, Warning))
	b.alerts.Update(noon, "db2", "s", []Finding{lost})
	expectAlerts(t, b.alerts.Forget(b.at, "db", []string{"s"}))
	expectAlerts(t, b.alerts.Forget(b.at, "db", []string{"other"}), Alert{ID: SlotLost, Severity: Critical, Since: noon, Raised: noon, Resolved: noon, Summary: "x"})
	if len(b.alerts.lives) != 1 {
		t.Fatal("only the other server's slot stays")
	}
}

func TestAClockThatGoesBackDelaysNoAlertForLong(t *testing.T) {
	b := newBell()
	b.after(0, retainedAlert(Warning, Warning))
	b.after(-time.Hour, retainedAlert(Warning, Warning))
	if changed := b.after(30*time.Second, retainedAlert(Warning, Warning)); len(changed) != 1 {
		t.Fatalf("%+v", changed)
	}
}

// level judges retained WAL in GiB by limits of 10 and 50.
func level(value float64) []Finding {
	if f := byLimit(RetainedWAL, value, "bytes", above(value, 10, 50)); f != nil {
		return []Finding{*f}
	}
	return nil
}

func TestASawToothAroundTheLimitRaisesOnceAndResolvesOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, raised, resolved := newBell(), 0, 0
		step := time.Duration(rapid.IntRange(1, 20).Draw(t, "interval")) * time.Second
		count := func(changed []Alert) {
			for _, a := range changed {
				if a.Resolved.IsZero() {
					raised++
				} else {
					resolved++
				}
			}
		}
		low, high := rapid.Float64Range(8.01, 9.99), rapid.Float64Range(10.01, 12)
		for i := range rapid.IntRange(100, 200).Draw(t, "teeth") {
			if i%2 == 0 {
				count(b.after(step, level(high.Draw(t, "high"))...))
			} else {
				count(b.after(step, level(low.Draw(t, "low"))...))
			}
		}
		if raised != 1 || resolved != 0 {
			t.Fatalf("in the saw-tooth: raised %d, resolved %d", raised, resolved)
		}
		for range 100 {
			count(b.after(step, level(rapid.Float64Range(0, 8).Draw(t, "calm"))...))
		}
		if raised != 1 || resolved != 1 {
			t.Fatalf("raised %d, resolved %d", raised, resolved)
		}
	})
}

// A model watches random findings and checks every alert by the definitions.
func TestAlertsKeepTheirPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBell()
		active := map[FindingID]Alert{}
		// begun is since when the finding has been there without a break;
		// lastSeen is when it was last there, or could not be looked at.
		begun, lastSeen := map[FindingID]time.Time{}, map[FindingID]time.Time{}
		ids := []FindingID{RetainedWAL, SlotInactive, ServerUnreachable}
		update := func(findings []Finding) {
			blind := slices.ContainsFunc(findings, func(f Finding) bool { return f.ID == ServerUnreachable })
			changed := b.after(time.Duration(rapid.IntRange(1, 40).Draw(t, "s"))*time.Second, findings...)
			for _, id := range ids {
				i := slices.IndexFunc(findings, func(f Finding) bool { return f.ID == id })
				there := i >= 0 && max(alertLevel(findings[i].Severity), alertLevel(findings[i].Hold)) > OK
				if blind && id != ServerUnreachable {
					if _, ok := begun[id]; ok || active[id].Severity != OK {
						lastSeen[id] = b.at
					}
					continue
				}
				switch {
				case there && begun[id].IsZero() && alertLevel(findings[i].Severity) > OK:
					begun[id] = b.at
				case !there:
					delete(begun, id)
				}
				if there {
					lastSeen[id] = b.at
				}
			}
			for _, a := range changed {
				was, isActive := active[a.ID]
				switch {
				case blind && a.ID != ServerUnreachable:
					t.Fatalf("changed while unreachable: %+v", a)
				case !a.Resolved.IsZero():
					if !isActive || b.at.Sub(lastSeen[a.ID]) < timing.ResolveAfter {
						t.Fatalf("resolved %s after it was there: %+v", b.at.Sub(lastSeen[a.ID]), a)
					}
					delete(active, a.ID)
				case isActive:
					if a.Severity == was.Severity || !a.Since.Equal(was.Since) || !a.Raised.Equal(was.Raised) {
						t.Fatalf("from %+v to %+v", was, a)
					}
					active[a.ID] = a
				default:
					if b.at.Sub(begun[a.ID]) < timing.RaiseAfter || !a.Since.Equal(begun[a.ID]) || !a.Raised.Equal(b.at) {
						t.Fatalf("raised %s after it began: %+v", b.at.Sub(begun[a.ID]), a)
					}
					active[a.ID] = a
				}
			}
			if got := b.alerts.Active(); len(got) != len(active) {
				t.Fatalf("active %+v, told of %+v", got, active)
			}
		}
		severities := rapid.SampledFrom([]Severity{OK, Warning, Critical, Unknown, Info})
		for range rapid.IntRange(0, 60).Draw(t, "updates") {
			var findings []Finding
			for _, id := range ids {
				if f := (Finding{ID: id, Severity: severities.Draw(t, "severity"), Hold: severities.Draw(t, "hold")}); id != ServerUnreachable && rapid.Bool().Draw(t, "there") {
					findings = append(findings, f)
				} else if id == ServerUnreachable && rapid.IntRange(0, 4).Draw(t, "down") == 0 {
					findings = append(findings, Finding{ID: id, Severity: Unknown, Hold: Unknown})
				}
			}
			update(findings)
		}
		for range 61 { // when all findings vanish, every alert ends
			update(nil)
		}
		if len(active) != 0 || len(b.alerts.lives) != 0 {
			t.Fatalf("never resolved: %+v", active)
		}
	})
}

// Whoever obeys the alert of a slot that was made anew would drop the new one.
func TestWhatASlotIsResolvesWithTheFirstSampleThatShowsOtherwise(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	alerts := NewAlerts(Timing{RaiseAfter: 30 * time.Second, ResolveAfter: time.Minute})
	at := func(after time.Duration, findings ...Finding) (told []string) {
		for _, a := range alerts.Update(now.Add(after), "db", "s", findings) {
			state := "raised"
			if !a.Resolved.IsZero() {
				state = "resolved"
			}
			told = append(told, string(a.ID)+" "+state)
		}
		slices.Sort(told)
		return told
	}
	unreserved := Finding{ID: SlotUnreserved, Severity: Critical, Hold: Critical, AtOnce: true}
	lost := Finding{ID: SlotLost, Severity: Critical, Hold: Critical, AtOnce: true}
	for _, step := range []struct {
		after    time.Duration
		findings []Finding
		want     []string
	}{
		{0, []Finding{unreserved}, []string{"slot_unreserved raised"}},
		{10 * time.Second, []Finding{lost}, []string{"slot_lost raised", "slot_unreserved resolved"}},
		{20 * time.Second, nil, []string{"slot_lost resolved"}}, // dropped and made anew
		{30 * time.Second, []Finding{unreserved}, []string{"slot_unreserved raised"}},
		{40 * time.Second, nil, nil}, // a number may come back
		{100 * time.Second, nil, []string{"slot_unreserved resolved"}},
	} {
		if got := at(step.after, step.findings...); !slices.Equal(got, step.want) {
			t.Errorf("after %s: %q, want %q", step.after, got, step.want)
		}
	}
}
