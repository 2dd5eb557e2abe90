package slotview

import (
	"testing"
	"time"
)

func TestSpans(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 400 * time.Millisecond: "0 s", 59600 * time.Millisecond: "1 min", 42 * time.Second: "42 s", 80 * time.Minute: "1 h 20 min",
		12*time.Minute + 5*time.Second: "12 min 5 s", 24 * time.Hour: "1 d", 100 * time.Hour: "4 d 4 h", -time.Hour: "-1 h",
	} {
		if got := span(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}

func TestMomentGivesNoAgeToWhatIsToCome(t *testing.T) {
	if got := moment(noon, noon.Add(-time.Second)); got != "2026-03-14 12:00:00 UTC" {
		t.Error(got)
	}
	if got := moment(noon, noon.Add(90*time.Second)); got != "2026-03-14 12:00:00 UTC (1 min 30 s ago)" {
		t.Error(got)
	}
}
