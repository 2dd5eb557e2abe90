package slotmon

import (
	"encoding/json"
	"math"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSettingsAreInBytesAndDurations(t *testing.T) {
	for _, c := range []struct {
		value, unit string
		bytes       int64 // -2: refused
	}{
		{"-1", "MB", -1}, {"0", "MB", 0}, {"0", "", 0}, {"1", "MB", 1 << 20}, {"10240", "MB", 10 << 30}, {"16", "8kB", 128 << 10},
		{"5", "B", 5}, {"3", "GB", 3 << 30}, {"1", "TB", 1 << 40}, {"3", "16MB", 48 << 20},
		{"1", "", -2}, {"1", "s", -2}, {"1", "0kB", -2}, {"1", "99999999999999999999kB", -2}, {"x", "MB", -2}, {"", "MB", -2},
		{"9223372036854775807", "B", math.MaxInt64}, {"9223372036854775807", "kB", -2}, {"1", "9223372036854775807kB", -2},
	} {
		got, err := (&setting{Value: c.value, Unit: c.unit}).bytes()
		if c.bytes == -2 != (err != nil) || err == nil && got != c.bytes {
			t.Errorf("%q %q: %d, %v", c.value, c.unit, got, err)
		}
	}
	for _, c := range []struct {
		value, unit string
		want        time.Duration
	}{
		{"0", "s", 0}, {"90", "s", 90 * time.Second}, {"2", "min", 2 * time.Minute}, {"7", "ms", 7 * time.Millisecond},
		{"1", "h", time.Hour}, {"2", "d", 48 * time.Hour}, {"3", "us", 3 * time.Microsecond}, {"-1", "ms", -1},
	} {
		if got, err := (&setting{Value: c.value, Unit: c.unit}).duration(); err != nil || got != c.want {
			t.Errorf("%q %q: %s, %v", c.value, c.unit, got, err)
		}
	}
}

func TestAnAbsentSettingIsNoLimit(t *testing.T) {
	s, err := newSettings(nil)
	if err != nil || s.maxSlotWALKeepSize != -1 || s.idleSlotTimeout != 0 || s.dataDirectory != "" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := newSettings([]setting{{Name: "max_wal_senders", Value: "ten"}}); err == nil {
		t.Error("a setting that is no number was taken")
	}
}

func FuzzSetting(f *testing.F) {
	f.Add("1024", "8kB")
	f.Add("-1", "MB")
	f.Add("9", "0min")
	f.Fuzz(func(t *testing.T, value, unit string) {
		n, numberErr := strconv.ParseInt(value, 10, 64)
		s := setting{Value: value, Unit: unit}
		for _, read := range []func() (int64, error){s.bytes, func() (int64, error) { d, err := s.duration(); return int64(d), err }} {
			got, err := read()
			switch {
			case err != nil:
			case numberErr != nil:
				t.Fatalf("%q is no number but %d", value, got)
			case n <= 0 && got != n, n > 0 && (got < n || got%n != 0):
				t.Fatalf("%q %q is %d", value, unit, got)
			}
		}
	})
}

func TestLSNTextIsItsOwnInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lsn := LSN(rapid.Uint64().Draw(t, "lsn"))
		text, err := json.Marshal(lsn)
		if err != nil {
			t.Fatal(err)
		}
		var back LSN
		if err := json.Unmarshal(text, &back); err != nil || back != lsn {
			t.Fatalf("%s became %s (%v)", lsn, back, err)
		}
	})
}

func FuzzLSN(f *testing.F) {
	f.Add("0/16B3748")
	f.Add("FFFFFFFF/FFFFFFFF")
	f.Add("0/016B3748") // the form since PostgreSQL 19
	f.Fuzz(func(t *testing.T, text string) {
		var lsn, again LSN
		if lsn.UnmarshalText([]byte(text)) != nil {
			return
		}
		if err := again.UnmarshalText([]byte(lsn.String())); err != nil || again != lsn {
			t.Fatalf("%q is %s, which is %s (%v)", text, lsn, again, err)
		}
	})
}

func TestDistanceHasTheSignOfTheDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		position := LSN(rapid.Uint64Range(0, math.MaxInt64).Draw(t, "position"))
		end := LSN(rapid.Uint64Range(0, math.MaxInt64).Draw(t, "end"))
		if got := (walEnd{LSN: &end}).after(&position); (*got < 0) != (end < position) || LSN(uint64(*got))+position != end {
			t.Fatalf("from %s to %s: %d", position, end, *got)
		}
	})
	lsn := LSN(1)
	if (walEnd{}).after(&lsn) != nil || (walEnd{LSN: &lsn}).after(nil) != nil {
		t.Error("a distance to nowhere")
	}
}

// A standby that has received nothing has no end of WAL. No slot is ahead of
// that.
func TestWithoutAnEndOfWALNothingIsAhead(t *testing.T) {
	var row slotRow
	if err := json.Unmarshal([]byte(`{"slot": {"slot_name": "s", "active_pid": 7, "restart_lsn": "0/10", "confirmed_flush_lsn": "0/20"}}`), &row); err != nil {
		t.Fatal(err)
	}
	replayed := LSN(0x18)
	for _, end := range []walEnd{{}, {InRecovery: true, LSN: &replayed, AtLeast: true}} {
		s := row.slot(end)
		if (s.RetainedBytes != nil) != (end.LSN != nil) || s.ConfirmedLagBytes != nil || *s.ConfirmedFlushLSN != 0x20 || *s.Holder != (Holder{PID: 7}) {
			t.Errorf("end %+v: got %+v", end, s)
		}
	}
}

func TestMajorVersionOfTheServersText(t *testing.T) {
	for text, want := range map[string]int{"14.22": 14, "17.9 (Debian 17.9-1)": 17, "19beta1": 19, "18": 18, "": 0, "devel": 0} {
		if got := major(text); got != want {
			t.Errorf("%q: %d", text, got)
		}
	}
}

// PostgreSQL 19 has FOR ALL TABLES EXCEPT.
func TestAnExceptedTableIsMissing(t *testing.T) {
	var p published
	err := json.Unmarshal([]byte(`{"publication": {"oid": "1", "xmin": "2", "pubinsert": true, "puballtables": true},
		"relations": [{"root": 5, "oid": 5, "schema": "s", "name": "a", "persistence": "p", "line": [{"oid": 5, "schema": 9}]},
			{"root": 6, "oid": 6, "schema": "s", "name": "b", "persistence": "p", "line": [{"oid": 6, "schema": 9}]}],
		"members": [{"oid": "3", "xmin": "4", "relation": 6, "except": true}], "schemas": null}`), &p)
	if err != nil {
		t.Fatal(err)
	}
	got := p.compare(&Expected{Tables: []Table{{"s", "a"}, {"s", "b"}}})
	if len(got.Missing) != 1 || got.Missing[0] != "s.b" || got.Fingerprint != "1:2 table 3:4" {
		t.Errorf("got %+v", got)
	}
}
