package slotmon

import (
	"fmt"
	"time"

	"github.com/cdcpub/cdcpub/internal/human"
)

// Why a time is not finite. With NotGrowing and NoLimit nothing will happen at
// the present rate; every other reason means that it is not known.
const (
	NotGrowing = "retained WAL does not grow"
	NoLimit    = "max_slot_wal_keep_size is not set"
)

// stepTime bounds what restart_lsn may be behind without being held: it moves
// in steps, when PostgreSQL logs the running transactions (every 15 s).
const stepTime = 30 * time.Second

// retainedGrowth is how fast retained WAL grows for as long as things stay as
// they are, in bytes per second. It is the growth of the confirmed lag, which
// is smooth, unless retained WAL is more beyond it than restart_lsn's steps
// explain, or has grown by more: then something holds restart_lsn, and it is the
// growth of retained WAL itself.
func (j *judge) retainedGrowth() *float64 {
	t := &j.subject.Trend
	if t.RetainedRate == nil || t.WALRate == nil || t.ConfirmedRate == nil {
		return t.RetainedRate
	}
	lag := *t.WALRate - *t.ConfirmedRate
	step := max(*t.WALRate, *t.ConfirmedRate) * stepTime.Seconds()
	if beyond := (*t.RetainedRate - lag) * t.Over.Seconds(); beyond > step || j.slot.heldBack(t) && *t.RetainedRate > lag {
		return t.RetainedRate
	}
	return &lag
}

// heldBack tells if restart_lsn is further behind confirmed_flush_lsn than its
// steps explain: its WAL is not retained for the reader's sake.
func (s *Slot) heldBack(t *Trend) bool {
	if s == nil || s.RetainedBytes == nil || s.ConfirmedLagBytes == nil {
		return false
	}
	steps := float64(smallLag)
	for _, rate := range []*float64{t.WALRate, t.ConfirmedRate} {
		if rate != nil {
			steps = max(steps, *rate*stepTime.Seconds())
		}
	}
	return float64(*s.RetainedBytes-max(*s.ConfirmedLagBytes, 0)) > steps
}

// KeepsUp tells if the reader of a slot keeps up: what it has not confirmed is
// no more than a WAL segment, or what the server writes in 30 s (one that
// reports every ten seconds is always some of it behind), and nothing else
// holds restart_lsn.
func (s *Slot) KeepsUp(t Trend) bool {
	if s.ConfirmedLagBytes == nil || s.heldBack(&t) {
		return false
	}
	lag := float64(*s.ConfirmedLagBytes)
	return lag <= smallLag || t.WALRate != nil && lag <= *t.WALRate*smallDelay.Seconds()
}

// untilGrown is the time in which retained WAL grows by room bytes.
func (j *judge) untilGrown(room float64) (*float64, string) {
	switch {
	case j.growth == nil:
		return nil, "the growth of retained WAL needs a second sample"
	case *j.growth < 1:
		return nil, NotGrowing
	}
	seconds := max(room, 0) / *j.growth
	return &seconds, ""
}

// holdsNone says why the slot can neither be lost nor fill a volume.
func (j *judge) holdsNone() string {
	switch {
	case j.slot == nil:
		return "the slot does not exist"
	case j.slot.Lost():
		return "the slot is lost and holds no WAL"
	case j.slot.RestartLSN == nil && j.slot.RetainedBytes == nil:
		return "the slot holds no WAL: restart_lsn is NULL"
	}
	return ""
}

// secondsToLost is the time until the slot is beyond max_slot_wal_keep_size,
// or unused for longer than idle_replication_slot_timeout.
func (j *judge) secondsToLost() (*float64, string) {
	zero := 0.0
	if j.slot != nil && (j.slot.Lost() || j.isUnreserved()) {
		return &zero, ""
	}
	if why := j.holdsNone(); why != "" {
		return nil, why
	}
	seconds, why := j.secondsToLimit()
	if idle := j.secondsToIdleTimeout(); idle != nil && (seconds == nil || *idle < *seconds) {
		return idle, ""
	}
	return seconds, why
}

func (j *judge) secondsToLimit() (*float64, string) {
	switch safe := j.slot.SafeWALSize; {
	case safe != nil:
		return j.untilGrown(float64(*safe))
	case j.sample.Server.MaxSlotWALKeepSize < 0:
		return nil, NoLimit
	}
	return nil, "PostgreSQL does not say safe_wal_size"
}

