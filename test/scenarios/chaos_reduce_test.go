package scenarios

import (
	"slices"
	"testing"
)

// reduceChaos takes faults out of a schedule that fails, as long as what is left
// fails in two of three tries, and returns what cannot be taken out. Each try is
// told to note.
func reduceChaos(s chaosSchedule, fails func(chaosSchedule) bool, note func(format string, args ...any)) chaosSchedule {
	mostly := func(s chaosSchedule, without chaosFault) bool {
		failed := 0
		for try := 1; ; try++ {
			if fails(s) {
				failed++
			}
			if failed == 2 || try-failed == 2 { // decided
				note("without %q: failed in %d of %d tries", without, failed, try)
				return failed == 2
			}
		}
	}
	for i := 0; i < len(s.faults); {
		less := s
		less.faults = slices.Delete(slices.Clone(s.faults), i, i+1)
		if mostly(less, s.faults[i]) {
			s, i = less, 0
		} else {
			i++
		}
	}
	return s
}

func TestReducingLeavesWhatTheFailureNeeds(t *testing.T) {
	s := scheduleOf(1)
	s.faults = nil
	for _, kind := range []string{"a", "b", "c", "d", "e"} {
		s.faults = append(s.faults, chaosFault{kind: kind})
	}
	has := func(s chaosSchedule, kind string) bool {
		return slices.ContainsFunc(s.faults, func(f chaosFault) bool { return f.kind == kind })
	}
	tries := 0
	cases := map[string]struct {
		fails func(chaosSchedule) bool
		left  string
	}{
		"one":             {func(s chaosSchedule) bool { return has(s, "d") }, "d"},
		"two together":    {func(s chaosSchedule) bool { return has(s, "b") && has(s, "e") }, "be"},
		"every other try": {func(s chaosSchedule) bool { tries++; return has(s, "c") && tries%3 != 0 }, "c"},
		"none needed":     {func(chaosSchedule) bool { return true }, ""},
		"never again":     {func(chaosSchedule) bool { return false }, "abcde"},
	}
	for name, c := range cases {
		left := ""
		for _, f := range reduceChaos(s, c.fails, t.Logf).faults {
			left += f.kind
		}
		if left != c.left {
			t.Errorf("%s: left is %q, expected %q", name, left, c.left)
		}
	}
}
