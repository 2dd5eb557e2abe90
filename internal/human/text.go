package human

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean escapes what is not fit for a line of a terminal, so that names and
// messages of others cannot steer it. A newline or a tab becomes a space.
func Clean(text string) string {
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

// OneLine puts single spaces in the place of all white space.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Wrap breaks text, which Clean has seen, at spaces into lines of at most n
// runes. A word is never broken, nor what must be read or copied as one.
func Wrap(text string, n int) []string {
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

// glue is a space where a line must not end. No text has it after Clean.
const glue = "\x00"

// together matches commands that are short enough for a line, times, durations
// and quantities.
var together = regexp.MustCompile("`[^`]{1,70}`" +
	`|[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2} UTC` +
	`|[0-9.]+ (?:d|h|min)\b(?: [0-9]+ (?:h|min|s)\b)?(?: ago)?` +
	`|[0-9.]+ (?:[KMGTPE]iB|B|s|%)`)