// secondsToIdleTimeout is nil where that timeout (18) does not apply.
func (j *judge) secondsToIdleTimeout() *float64 {
	timeout, inactive := j.sample.Server.IdleSlotTimeout, j.subject.Trend.InactiveFor
	if timeout <= 0 || inactive == nil || j.slot.Active || j.synced() {
		return nil
	}
	idle := max(*inactive, 0)
	if since := j.slot.InactiveSince; since != nil { // the server goes by its own memory
		idle = j.sample.Server.Now.Sub(*since)
	}
	left := min(max((timeout-idle).Seconds(), 0), timeout.Seconds())
	return &left
}

func (j *judge) secondsToFull() (*float64, string) {
	if why := j.holdsNone(); why != "" {
		return nil, why
	}
	volume := &j.sample.Server.Volume
	switch retained := j.slot.RetainedBytes; {
	case volume.FreeBytes != nil && *volume.FreeBytes <= 0 && retained != nil && *retained > smallLag:
		return new(0.0), "" // it cannot grow any more
	case volume.FreeBytes != nil:
		return j.untilGrown(float64(*volume.FreeBytes))
	case volume.Unknown != "":
		return nil, volume.Unknown
	}
	return nil, "the free space of its volume is not known"
}

// timeToLost is by what is more urgent: the WAL, or that nobody uses the slot.
func (j *judge) timeToLost() *Finding {
	if j.holdsNone() != "" && !j.isUnreserved() {
		return nil
	}
	byWAL, byIdle := j.lostByWAL(), j.lostByIdleness()
	switch {
	case byWAL == nil:
		return byIdle
	case byIdle == nil, byIdle.Severity < byWAL.Severity, byIdle.Severity == byWAL.Severity && *byIdle.Value >= *byWAL.Value:
		return byWAL
	}
	return byIdle
}

func (j *judge) lostByWAL() *Finding {
	seconds, _ := j.secondsToLimit()
	if seconds == nil || j.isUnreserved() {
		seconds = new(0.0)
		if !j.isUnreserved() {
			return nil
		}
	}
	room := 0.0
	if safe := j.slot.SafeWALSize; safe != nil {
		room = float64(*safe)
	}
	f := byLimit(TimeToLost, *seconds, "seconds", j.limits.TimeToLost.below(*seconds).atMost(j.foreseen(room)))
	if f == nil {
		return nil
	}
	left := "max_slot_wal_keep_size is passed"
	if !j.isUnreserved() {
		left = fmt.Sprintf("%s are left until max_slot_wal_keep_size, and retained WAL grows by %s", human.Bytes(room), human.BytesPerSecond(*j.growth))
	}
	f.Summary = "will be lost " + within(f) + ": " + left
	f.Cause, f.Cure = j.cause(), j.cure(j.moreTime())
	f.AtOnce = f.Severity == Critical && *seconds < urgent.Seconds()
	return f
}

// urgent is the time left from which an alert does not wait until its reason
// has lasted.
const urgent = 10 * time.Minute

// moreTime is how to keep a slot that is about to be lost, empty where no limit
// is in the way.
func (j *judge) moreTime() string {
	if j.slot.SafeWALSize == nil {
		return ""
	}
	return "for more time, if the disk has room: " + keepSize(j.moreThanRetained())
}

// keepSize is the command that sets max_slot_wal_keep_size: psql sends each -c
// by itself, as ALTER SYSTEM needs it.
func keepSize(value string) string {
	return "`psql -c \"ALTER SYSTEM SET max_slot_wal_keep_size = '" + value + "'\" -c \"SELECT pg_reload_conf()\"`"
}

// lostByIdleness goes by the limits, or by a half and a quarter of
// idle_replication_slot_timeout where those are shorter: a reader that was away
// for a minute has done no harm, however short the timeout.
func (j *judge) lostByIdleness() *Finding {
	left := j.secondsToIdleTimeout()
	if left == nil {
		return nil
	}
	timeout := j.sample.Server.IdleSlotTimeout
	limits := Duration{min(j.limits.TimeToLost.Warning, timeout/2), min(j.limits.TimeToLost.Critical, timeout/4)}
	f := byLimit(TimeToLost, *left, "seconds", limits.below(*left))
	if f == nil {
		return nil
	}
	f.Summary = fmt.Sprintf("will be lost %s: nobody uses it, and idle_replication_slot_timeout is %s", within(f), human.Seconds(timeout.Seconds()))
	f.Cause, f.Cure = j.cause(), j.cure()
	return f
}

// What must be used of the room that a slot had until it is lost, or until the
// volume is full, for its growth to be foretold as a warning and as critical.
const (
	foreseenWarning  = 0.1
	foreseenCritical = 0.25
)

