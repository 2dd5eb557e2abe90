package human

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestWrapLosesNothingAndBreaksNoCommand(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		word := rapid.SampledFrom([]string{"a", "retained", "12", "3.5", "GiB", "min", "h", "`cdcpub slot drop x`", "2026-03-14 12:00:00 UTC", strings.Repeat("x", 40)})
		text := strings.Join(rapid.SliceOfN(word, 0, 40).Draw(rt, "words"), " ")
		n := rapid.IntRange(50, 100).Draw(rt, "columns")
		lines := Wrap(text, n)
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

func TestWrapKeepsAWordThatIsLongerThanALine(t *testing.T) {
	long := strings.Repeat("x", 12)
	if got := Wrap("a "+long+" b", 5); strings.Join(got, "|") != "a|"+long+"|b" {
		t.Errorf("%q", got)
	}
}

func TestCleanTextStaysAsItIs(t *testing.T) {
	for text, want := range map[string]string{
		"naïve 日本": "naïve 日本", "a\tb\nc": "a b c", "\x1b[2J": `\x1b[2J`, "\xff\xfe": `\xff\xfe`, "\u202e": `\u202e`, "\x00": `\x00`, "\ufffd": "\ufffd",
	} {
		if got := Clean(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestOneLine(t *testing.T) {
	if got := OneLine("  a\n\tb  c\r\n"); got != "a b c" {
		t.Errorf("%q", got)
	}
}
