package spelling

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestDistanceCountsEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"slot", "slot", 0}, {"", "slot", 4}, {"slot", "", 4},
		{"cdcpub", "cdcpb", 1}, {"cdcpub", "cdcpubb", 1}, {"cdcpub", "cdcqub", 1},
		{"cdcpub", "cdcupb", 1}, // neighbours swapped
		{"ab", "ba", 1}, {"abc", "cab", 2}, {"orders", "invoices", 6},
	} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestDistanceIsSymmetricAndZeroOnlyForEqualNames(t *testing.T) {
	name := rapid.StringMatching(`[ab_]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := name.Draw(t, "a"), name.Draw(t, "b")
		d := Distance(a, b)
		if d != Distance(b, a) {
			t.Errorf("Distance(%q, %q) = %d, the other way round %d", a, b, d, Distance(b, a))
		}
		if (d == 0) != (a == b) {
			t.Errorf("Distance(%q, %q) = %d", a, b, d)
		}
		if longer := max(len(a), len(b)); d > longer || d < longer-min(len(a), len(b)) {
			t.Errorf("Distance(%q, %q) = %d is not possible", a, b, d)
		}
	})
}

func TestSortedBeginsWithTheNearest(t *testing.T) {
	names := []string{"walarchive", "cdcpub_old", "cdcpub", "cdcpub2"}
	want := []string{"cdcpub", "cdcpub2", "cdcpub_old", "walarchive"}
	if got := Sorted("cdcpbu", names); !slices.Equal(got, want) {
		t.Errorf("sorted %q, want %q", got, want)
	}
	if names[0] != "walarchive" {
		t.Error("the argument was changed")
	}
}
