package slotview

import (
	"strings"
	"time"
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

// shorten cuts text to at most n runes, with an ellipsis for what is left out.
func shorten(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

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
