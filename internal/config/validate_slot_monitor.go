package config

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
)

func (v *validator) slotMonitor(m *SlotMonitor) {
	v.between("slot_monitor.interval", m.Interval, seconds(1), Duration(time.Hour))
	v.between("slot_monitor.timeout", m.Timeout, Duration(100*time.Millisecond), seconds(300))
	v.between("slot_monitor.raise_after", m.RaiseAfter, 0, Duration(24*time.Hour))
	v.between("slot_monitor.resolve_after", m.ResolveAfter, 0, Duration(24*time.Hour))
	v.serverToWatch(m)
	v.connStrings("slot_monitor.servers", m.Servers)
	v.connStrings("slot_monitor.standbys", m.Standbys)
	if len(m.Volume.FreeCommand) > 0 && m.Volume.FreeCommand[0] == "" {
		v.fail("slot_monitor.volume.free_command[0]", "must be the name of a program")
	}
	v.limits("slot_monitor.limits", m.Limits)
	for _, name := range m.slotNames() {
		path := slotPath(name)
		if name == "" || !validSlot(name) {
			v.fail(path, fmt.Sprintf("is not a slot name: up to %d lower-case letters, digits and _", maxIdentifier))
		}
		v.limits(path, m.Slots[name])
	}
	v.sinks(m)
}

// serverToWatch reports that there is nothing to look at. That the stream has
// no server is reported by postgres.
func (v *validator) serverToWatch(m *SlotMonitor) {
	if v.cfg.need == NeedSlots && v.cfg.Postgres.URL == "" && len(m.Servers) == 0 && !v.unread {
		v.fail("postgres.url", "is required, for example "+v.example("postgres.url", exampleURL)+", unless slot_monitor.servers has a server",
			"slot_monitor.servers")
	}
}

// connStrings checks a list of connection strings and repeats no part of them.
func (v *validator) connStrings(path string, list []ConnString) {
	first := map[ConnString]string{}
	if v.cfg.Postgres.URL != "" {
		first[v.cfg.Postgres.URL] = "postgres.url"
	}
	for i, s := range list {
		item := fmt.Sprintf("%s[%d]", path, i)
		if s == "" {
			v.fail(item, "is empty; a connection string is expected")
		} else if _, err := s.check(); err != nil {
			v.fail(item, err.Error())
		} else if other, seen := first[s]; seen {
			v.fail(item, "is the same as "+other)
		} else {
			first[s] = item
		}
	}
}

func (v *validator) limits(path string, m MonitorLimits) {
	checkLimit(v, path+".retained_wal", m.RetainedWAL, larger)
	checkLimit(v, path+".retained_wal_share", m.RetainedWALShare, larger)
	checkLimit(v, path+".time_to_lost", m.TimeToLost, smaller)
	checkLimit(v, path+".time_to_full", m.TimeToFull, smaller)
	checkLimit(v, path+".inactive", m.Inactive, larger)
	checkLimit(v, path+".confirmed_lag", m.ConfirmedLag, larger)
	checkLimit(v, path+".catalog_xmin_age", m.CatalogXminAge, larger)
	checkLimit(v, path+".failover_not_ready", m.FailoverNotReady, larger)
	checkLimit(v, path+".stalled", m.Stalled, larger)
}

// direction says which values are the worse ones.
type direction bool

const (
	larger  direction = true
	smaller direction = false
)

// checkLimit reports a warning that would come only after the critical state.
func checkLimit[T Size | Ratio | Count | Duration](v *validator, path string, l Limit[T], worse direction) {
	warning, critical := path+".warning", path+".critical"
	inherited := strings.HasPrefix(path, "slot_monitor.slots.") && v.cfg.origins != nil
	switch {
	case l.Warning == 0 || l.Critical == 0:
		return
	case worse == larger && l.Warning <= l.Critical, worse == smaller && l.Warning >= l.Critical:
		return
	case inherited && !v.cfg.Stated(warning) && !v.cfg.Stated(critical):
		return // slot_monitor.limits contradicts itself, which is reported there
	}
	source := func(stated string) string {
		if inherited && !v.cfg.Stated(stated) {
			return " of slot_monitor.limits"
		}
		return ""
	}
	message := fmt.Sprintf("warning (%v%s) is beyond critical (%v%s)", l.Warning, source(warning), l.Critical, source(critical))
	if worse == smaller {
		message += "; this time counts down, so warning must be the longer one"
	}
	at := warning
	if !v.cfg.Stated(warning) && v.cfg.Stated(critical) {
		at = critical
	}
	general := "slot_monitor.limits" + path[strings.LastIndexByte(path, '.'):]
	v.fail(at, message, warning, critical, general+".warning", general+".critical")
}

func (v *validator) sinks(m *SlotMonitor) {
	const webhook = "slot_monitor.webhook"
	if m.Webhook.URL != "" {
		v.secretURL(webhook+".url", m.Webhook.URL)
	} else if m.Webhook.SecretFile != "" {
		v.fail(webhook+".secret_file", "has no effect without "+webhook+".url", webhook+".url")
	}
	seen := map[SecretURL]int{}
	for i, u := range m.Alertmanager.URLs {
		path := fmt.Sprintf("slot_monitor.alertmanager.urls[%d]", i)
		if first, twice := seen[u]; twice {
			v.fail(path, fmt.Sprintf("is the same as slot_monitor.alertmanager.urls[%d]", first))
			continue
		}
		seen[u] = i
		if parsed := v.secretURL(path, u); parsed != nil && parsed.RawQuery != "" {
			v.fail(path, "must be the base URL, without ? and what follows")
		}
	}
}

// secretURL reports a URL that cannot be used, and returns nil for it.
func (v *validator) secretURL(path string, u SecretURL) *url.URL {
	parsed, err := u.check()
	if err != nil {
		v.fail(path, err.Error())
	}
	return parsed
}

func (v *validator) http(h HTTP) {
	if h.Listen != "" {
		_, port, err := net.SplitHostPort(h.Listen)
		if err != nil || port != "0" && !validPort(port) {
			v.fail("http.listen", `must be host:port, for example 127.0.0.1:9477, or "off"`)
		}
	}
	if h.Advertise == "" {
		return
	}
	parsed, err := SecretURL(h.Advertise).check()
	switch {
	case err != nil:
		v.fail("http.advertise", err.Error())
	case parsed.User != nil:
		v.fail("http.advertise", "must not have a user or password; it is shown")
	case parsed.RawQuery != "" || parsed.ForceQuery:
		v.fail("http.advertise", "must be the base URL, without ? and what follows")
	}
}
