package slotmon

import "time"

// Limits are the thresholds of one slot. A threshold of 0 is off. For times
// until something happens, and for shares that are left, smaller is worse;
// everywhere else larger is.
type Limits struct {
	RetainedWAL    Bytes    // of retained WAL
	RetainedShare  Ratio    // of max_slot_wal_keep_size that is retained, 0 to 1
	TimeToLost     Duration // until the slot is lost
	TimeToFull     Duration // until the volume is full
	Inactive       Duration // that nobody has held the slot
	ConfirmedLag   Duration // that the confirmed lag has not fallen while WAL grew
	CatalogXminAge Count    // age(catalog_xmin) in transactions
	NotReady       Duration // that no standby has had the failover slot ready
	Stalled        Duration // that the publisher has been stalled
	// LongTransaction is the age from which an open transaction that holds
	// restart_lsn is named.
	LongTransaction time.Duration
}

// Bytes, Ratio, Count and Duration are pairs of thresholds.
type (
	Bytes    struct{ Warning, Critical int64 }
	Ratio    struct{ Warning, Critical float64 }
	Count    struct{ Warning, Critical int64 }
	Duration struct{ Warning, Critical time.Duration }
)

// DefaultLimits returns the limits that hold where nothing is configured.
func DefaultLimits() Limits {
	return Limits{
		RetainedWAL:     Bytes{10 << 30, 50 << 30},
		RetainedShare:   Ratio{0.75, 0.9},
		TimeToLost:      Duration{6 * time.Hour, time.Hour},
		TimeToFull:      Duration{6 * time.Hour, time.Hour},
		Inactive:        Duration{2 * time.Minute, 10 * time.Minute},
		ConfirmedLag:    Duration{5 * time.Minute, 30 * time.Minute},
		CatalogXminAge:  Count{50_000_000, 200_000_000},
		NotReady:        Duration{5 * time.Minute, 0},
		Stalled:         Duration{time.Minute, 10 * time.Minute},
		LongTransaction: 5 * time.Minute,
	}
}

// relaxed is the part of a limit that a value must be away from it before an
// alert may end: 9 GiB is still too near to 10 GiB, 8 GiB is not.
const relaxed = 0.8

// reach is what one number is by a pair of limits.
type reach struct {
	severity, hold Severity
	// limit is the one that was reached: by severity, else by hold.
	limit float64
}

// above judges a number of which more is worse. A limit of 0 is off.
func above(value, warning, critical float64) reach {
	return reached(warning, critical, func(limit float64) bool { return value > limit },
		func(limit float64) bool { return value > relaxed*limit })
}

// below judges a number of which less is worse. A limit of 0 is off.
func below(value, warning, critical float64) reach {
	return reached(warning, critical, func(limit float64) bool { return value < limit },
		func(limit float64) bool { return value < limit/relaxed })
}

func reached(warning, critical float64, beyond, near func(limit float64) bool) reach {
	grade := func(over func(float64) bool) (Severity, float64) {
		switch {
		case critical > 0 && over(critical):
			return Critical, critical
		case warning > 0 && over(warning):
			return Warning, warning
		}
		return OK, 0
	}
	var r reach
	r.severity, r.limit = grade(beyond)
	hold, limit := grade(near)
	r.hold = hold
	if r.severity == OK {
		r.limit = limit
	}
	return r
}

// atMost is the reach with a lower severity, if most is lower. What holds an
// alert that is raised stays as it is.
func (r reach) atMost(most Severity) reach {
	r.severity = min(r.severity, most)
	return r
}

func (d Duration) above(value time.Duration) reach {
	return above(value.Seconds(), d.Warning.Seconds(), d.Critical.Seconds())
}

func (d Duration) below(seconds float64) reach {
	return below(seconds, d.Warning.Seconds(), d.Critical.Seconds())
}
