package slotmon

import "time"

// life is one finding from when it is first seen until its alert has ended.
type life struct {
	// alert has the severity OK while the finding is pending.
	alert Alert
	// told is the text of when the limit was last reached: what a resolved
	// alert was about.
	told Finding
	// reached is since when the finding has been at least Warning and at least
	// Critical, as its Hold keeps it; absent since when Hold has been below
	// them. One of the two is zero.
	reached, absent [2]time.Time
}

// alertLevel is the severity of an alert for that of a finding.
func alertLevel(s Severity) Severity {
	switch s {
	case Warning:
		return Warning
	case Critical, Unknown:
		return Critical
	}
	return OK
}

// step takes the finding as it is now; the zero Finding is an absent one.
func (l *life) step(now time.Time, f Finding, timing Timing) {
	severity := alertLevel(f.Severity)
	hold := max(severity, alertLevel(f.Hold))
	for level := Warning; level <= Critical; level++ {
		i := level - Warning
		mark(&l.reached[i], now, severity >= level, hold < level)
		mark(&l.absent[i], now, hold < level, hold >= level)
	}
	if severity != OK {
		l.told = f
	}
	if hold != OK {
		l.alert.Summary, l.alert.Cause, l.alert.Cure = f.Summary, f.Cause, f.Cure
	}
	was := l.alert.Severity
	l.alert.Severity = l.next(now, severity, f.AtOnce, timing)
	if was == OK && l.alert.Severity != OK {
		l.alert.Raised = now
	}
}

// next is the alert's severity from now on.
func (l *life) next(now time.Time, severity Severity, atOnce bool, timing Timing) Severity {
	is := l.alert.Severity
	for level := severity; level > is; level-- {
		if atOnce || now.Sub(l.reached[level-Warning]) >= timing.RaiseAfter {
			return level
		}
	}
	for is > OK {
		since := l.absent[is-Warning]
		if since.IsZero() || now.Sub(since) < timing.ResolveAfter {
			break
		}
		is--
	}
	return is
}

// over tells if there is nothing left to remember.
func (l *life) over() bool { return l.alert.Severity == OK && l.reached[0].IsZero() }

// resolved is the alert as it is told when it has ended.
func (l *life) resolved(now time.Time, was Severity) Alert {
	ended := l.alert
	ended.Severity, ended.Resolved = was, now
	ended.Summary, ended.Cause, ended.Cure = l.told.Summary, l.told.Cause, l.told.Cure
	return ended
}

// mark notes since when something has been so. A time that has gone back
// begins anew, so that a clock that was set cannot hold an alert back.
func mark(since *time.Time, now time.Time, begins, ends bool) {
	switch {
	case ends:
		*since = time.Time{}
	case since.IsZero() && begins, now.Before(*since):
		*since = now
	}
}
