package config

import (
	"maps"
	"net"
	"net/url"
	"slices"
	"time"
)

// defaultSlotMonitor has the limits of slotmon.DefaultLimits, which a test
// compares.
func defaultSlotMonitor() SlotMonitor {
	const minute, hour = Duration(time.Minute), Duration(time.Hour)
	return SlotMonitor{
		Interval:     seconds(10),
		Timeout:      seconds(5),
		RaiseAfter:   seconds(30),
		ResolveAfter: minute,
		Limits: MonitorLimits{
			RetainedWAL:      Limit[Size]{10 * GiB, 50 * GiB},
			RetainedWALShare: Limit[Ratio]{0.75, 0.9},
			TimeToLost:       Limit[Duration]{6 * hour, hour},
			TimeToFull:       Limit[Duration]{6 * hour, hour},
			Inactive:         Limit[Duration]{2 * minute, 10 * minute},
			ConfirmedLag:     Limit[Duration]{5 * minute, 30 * minute},
			CatalogXminAge:   Limit[Count]{50_000_000, 200_000_000},
			FailoverNotReady: Limit[Duration]{5 * minute, 0},
			Stalled:          Limit[Duration]{minute, 10 * minute},
			LongTransaction:  5 * minute,
		},
	}
}

// slotNames are the slots with limits of their own, sorted.
func (m *SlotMonitor) slotNames() []string {
	return slices.Sorted(maps.Keys(m.Slots))
}

// slotPath is the path of a slot's own limits.
func slotPath(name string) string { return join("slot_monitor.slots", printable(name)) }

// completeSlots gives each slot the general limits where it states none.
func (c *Config) completeSlots() {
	general := leaves(&c.SlotMonitor.Limits, "")
	for name, limits := range c.SlotMonitor.Slots {
		for i, own := range leaves(&limits, slotPath(name)) {
			if !c.Stated(own.path) {
				own.value.Set(general[i].value)
			}
		}
		c.SlotMonitor.Slots[name] = limits
	}
}

// advertised is the URL at which a server that listens there can be asked from
// the same machine, empty if that cannot be told.
func advertised(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || !validPort(port) {
		return ""
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(host, port)}
	if _, err := SecretURL(u.String()).check(); err != nil {
		return ""
	}
	return u.String()
}
