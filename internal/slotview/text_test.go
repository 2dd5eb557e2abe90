package slotview

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
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

func TestWrapLosesNothingAndBreaksNoCommand(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		word := rapid.SampledFrom([]string{"a", "retained", "12", "3.5", "GiB", "min", "h", "`cdcpub slot drop x`", "2026-03-14 12:00:00 UTC", strings.Repeat("x", 40)})
		text := strings.Join(rapid.SliceOfN(word, 0, 40).Draw(rt, "words"), " ")
		n := rapid.IntRange(50, 100).Draw(rt, "columns")
		lines := wrap(text, n)
		if got := strings.Join(lines, " "); got != text {
			rt.Fatalf("%q became %q", text, got)
		}
		for _, line := range lines {
			if strings.Count(line, "`")%2 != 0 {
				rt.Errorf("a command is broken: %q", line)
			}
			if utf8.RuneCountInString(line) > n {
				rt.Errorf("%d columns: %q", n, line)
			}
		}
	})
}

func TestCleanTextStaysAsItIs(t *testing.T) {
	for text, want := range map[string]string{
		"naïve 日本": "naïve 日本", "a\tb\nc": "a b c", "\x1b[2J": `\x1b[2J`, "\xff\xfe": `\xff\xfe`, "\u202e": `\u202e`, "\x00": `\x00`, "\ufffd": "\ufffd",
	} {
		if got := clean(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
