package slotmon

import (
	"cmp"
	"slices"
	"time"
)

// Alerts turns findings into alerts that begin, change and end:
//
//	pending   the finding is seen; nothing is told yet
//	raised    it has lasted for RaiseAfter, or is AtOnce
//	resolved  it has been absent for ResolveAfter; forgotten
//
// What says what something is (that the slot is missing or lost, for example)
// is resolved by the first sample that shows otherwise, and so is what was foreseen
// for a slot when it is lost or missing.
//
// Two limits stand between a value and an alert that flaps. A finding is there
// from when its Severity says so until its Hold, by relaxed limits, does not.
// And both its presence and its absence must last.
//
// An alert becomes more severe when the worse severity has lasted for
// RaiseAfter, less severe when the better one has for ResolveAfter; its Since
// stays. Info findings never make an alert, Unknown ones make a critical one.
//
// Alerts has no clock. It must be owned by one goroutine.
type Alerts struct {
	timing Timing
	lives  map[AlertKey]*life
}

// NewAlerts returns a state machine without alerts.
func NewAlerts(timing Timing) *Alerts {
	return &Alerts{timing: timing, lives: map[AlertKey]*life{}}
}

// Update takes the findings of one slot (Report.ForAlerts), or with an empty
// slot those of the server itself, and returns the alerts that were raised,
// have changed severity, or were resolved (Resolved is then set), worst first.
// It touches no other slot.
//
// While the findings contain ServerUnreachable nothing is known of the slot:
// only that finding counts, and the slot's other alerts are neither raised nor
// resolved. With an empty slot that holds for every slot of the server. When it
// can be looked at again, absence is counted from the beginning.
func (a *Alerts) Update(now time.Time, server, slot string, findings []Finding) []Alert {
	present := byID(findings)
	unreachable, blind := present[ServerUnreachable]
	if blind {
		a.freeze(server, slot)
		present = map[FindingID]Finding{ServerUnreachable: unreachable}
	}
	for id, finding := range present {
		if key := (AlertKey{server, slot, id}); a.lives[key] == nil && alertLevel(finding.Severity) != OK {
			a.lives[key] = &life{alert: Alert{Server: server, Slot: slot, ID: id, Since: now}}
		}
	}
	var changed []Alert
	for key, l := range a.lives {
		if key.Server != server || key.Slot != slot || blind && key.ID != ServerUnreachable {
			continue
		}
		before, timing := l.alert.Severity, a.timing
		if _, there := present[key.ID]; !there && (isState(key.ID) || isForeseen(key.ID) && over(present)) {
			timing.ResolveAfter = 0
		}
		l.step(now, present[key.ID], timing)
		switch {
		case l.alert.Severity != OK && l.alert.Severity != before:
			changed = append(changed, l.alert)
		case l.alert.Severity == OK && before != OK:
			changed = append(changed, l.resolved(now, before))
		}
		if l.over() {
			delete(a.lives, key)
		}
	}
	slices.SortFunc(changed, compareAlerts)
	return changed
}

// isState tells if a finding says what something is, not how much: it does not
// flap, and what was true of a slot until it was made anew must not be acted on
// any more.
func isState(id FindingID) bool {
	switch id {
	case SlotMissing, SlotLost, SlotWrongPlugin, SlotWrongDatabase, SlotTwoPhase, PublicationMissing, PublicationTables:
		return true
	}
	return false
}

// isForeseen tells if a finding is about what will become of a slot.
func isForeseen(id FindingID) bool {
	switch id {
	case SlotUnreserved, TimeToLost, TimeToFull, RetainedWAL, RetainedShare, SlotInactive, ConfirmedLag, CatalogXminAge, FailoverNotReady:
		return true
	}
	return false
}

// over tells if the slot is no more: what was foreseen has happened.
func over(present map[FindingID]Finding) bool {
	_, lost := present[SlotLost]
	_, missing := present[SlotMissing]
	return lost || missing
}

// Forget resolves, at once, the alerts of slots of the server that are not in
// present, because they no longer exist and nobody needs them, and returns
// them. A slot that is expected belongs in present although it is missing, and
// so does the empty slot.
func (a *Alerts) Forget(now time.Time, server string, present []string) []Alert {
	var resolved []Alert
	for key, l := range a.lives {
		if key.Server != server || slices.Contains(present, key.Slot) {
			continue
		}
		if severity := l.alert.Severity; severity != OK {
			resolved = append(resolved, l.resolved(now, severity))
		}
		delete(a.lives, key)
	}
	slices.SortFunc(resolved, compareAlerts)
	return resolved
}

// Active returns the alerts that are raised, worst first, with the present
// numbers in their texts.
func (a *Alerts) Active() []Alert {
	active := []Alert{}
	for _, l := range a.lives {
		if l.alert.Severity != OK {
			active = append(active, l.alert)
		}
	}
	slices.SortFunc(active, compareAlerts)
	return active
}

// freeze forgets since when findings have been absent.
func (a *Alerts) freeze(server, slot string) {
	for key, l := range a.lives {
		if key.Server == server && (slot == "" || key.Slot == slot) && key.ID != ServerUnreachable {
			l.absent = [2]time.Time{}
		}
	}
}

// byID keeps the worst finding of each id.
func byID(findings []Finding) map[FindingID]Finding {
	worst := map[FindingID]Finding{}
	for _, f := range findings {
		if other, ok := worst[f.ID]; !ok || other.Severity.Worse(f.Severity) {
			worst[f.ID] = f
		}
	}
	return worst
}

func compareAlerts(a, b Alert) int {
	return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.Server, b.Server), cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.ID, b.ID))
}
