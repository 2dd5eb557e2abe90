package config

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// watched is a configuration with limits for two slots.
const watched = minimal + `slot_monitor:
  limits:
    retained_wal: {warning: 20GiB}
    stalled: {critical: 15m}
  slots:
    orders:
      retained_wal: {warning: 1GiB, critical: 2GiB}
      time_to_lost: {warning: 0s}
      long_transaction: 1h
    empty:
`

func TestSlotsTakeTheGeneralLimitsWhereTheyStateNone(t *testing.T) {
	m := mustParse(t, watched, "CDCPUB_SLOT_MONITOR_LIMITS_INACTIVE_WARNING=3m").SlotMonitor
	general := Default().SlotMonitor.Limits
	general.RetainedWAL.Warning = 20 * GiB
	general.Stalled.Critical = Duration(15 * time.Minute)
	general.Inactive.Warning = Duration(3 * time.Minute)
	orders := general
	orders.RetainedWAL = Limit[Size]{GiB, 2 * GiB}
	orders.TimeToLost.Warning = 0
	orders.LongTransaction = Duration(time.Hour)
	for slot, want := range map[string]MonitorLimits{"orders": orders, "empty": general, "any": general} {
		if got := m.LimitsOf(slot); got != want {
			t.Errorf("limits of %s:\n%+v, want\n%+v", slot, got, want)
		}
	}
}

func TestOriginsOfSlotLimitsAreTheirLines(t *testing.T) {
	c := mustParse(t, watched)
	for path, want := range map[string]string{
		"slot_monitor.slots":                              "c.yaml:13",
		"slot_monitor.slots.orders":                       "c.yaml:14",
		"slot_monitor.slots.orders.retained_wal.critical": "c.yaml:15",
		"slot_monitor.slots.orders.time_to_lost.warning":  "c.yaml:16",
		"slot_monitor.slots.orders.time_to_lost.critical": "default",
		"slot_monitor.slots.empty":                        "c.yaml:18",
	} {
		if got := c.Origin(path).String(); got != want {
			t.Errorf("origin of %s is %s, want %s", path, got, want)
		}
	}
}

func TestPrintShowsOfASlotWhatWasStatedForIt(t *testing.T) {
	c := mustParse(t, watched)
	text := printed(t, c)
	const want = `  slots: # c.yaml:13
    empty: {}
    orders:
      retained_wal:
        warning: 1GiB # c.yaml:15
        critical: 2GiB # c.yaml:15
      time_to_lost:
        warning: 0s # c.yaml:16
      long_transaction: 1h # c.yaml:17
  webhook:
`
	if !strings.Contains(text, want) {
		t.Errorf("lacks\n%s\n%s", want, text)
	}
	assertSameValues(t, mustParse(t, text), c)
	c.origins = nil
	assertSameValues(t, mustParse(t, printed(t, c)), c)
}

func TestSlotsWithoutAValueStateNothing(t *testing.T) {
	c := mustParse(t, minimal+"slot_monitor:\n  slots:\n")
	if c.Stated("slot_monitor.slots") || len(c.SlotMonitor.Slots) != 0 {
		t.Errorf("slots = %v", c.SlotMonitor.Slots)
	}
}

func TestOneGroupOfLimitsMayBeUsedForSeveralSlots(t *testing.T) {
	m := mustParse(t, minimal+"slot_monitor: {slots: {a: &quiet {inactive: {warning: 1h, critical: 0s}}, b: *quiet}}\n").SlotMonitor
	if want := (Limit[Duration]{Duration(time.Hour), 0}); m.LimitsOf("a").Inactive != want || m.LimitsOf("b") != m.LimitsOf("a") {
		t.Errorf("limits are %+v", m.Slots)
	}
}

func TestEveryLimitRefusesAWarningBeyondTheCriticalState(t *testing.T) {
	limits := Default().SlotMonitor.Limits
	for _, f := range fieldsOf(reflect.ValueOf(&limits).Elem(), "") {
		if !f.isGroup() {
			continue
		}
		t.Run(f.path, func(t *testing.T) {
			warning, critical := f.value.Field(0), f.value.Field(1)
			if critical.IsZero() {
				critical.Set(warning)
			}
			c := mustParse(t, minimal)
			c.SlotMonitor.Limits = limits
			problemsOf := func() string {
				if err := c.Validate(); err != nil {
					return err.Error()
				}
				return ""
			}
			if got := problemsOf(); got != "" {
				t.Fatalf("before: %s", got)
			}
			swapped := reflect.ValueOf(&c.SlotMonitor.Limits).Elem().FieldByIndex(fieldIndex(t, f.path))
			swapped.Field(0).Set(critical)
			swapped.Field(1).Set(critical)
			if got := problemsOf(); got != "" {
				t.Errorf("equal thresholds: %s", got)
			}
			swapped.Field(1).Set(warning)
			if got := problemsOf(); !warning.Equal(critical) && !strings.Contains(got, "slot_monitor.limits."+f.path+".warning: warning (") {
				t.Errorf("exchanged thresholds: %q", got)
			}
			swapped.Field(0).SetZero()
			if got := problemsOf(); got != "" {
				t.Errorf("without a warning: %s", got)
			}
		})
	}
}

func fieldIndex(t *testing.T, key string) []int {
	t.Helper()
	for i := range reflect.TypeFor[MonitorLimits]().NumField() {
		if f := reflect.TypeFor[MonitorLimits]().Field(i); f.Tag.Get("yaml") == key {
			return f.Index
		}
	}
	t.Fatalf("no field %s", key)
	return nil
}

