package slotmon

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// setting is a row of pg_settings. It is read from the view since the view
// leaves out what the role may not see and what the version does not have.
type setting struct {
	Name  string `json:"name"`
	Value string `json:"setting"`
	Unit  string `json:"unit"` // kB, 8kB, MB, ms, s, min; empty for none
}

const settingsSQL = `SELECT row_to_json(x) FROM (SELECT name, setting, unit FROM pg_settings WHERE name IN (
	'max_slot_wal_keep_size', 'idle_replication_slot_timeout', 'max_replication_slots', 'max_wal_senders',
	'autovacuum_freeze_max_age', 'synchronized_standby_slots', 'data_directory', 'port')) x`

// settings are those that matter; sizes are in bytes.
type settings struct {
	maxSlotWALKeepSize int64
	idleSlotTimeout    time.Duration
	maxSlots           int64
	maxWALSenders      int64
	autovacuumFreeze   int64
	port               int64
	syncedStandbys     string
	dataDirectory      string // empty: unseen
}

func newSettings(rows []setting) (settings, error) {
	s := settings{maxSlotWALKeepSize: -1}
	for _, row := range rows {
		var err error
		switch row.Name {
		case "max_slot_wal_keep_size":
			s.maxSlotWALKeepSize, err = row.bytes()
		case "idle_replication_slot_timeout":
			s.idleSlotTimeout, err = row.duration()
		case "max_replication_slots":
			s.maxSlots, err = row.number()
		case "max_wal_senders":
			s.maxWALSenders, err = row.number()
		case "autovacuum_freeze_max_age":
			s.autovacuumFreeze, err = row.number()
		case "port":
			s.port, err = row.number()
		case "synchronized_standby_slots":
			s.syncedStandbys = row.Value
		case "data_directory":
			s.dataDirectory = row.Value
		}
		if err != nil {
			return settings{}, fmt.Errorf("setting %s = %q (unit %q): %w", row.Name, row.Value, row.Unit, err)
		}
	}
	return s, nil
}

func (s *setting) number() (int64, error) { return strconv.ParseInt(s.Value, 10, 64) }

// bytes is the setting in bytes. Negative values mean something else than a
// size and stay as they are.
func (s *setting) bytes() (int64, error) {
	return s.scaled(map[string]int64{"B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40})
}

// duration is as bytes, in time.
func (s *setting) duration() (time.Duration, error) {
	d, err := s.scaled(map[string]int64{"us": int64(time.Microsecond), "ms": int64(time.Millisecond),
		"s": int64(time.Second), "min": int64(time.Minute), "h": int64(time.Hour), "d": 24 * int64(time.Hour)})
	return time.Duration(d), err
}

// scaled multiplies by the unit, which may have a number in front: 8kB.
func (s *setting) scaled(units map[string]int64) (int64, error) {
	n, err := s.number()
	if err != nil || n <= 0 {
		return n, err
	}
	name := strings.TrimLeft(s.Unit, "0123456789")
	scale, known := units[name]
	if !known {
		return 0, fmt.Errorf("unknown unit")
	}
	if many := s.Unit[:len(s.Unit)-len(name)]; many != "" {
		times, err := strconv.ParseInt(many, 10, 64)
		if err != nil || times == 0 || times > math.MaxInt64/scale {
			return 0, fmt.Errorf("unknown unit")
		}
		scale *= times
	}
	if n > math.MaxInt64/scale {
		return 0, fmt.Errorf("too large: %w", strconv.ErrRange)
	}
	return n * scale, nil
}