// foreseen is the severity at most that a time has which is foretold from
// growth. A slot with a reader grows for a while with each large transaction and
// each burst, and then shrinks again: that the growth goes on for an hour is no
// more than a guess until a good part of the room is used. Where nobody reads,
// it is certain.
func (j *judge) foreseen(room float64) Severity {
	if !j.slot.Active || j.slot.RetainedBytes == nil {
		return Critical
	}
	used := max(float64(*j.slot.RetainedBytes), 0)
	switch whole := used + max(room, 0); {
	case used >= foreseenCritical*whole:
		return Critical
	case used >= foreseenWarning*whole:
		return Warning
	}
	return OK
}

func (j *judge) timeToFull() *Finding {
	seconds, _ := j.secondsToFull()
	if seconds == nil {
		return nil
	}
	free := *j.sample.Server.Volume.FreeBytes
	f := byLimit(TimeToFull, *seconds, "seconds", j.limits.TimeToFull.below(*seconds).atMost(j.foreseen(float64(free))))
	if f == nil {
		return nil
	}
	if j.growth == nil || *j.growth < 1 { // nothing is free
		f.Summary = fmt.Sprintf("has a volume of pg_wal on which nothing is free, and retains %s of it", human.Bytes(float64(*j.slot.RetainedBytes)))
	} else {
		f.Summary = fmt.Sprintf("will fill the volume of pg_wal %s: %s are free, and retained WAL grows by %s", within(f), human.Bytes(float64(free)), human.BytesPerSecond(*j.growth))
	}
	f.Cause = j.cause()
	f.Cure = j.cure()
	if safe := j.slot.SafeWALSize; safe != nil && *safe < free {
		f.Cure += "; max_slot_wal_keep_size gives up the slot before the volume is full"
	} else {
		f.Cure += "; to save the server at the price of the slot, set max_slot_wal_keep_size: docs/runbook.md#time_to_full"
	}
	return f
}

// within completes a time that less of is worse with its limit.
func within(f *Finding) string {
	text := fmt.Sprintf("in about %s", human.Seconds(*f.Value))
	if *f.Value < 1 {
		text = "any moment"
	}
	if f.Severity == OK {
		return fmt.Sprintf("%s (still near the limit of %s)", text, human.Seconds(*f.Limit))
	}
	return fmt.Sprintf("%s (limit %s)", text, human.Seconds(*f.Limit))
}

func (j *judge) retainedWAL() *Finding {
	if j.slot.RetainedBytes == nil {
		return nil
	}
	retained, limits := float64(*j.slot.RetainedBytes), j.limits.RetainedWAL
	f := byLimit(RetainedWAL, retained, "bytes", above(retained, float64(limits.Warning), float64(limits.Critical)))
	if f == nil {
		return nil
	}
	f.Summary = fmt.Sprintf("retains %s of WAL%s", human.Bytes(retained), f.against(human.Bytes(*f.Limit)))
	f.Cause, f.Cure = j.cause(), j.cure()
	return f
}

func (j *judge) retainedShare() *Finding {
	share, ok := j.share()
	if !ok {
		return nil
	}
	f := byLimit(RetainedShare, share, "ratio", above(share, j.limits.RetainedShare.Warning, j.limits.RetainedShare.Critical))
	if f == nil {
		return nil
	}
	f.Summary = fmt.Sprintf("has used %s of max_slot_wal_keep_size (%s)%s", human.Percent(share), human.Bytes(float64(j.sample.Server.MaxSlotWALKeepSize)), f.against(human.Percent(*f.Limit)))
	f.Cause, f.Cure = j.cause(), j.cure(j.moreTime())
	return f
}

// share is the part of max_slot_wal_keep_size that is used. safe_wal_size knows
// of whole segments and of wal_keep_size, retained WAL does not.
func (j *judge) share() (float64, bool) {
	limit := float64(j.sample.Server.MaxSlotWALKeepSize)
	switch {
	case limit <= 0:
		return 0, false
	case j.slot.SafeWALSize != nil:
		return max(1-float64(*j.slot.SafeWALSize)/limit, 0), true
	case j.slot.RetainedBytes != nil:
		return float64(*j.slot.RetainedBytes) / limit, true
	}
	return 0, false
}

func (j *judge) noRetentionLimit() *Finding {
	if j.sample.Server.MaxSlotWALKeepSize >= 0 || j.holdsNone() != "" {
		return nil
	}
	cause := "max_slot_wal_keep_size is -1"
	if _, why := j.secondsToFull(); j.sample.Server.Volume.FreeBytes == nil {
		cause += ", and the time until the volume is full is unknown: " + why
	}
	return info(NoRetentionLimit, "may retain WAL until the volume is full: the server has no limit", cause,
		keepSize("...")+": a slot that falls too far behind is then lost, in place of the server")
}
