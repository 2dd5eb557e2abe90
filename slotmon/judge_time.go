package slotmon

import (
	"fmt"
	"strings"

	"github.com/cdcpub/cdcpub/internal/human"
)

// inactive: a temporary slot ends with its session, and one that is synced from
// a primary has no reader by design.
func (j *judge) inactive() *Finding {
	if j.synced() {
		return j.copied()
	}
	inactive := j.subject.Trend.InactiveFor
	if inactive == nil || j.slot.Active || j.slot.Temporary || j.holdsNone() != "" {
		return nil
	}
	f := byLimit(SlotInactive, inactive.Seconds(), "seconds", j.limits.Inactive.above(*inactive))
	switch lag := j.slot.ConfirmedLagBytes; {
	case f != nil:
		f.Summary = fmt.Sprintf("has had no reader for %s%s", human.Seconds(inactive.Seconds()), f.against(human.Seconds(*f.Limit)))
	case j.subject.FirstLook && j.slot.InactiveSince == nil && lag != nil && *lag > 0 && j.limits.Inactive.Warning > 0:
		f = &Finding{ID: SlotInactive, Severity: Warning, Hold: Warning}
		f.Summary = fmt.Sprintf("has no reader at this moment, and PostgreSQL %s does not say since when", j.sample.Server.Version)
	default:
		return nil
	}
	f.Cause, f.Cure = j.cause(), j.cure()
	return f
}

// copied: nothing can be published through the copy of a slot. Its server was
// the primary before a failover, or was never the right one.
func (j *judge) copied() *Finding {
	lasted := j.subject.Trend.CopyFor
	if !j.expected() || lasted == nil {
		return nil
	}
	f := byLimit(SlotInactive, lasted.Seconds(), "seconds", j.limits.Inactive.above(*lasted))
	if f == nil {
		return nil
	}
	f.Summary = fmt.Sprintf("cannot be read on this server, a standby that has had only a copy of it for %s%s", human.Seconds(lasted.Seconds()), f.against(human.Seconds(*f.Limit)))
	f.Cause = "another server is the primary: after a failover, or because postgres.url leads to a standby"
	f.Cure = "let postgres.url lead to the primary, for example by both hosts and target_session_attrs=read-write"
	return f
}

func (j *judge) confirmedLag() *Finding {
	stuck := j.subject.Trend.LagNotFallingFor
	if stuck == nil || j.slot.ConfirmedLagBytes == nil {
		return nil
	}
	f := byLimit(ConfirmedLag, stuck.Seconds(), "seconds", j.limits.ConfirmedLag.above(*stuck))
	if f == nil {
		return nil
	}
	f.Summary = fmt.Sprintf("has a confirmed lag of %s that has not fallen for %s while WAL was written%s", human.Bytes(float64(*j.slot.ConfirmedLagBytes)), human.Seconds(stuck.Seconds()), f.against(human.Seconds(*f.Limit)))
	f.Cause, f.Cure = j.cause(), j.cure()
	return f
}

func (j *judge) catalogXminAge() *Finding {
	if j.slot.CatalogXminAge == nil {
		return nil
	}
	age, limits := *j.slot.CatalogXminAge, j.limits.CatalogXminAge
	f := byLimit(CatalogXminAge, float64(age), "transactions", above(float64(age), float64(limits.Warning), float64(limits.Critical)))
	if f == nil {
		return nil
	}
	f.Summary = fmt.Sprintf("holds catalog_xmin back by %s transactions%s: vacuum cannot clean the system catalogs", human.Count(age), f.against(human.Count(int64(*f.Limit))))
	f.Cause, f.Cure = j.cause(), j.cure()
	if j.slot.Lost() {
		f.Cure = fmt.Sprintf("`cdcpub slot drop %s`: a lost slot serves nobody", j.slot.Name)
	} else if older := j.oldestXmin(); older != nil {
		f.Cause = fmt.Sprintf("slot %s is older (%s transactions), and new slots begin at the oldest: look there first", older.Name, human.Count(*older.CatalogXminAge))
		f.Cure = fmt.Sprintf("`cdcpub slot status %s`", older.Name)
	}
	return f
}

// oldestXmin returns the slot that holds catalog_xmin back most, nil if that is
// this one.
func (j *judge) oldestXmin() *Slot {
	oldest := j.slot
	for i := range j.sample.Slots {
		if s := &j.sample.Slots[i]; s.CatalogXminAge != nil && *s.CatalogXminAge > *oldest.CatalogXminAge {
			oldest = s
		}
	}
	if oldest == j.slot {
		return nil
	}
	return oldest
}

// failoverNotReady: one standby that has the slot ready is enough.
func (j *judge) failoverNotReady() *Finding {
	if j.slot.Failover == nil || !*j.slot.Failover || j.sample.Server.InRecovery {
		return nil
	}
	if len(j.subject.Standbys) == 0 {
		return info(FailoverNotReady, "is a failover slot, and it is not known whether a standby has it", "no standby is configured", "name the standbys in slot_monitor.standbys")
	}
	notReady := j.subject.Trend.NotReadyFor
	for i := range j.subject.Standbys {
		if j.subject.Standbys[i].Ready() {
			return nil
		}
	}
	if notReady == nil {
		return nil
	}
	f := byLimit(FailoverNotReady, notReady.Seconds(), "seconds", j.limits.NotReady.above(*notReady))
	if f == nil {
		return nil
	}
	f.Summary = fmt.Sprintf("would not survive a failover: no standby has had it ready for %s%s", human.Seconds(notReady.Seconds()), f.against(human.Seconds(*f.Limit)))
	f.Cause = standbyStates(j.subject.Standbys)
	f.Cure = "on the standby: sync_replication_slots = on, hot_standby_feedback = on, primary_slot_name and a dbname in primary_conninfo; the slot must also have moved since it was created: SELECT pg_log_standby_snapshot() on the primary helps an idle one"
	return f
}

func standbyStates(standbys []Standby) string {
	states := make([]string, len(standbys))
	for i := range standbys {
		s := &standbys[i]
		states[i] = s.Address + ": "
		switch {
		case s.Unreachable != "":
			states[i] += "cannot be asked: " + s.Unreachable
		case s.Not != "":
			states[i] += s.Not
		case s.Slot == nil:
			states[i] += "does not have the slot"
		case s.Slot.Lost():
			states[i] += "its copy is invalidated"
		case s.Slot.Synced == nil || !*s.Slot.Synced:
			states[i] += "has a slot of that name of its own, which is not synced"
		default:
			states[i] += "its copy is still temporary"
		}
	}
	return strings.Join(states, "; ")
}
