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
// is smooth, unless retained WAL has grown by more beyond it than restart_lsn's
// steps explain: then something holds restart_lsn, and it is the growth of
// retained WAL itself.
func (j *judge) retainedGrowth() *float64 {
	t := &j.subject.Trend
	if t.RetainedRate == nil || t.WALRate == nil || t.ConfirmedRate == nil {
		return t.RetainedRate
	}
	lag := *t.WALRate - *t.ConfirmedRate
	step := max(*t.WALRate, *t.ConfirmedRate) * stepTime.Seconds()
	if beyond := (*t.RetainedRate - lag) * t.Over.Seconds(); beyond > step {
		return t.RetainedRate
	}
	return &lag
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
	left := max(timeout.Seconds()-inactive.Seconds(), 0)
	return &left
}

func (j *judge) secondsToFull() (*float64, string) {
	if why := j.holdsNone(); why != "" {
		return nil, why
	}
	volume := &j.sample.Server.Volume
	switch {
	case volume.FreeBytes != nil:
		return j.untilGrown(float64(*volume.FreeBytes))
	case volume.Unknown != "":
		return nil, volume.Unknown
	}
	return nil, "the free space of its volume is not known"
}

func (j *judge) timeToLost() *Finding {
	seconds, _ := j.secondsToLost()
	if seconds == nil {
		return nil
	}
	f := byLimit(TimeToLost, *seconds, "seconds", j.limits.TimeToLost.below(*seconds))
	if f == nil {
		return nil
	}
	f.Summary = "will be lost " + within(f) + ": " + j.roomLeft()
	f.Cause = j.cause()
	f.Cure = j.cure()
	if idle := j.secondsToIdleTimeout(); j.slot.SafeWALSize != nil && (idle == nil || *idle > *seconds) {
		f.Cure += "; for more time: ALTER SYSTEM SET max_slot_wal_keep_size = '" + j.moreThanRetained() + "'; SELECT pg_reload_conf(), if the disk has room"
	}
	return f
}

// roomLeft says what remains until the slot is lost.
func (j *judge) roomLeft() string {
	byIdle := j.secondsToIdleTimeout()
	byWAL, _ := j.secondsToLimit()
	switch {
	case j.isUnreserved():
		return "max_slot_wal_keep_size is passed"
	case byIdle != nil && (byWAL == nil || *byIdle < *byWAL):
		return fmt.Sprintf("nobody uses it, and idle_replication_slot_timeout is %s", human.Seconds(j.sample.Server.IdleSlotTimeout.Seconds()))
	case j.slot.SafeWALSize == nil || j.growth == nil:
		return ""
	}
	return fmt.Sprintf("%s are left until max_slot_wal_keep_size, and retained WAL grows by %s", human.Bytes(float64(*j.slot.SafeWALSize)), human.BytesPerSecond(*j.growth))
}

func (j *judge) timeToFull() *Finding {
	seconds, _ := j.secondsToFull()
	if seconds == nil {
		return nil
	}
	f := byLimit(TimeToFull, *seconds, "seconds", j.limits.TimeToFull.below(*seconds))
	if f == nil {
		return nil
	}
	free := *j.sample.Server.Volume.FreeBytes
	f.Summary = fmt.Sprintf("will fill the volume of pg_wal %s: %s are free, and retained WAL grows by %s", within(f), human.Bytes(float64(free)), human.BytesPerSecond(*j.growth))
	f.Cause = j.cause()
	f.Cure = j.cure()
	if safe := j.slot.SafeWALSize; safe != nil && *safe < free {
		f.Cure += "; max_slot_wal_keep_size gives up the slot before the volume is full"
	} else {
		f.Cure += "; to save the server at the price of the slot: ALTER SYSTEM SET max_slot_wal_keep_size, SELECT pg_reload_conf()"
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
	f.Cause, f.Cure = j.cause(), j.cure()
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
		"ALTER SYSTEM SET max_slot_wal_keep_size = '...'; SELECT pg_reload_conf(): a slot that falls too far behind is then lost, in place of the server")
}
