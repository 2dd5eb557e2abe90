package main

import (
	"time"

	"github.com/cdcpub/cdcpub/slotmon"
)

// How often a reader tells its position: the status interval of Debezium,
// pg_recvlogical and PostgreSQL's own subscriptions is 10 s. One that was not
// heard of for three of them is silent.
const (
	reportInterval = 10 * time.Second
	silentAfter    = 3 * reportInterval
)

// mayReport tells if a reader that is behind reported nothing since the first
// sample, and is likely to soon: until then nobody knows how fast it is.
func mayReport(trend slotmon.Trend, first, second *slotmon.Slot, now time.Time) bool {
	return second != nil && trend.Over < reportInterval && !second.KeepsUp(trend) && unheard(first, second, now)
}

// dependable returns the trend of a slot since the first sample without the
// rates that so short a time cannot tell. A reader confirms in steps. Two
// seconds may have one of them or none, whatever the true rate: extrapolated,
// that would have a slot lost in minutes whose reader keeps up.
func dependable(trend slotmon.Trend, first, second *slotmon.Slot, now time.Time) slotmon.Trend {
	if second != nil && second.Active && second.KeepsUp(trend) && (unheard(first, second, now) || withinSteps(trend)) {
		trend.RetainedRate, trend.ConfirmedRate = nil, nil
	}
	return trend
}

// unheard tells if the reader reported nothing between two samples, and could
// be one that will.
func unheard(first, second *slotmon.Slot, now time.Time) bool {
	if first.Holder == nil || second.Holder == nil || first.Holder.PID != second.Holder.PID ||
		first.ConfirmedFlushLSN == nil || second.ConfirmedFlushLSN == nil || *first.ConfirmedFlushLSN != *second.ConfirmedFlushLSN {
		return false
	}
	last := second.Holder.ReplyTime
	switch before := first.Holder.ReplyTime; {
	case last != nil && (before == nil || !last.Equal(*before)):
		return false // it reported, and no progress
	case last == nil:
		last = second.Holder.Since
	}
	return last == nil || now.Sub(*last) < silentAfter // nil: the role may not see it
}

// withinSteps tells if a slot has grown by no more than the steps in which
// positions move: a report's, and for restart_lsn the 15 s between two
// snapshots of running transactions.
func withinSteps(trend slotmon.Trend) bool {
	wal, retained, confirmed := trend.WALRate, trend.RetainedRate, trend.ConfirmedRate
	if wal == nil || retained == nil || confirmed == nil || *confirmed <= 0 {
		return false
	}
	over := trend.Over.Seconds()
	behind, grown := (*wal-*confirmed)*over, *retained*over
	return max(*wal-*confirmed, *retained) >= 1 && behind <= *wal*reportInterval.Seconds() && grown <= *wal*silentAfter.Seconds()
}
