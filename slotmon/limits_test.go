package slotmon

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestALimitHasARelaxedTwinAFifthAway(t *testing.T) {
	for _, c := range []struct {
		name           string
		got            reach
		severity, hold Severity
		limit          float64
	}{
		{"at the limit", above(10, 10, 50), OK, Warning, 10},
		{"above", above(11, 10, 50), Warning, Warning, 10},
		{"near critical", above(41, 10, 50), Warning, Critical, 10},
		{"critical", above(51, 10, 50), Critical, Critical, 50},
		{"away", above(8, 10, 50), OK, OK, 0},
		{"no critical", above(1e9, 10, 0), Warning, Warning, 10},
		{"no warning", above(45, 0, 50), OK, Critical, 50},
		{"off", above(1e9, 0, 0), OK, OK, 0},
		{"time at the limit", below(100, 100, 10), OK, Warning, 100},
		{"less time", below(99, 100, 10), Warning, Warning, 100},
		{"near no time", below(12, 100, 10), Warning, Critical, 100},
		{"no time", below(0, 100, 10), Critical, Critical, 10},
		{"enough time", below(125, 100, 10), OK, OK, 0},
		{"time off", below(0, 0, 0), OK, OK, 0},
		{"duration", Duration{time.Minute, time.Hour}.above(2 * time.Minute), Warning, Warning, 60},
		{"duration left", Duration{time.Hour, time.Minute}.below(120), Warning, Warning, 3600},
	} {
		if c.got.severity != c.severity || c.got.hold != c.hold || c.got.limit != c.limit {
			t.Errorf("%s: %+v", c.name, c.got)
		}
	}
}

func TestHoldIsAtLeastSeverityAndBothAreMonotone(t *testing.T) {
	numbers := rapid.Float64Range(0, 1e6)
	rapid.Check(t, func(t *rapid.T) {
		value, more, w, c := numbers.Draw(t, "value"), numbers.Draw(t, "more"), numbers.Draw(t, "warning"), numbers.Draw(t, "critical")
		up, down := above(value, w, c), below(value, w, c)
		if up.hold < up.severity || down.hold < down.severity {
			t.Fatalf("%+v %+v", up, down)
		}
		if higher := above(value+more, w, c); higher.severity < up.severity || higher.hold < up.hold {
			t.Fatalf("from %+v to %+v", up, higher)
		}
		if higher := below(value+more, w, c); higher.severity > down.severity || higher.hold > down.hold {
			t.Fatalf("from %+v to %+v", down, higher)
		}
	})
}