func TestAdvertiseFollowsListen(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:9477": "http://127.0.0.1:9477",
		"0.0.0.0:80":     "http://127.0.0.1:80",
		":9477":          "http://127.0.0.1:9477",
		"[::]:9477":      "http://127.0.0.1:9477",
		"[::1]:9477":     "http://[::1]:9477",
		"db:9477":        "http://db:9477",
		"off":            "",
		"127.0.0.1:0":    "",
		"a b:1":          "",
	} {
		if got := mustParse(t, minimal, "CDCPUB_HTTP_LISTEN="+listen).HTTP.Advertise; got != want {
			t.Errorf("listen %s: advertise = %q, want %q", listen, got, want)
		}
	}
	for _, url := range []string{"https://cdcpub.internal/db1", "http://10.0.0.1:9477", "http://[fd00::1]:1/"} {
		if got := mustParse(t, minimal, "CDCPUB_HTTP_LISTEN=off", "CDCPUB_HTTP_ADVERTISE="+url).HTTP.Advertise; got != url {
			t.Errorf("advertise = %q, want %q", got, url)
		}
	}
}

func TestSlotCommandsNeedAServerAndNothingElse(t *testing.T) {
	for name, text := range map[string]string{
		"the server of the stream": "postgres: {url: host=/run/postgresql}\n",
		"another server":           "slot_monitor: {servers: [host=/run/postgresql]}\n",
		"stated absence":           "postgres: {url: host=db, slot: ''}\nkafka: {brokers: [], topic: ''}\noutbox: {tables: []}\n",
		"a whole configuration":    minimal,
	} {
		c, err := parse("c.yaml", []byte(text), nil, NeedSlots)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if err := c.Validate(); err != nil {
			t.Errorf("%s: loaded but not valid: %v", name, err)
		}
	}
	const want = "c.yaml: postgres.url: is required, for example postgres://cdcpub@db.internal:5432/shop?sslmode=verify-full, " +
		"unless slot_monitor.servers has a server"
	if _, err := parse("c.yaml", nil, nil, NeedSlots); err == nil || err.Error() != want {
		t.Errorf("without a server: %v", err)
	}
	_, err := parse("c.yaml", []byte("slot_monitor: {servers: 'hunter2'}\n"), nil, NeedSlots)
	if want := "c.yaml:1: slot_monitor.servers: must be a list, for example [a, b]"; err == nil || err.Error() != want {
		t.Errorf("with servers that cannot be read: %v", err)
	}
}

func TestWhatSlotCommandsDoNotNeedIsCheckedWhereStated(t *testing.T) {
	_, err := parse("c.yaml", []byte("postgres: {url: host=db, slot: A}\nkafka: {brokers: [k], compresion: lz4}\n"), nil, NeedSlots)
	for _, want := range []string{"postgres.slot", "kafka.brokers[0]", "kafka.compresion"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not reported: %v", want, err)
		}
	}
}

func TestListsOfConnectionStringsComeFromTheEnvironmentToo(t *testing.T) {
	m := mustParse(t, minimal, "CDCPUB_SLOT_MONITOR_STANDBYS=host=a user=u, postgres://b/x",
		"CDCPUB_SLOT_MONITOR_ALERTMANAGER_URLS=http://am-1:9093,http://am-2:9093",
		"CDCPUB_SLOT_MONITOR_VOLUME_FREE_COMMAND=ssh,db,free-bytes").SlotMonitor
	if want := []ConnString{"host=a user=u", "postgres://b/x"}; !reflect.DeepEqual(m.Standbys, want) {
		t.Errorf("standbys = %d of them", len(m.Standbys))
	}
	if len(m.Alertmanager.URLs) != 2 || len(m.Volume.FreeCommand) != 3 {
		t.Errorf("urls = %v, free_command = %q", m.Alertmanager.URLs, m.Volume.FreeCommand)
	}
}

func TestPasswordsOfStandbysAndServers(t *testing.T) {
	home := isolate(t)
	writeFile(t, home, ".pgpass", "*:*:*:*:from passfile\n")
	p := Postgres{URL: "host=db", PasswordFile: writeFile(t, home, "secret", "from file\n")}
	const path = "slot_monitor.standbys[0]"
	for _, test := range []struct {
		of   ConnString
		file bool
		want string
	}{
		{"host=standby", true, "from file"},
		{"host=standby password='its own'", true, "its own"},
		{"host=server", false, "from passfile"},
		{"postgres://u:its%20own@server/x", false, "its own"},
	} {
		conn, err := test.of.ConnConfig(path, Param{"application_name", "watch"})
		if test.file {
			conn, err = p.StandbyConnConfig(t.Context(), test.of, path, Param{"application_name", "watch"})
		}
		if err != nil {
			t.Fatal(err)
		}
		if conn.Password != test.want || conn.TLSConfig == nil || conn.RuntimeParams["application_name"] != "watch" {
			t.Errorf("%v: password %q, TLS %v, parameters %v", test.of, conn.Password, conn.TLSConfig != nil, conn.RuntimeParams)
		}
	}
	if _, err := ConnString("host=db port=x password=hunter2").ConnConfig(path); err == nil || err.Error() != path+": invalid port" {
		t.Errorf("error %v", err)
	}
	if _, err := (Postgres{PasswordFile: "/none"}).StandbyConnConfig(t.Context(), "host=db", path); err == nil ||
		!strings.HasPrefix(err.Error(), "postgres.password_file: ") {
		t.Errorf("error %v", err)
	}
}
