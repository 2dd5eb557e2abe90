package slotview

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cdcpub/cdcpub/internal/human"
	"github.com/cdcpub/cdcpub/slotmon"
)

// width is how many columns a line may have.
const width = 100

// span formats a duration by its two largest units.
func span(d time.Duration) string {
	if d < 0 {
		return "-" + span(-d)
	}
	return human.Seconds(d.Round(time.Second).Seconds())
}

// moment formats a time, and how long before now it was, if now is known. A
// clock that is ahead gives no negative age.
func moment(t, now time.Time) string {
	text := human.Moment(t)
	if ago := now.Sub(t); ago >= 0 {
		text += " (" + span(ago) + " ago)"
	}
	return text
}

// clean escapes what is not fit for a line of a terminal.
func clean(text string) string {
	if strings.IndexFunc(text, unfit) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case unfit(r):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unfit(r rune) bool { return !unicode.IsPrint(r) }

// shorten cuts text to at most n runes, with an ellipsis for what is left out.
func shorten(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

// wrap breaks text at spaces into lines of at most n runes. A word is never
// broken, nor what must be read or copied as one.
func wrap(text string, n int) []string {
	text = together.ReplaceAllStringFunc(text, func(whole string) string { return strings.ReplaceAll(whole, " ", glue) })
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) <= n:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], glue, " ")
	}
	return lines
}

// glue is a space where a line must not end. No text has it after clean.
const glue = "\x00"

// together matches commands that are short enough for a line, times, durations
// and quantities.
var together = regexp.MustCompile("`[^`]{1,70}`" +
	`|[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2} UTC` +
	`|[0-9.]+ (?:d|h|min)\b(?: [0-9]+ (?:h|min|s)\b)?(?: ago)?` +
	`|[0-9.]+ (?:[KMGTPE]iB|B|s|%)`)

// Style is how much a terminal can show.
type Style struct{ Color bool }

// verdict is the severity in capitals, colored if the style allows it, padded
// to n columns.
func (s Style) verdict(severity slotmon.Severity, n int) string {
	text := strings.ToUpper(severity.String())
	padding := strings.Repeat(" ", max(0, n-len(text)))
	color, ok := colors[severity]
	if !s.Color || !ok {
		return text + padding
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m" + padding
}

// colors are SGR parameters.
var colors = map[slotmon.Severity]string{
	slotmon.OK: "32", slotmon.Warning: "1;33", slotmon.Critical: "1;31", slotmon.Unknown: "1;35",
}
