package slotmon

import (
	"math"
	"slices"
)

// Judge says how one slot is, and why. It is a pure function: what it needs to
// know of the past is in the subject's Trend, which a Series keeps.
//
// A server that could not be asked gives the verdict Unknown and nothing else;
// see the package documentation for the other verdicts.
func Judge(limits Limits, s Subject) Report {
	s.Trend = s.Trend.finite()
	j := &judge{limits: limits, subject: s}
	if s.Sample == nil || s.Unreachable != "" {
		return j.unreachable()
	}
	j.sample, j.slot = s.Sample, s.Sample.FindSlot(s.Name)
	j.growth = j.retainedGrowth()
	j.culprit = j.findCulprit()

	report := Report{Findings: []Finding{}, Trend: s.Trend, Culprit: j.culprit.sentence}
	report.SecondsToLost, report.SecondsToLostWhy = j.secondsToLost()
	report.SecondsToFull, report.SecondsToFullWhy = j.secondsToFull()
	for _, rule := range j.rules() {
		if finding := rule(); finding != nil {
			report.add(*finding)
		}
	}
	slices.SortStableFunc(report.Findings, worstFirst)
	return report
}

// judge is one judgement. Its methods that return a *Finding are the rules, one
// for each FindingID; nil means that there is nothing to say.
type judge struct {
	limits  Limits
	subject Subject
	sample  *Sample
	slot    *Slot // nil: there is none of that name
	// growth is that of retained WAL in bytes per second, nil if not known.
	growth  *float64
	culprit culprit
}

// rules are in the order in which findings of the same severity are shown.
func (j *judge) rules() []func() *Finding {
	rules := []func() *Finding{j.missing, j.publicationMissing, j.publicationTables, j.publicationChanged, j.blocked, j.stalled}
	if j.slot == nil {
		return rules
	}
	rules = append(rules, j.wrongPlugin, j.wrongDatabase, j.twoPhase, j.catalogXminAge)
	if j.slot.Lost() {
		return append(rules, j.lost)
	}
	return append(rules, j.unreserved, j.ahead,
		j.timeToLost, j.timeToFull, j.retainedShare, j.retainedWAL,
		j.inactive, j.confirmedLag, j.failoverNotReady,
		j.longTransaction, j.preparedTransaction, j.noRetentionLimit)
}

func (j *judge) unreachable() Report {
	why := j.subject.Unreachable
	if why == "" {
		why = "there is no sample"
	}
	j.culprit = j.publisherCulprit()
	finding := Finding{
		ID: ServerUnreachable, Severity: Unknown, Hold: Unknown,
		Summary: "cannot be looked at: " + why,
		Cause:   j.culprit.sentence,
		Cure:    "see that PostgreSQL runs and lets the monitor in; until then nothing is known of its slots",
	}
	return Report{
		Verdict: Unknown, Findings: []Finding{finding}, Trend: j.subject.Trend, Culprit: j.culprit.sentence,
		SecondsToLostWhy: "the server could not be asked", SecondsToFullWhy: "the server could not be asked",
	}
}

// add files a finding. One that is reached by relaxed limits only is no reason
// of the verdict, and is kept for the alerts.
func (r *Report) add(f Finding) {
	if f.Severity == OK {
		r.near = append(r.near, f)
		return
	}
	r.Findings = append(r.Findings, f)
	if r.Verdict.Worse(f.Severity) {
		r.Verdict = f.Severity
	}
}

// ForAlerts returns what Alerts.Update needs: Findings, and behind them those
// that are near their limit, with the severity OK, which keep an alert that is
// raised from ending.
func (r *Report) ForAlerts() []Finding { return slices.Concat(r.Findings, r.near) }

func worstFirst(a, b Finding) int {
	switch {
	case a.Severity.Worse(b.Severity):
		return 1
	case b.Severity.Worse(a.Severity):
		return -1
	}
	return 0
}

// expected tells if the slot is one that a cdcpub needs.
func (j *judge) expected() bool { return j.subject.Expected != nil }

// synced tells if the slot is the copy on a standby of one on its primary.
func (j *judge) synced() bool { return j.sample.isCopy(j.slot) }

// atOnce is a finding without a number, critical as soon as it is seen.
func atOnce(id FindingID, summary, cause, cure string) *Finding {
	return &Finding{ID: id, Severity: Critical, Hold: Critical, AtOnce: true, Summary: summary, Cause: cause, Cure: cure}
}

func info(id FindingID, summary, cause, cure string) *Finding {
	return &Finding{ID: id, Severity: Info, Hold: OK, Summary: summary, Cause: cause, Cure: cure}
}

// byLimit is a finding with a number, nil if that is not near its limit.
func byLimit(id FindingID, value float64, unit string, r reach) *Finding {
	if r.hold == OK && r.severity == OK {
		return nil
	}
	return &Finding{ID: id, Severity: r.severity, Hold: r.hold, Value: &value, Limit: &r.limit, Unit: unit}
}

// finite drops numbers that are none.
func (t Trend) finite() Trend {
	for _, rate := range []**float64{&t.WALRate, &t.RetainedRate, &t.ConfirmedRate} {
		if *rate != nil && (math.IsNaN(**rate) || math.IsInf(**rate, 0)) {
			*rate = nil
		}
	}
	return t
}
