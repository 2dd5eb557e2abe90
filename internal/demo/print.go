package demo

import (
	"fmt"
	"hash/fnv"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/cdcpub/cdcpub/internal/verify"
)

// Look is how output looks. The zero value is for pipes and files.
type Look struct {
	// Colour allows escape sequences.
	Colour bool
	// Width is that of the terminal, in columns. A record is fitted into it:
	// the event id and the value are cut short. 0 shows everything.
	Width int
}

// SGR codes, see ECMA-48.
const (
	sgrReset = "\x1b[0m"
	sgrBold  = "\x1b[1m"
	sgrDim   = "\x1b[2m"
	sgrRed   = "\x1b[1;31m"
	sgrGreen = "\x1b[1;32m"
)

// keyColours tell keys apart, so that the eye can follow one order.
var keyColours = []string{"\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[34m", "\x1b[35m", "\x1b[36m"}

func (l Look) paint(code, text string) string {
	if !l.Colour || text == "" {
		return text
	}
	return code + text + sgrReset
}

func (l Look) good(text string) string { return l.paint(sgrGreen, text) }
func (l Look) bad(text string) string  { return l.paint(sgrRed, text) }

func (l Look) key(key []byte) string {
	hash := fnv.New32a()
	hash.Write(key) // never fails
	return l.paint(keyColours[hash.Sum32()%uint32(len(keyColours))], string(key))
}

// printer writes a line for each record. One goroutine uses it.
type printer struct {
	to   io.Writer // nil: nowhere
	look Look
	line strings.Builder
}

// print writes the records that arrived together at once.
func (p *printer) print(records []verify.Record) error {
	if p.to == nil {
		return nil
	}
	p.line.Reset()
	for _, r := range records {
		p.record(r)
	}
	if _, err := io.WriteString(p.to, p.line.String()); err != nil {
		return fmt.Errorf("print records: %w", err)
	}
	return nil
}

// record is topic[partition]@offset, key, headers and value.
func (p *printer) record(r verify.Record) {
	terminal := p.look.Width > 0
	width := 0 // columns used
	column := func(text, painted string, least int) {
		length := utf8.RuneCountInString(text)
		p.line.WriteString(painted)
		width += length + 1
		if terminal && length < least {
			p.line.WriteString(strings.Repeat(" ", least-length))
			width += least - length
		}
		p.line.WriteByte(' ')
	}
	place := fmt.Sprintf("%s[%d]@%d", r.Topic, r.Partition, r.Offset)
	column(place, p.look.paint(sgrDim, place), 13)
	column("key="+string(r.Key), p.look.paint(sgrDim, "key=")+p.look.key(r.Key), 10)
	for _, h := range r.Headers {
		value, code, least := string(h.Value), sgrBold, 0
		switch {
		case h.Key == "id" && terminal:
			value, code = shorten(value, 9), sgrDim
		case h.Key == "id":
		case h.Key == "eventType":
			least = len("eventType=OrderCancelled")
		}
		column(h.Key+"="+value, p.look.paint(sgrDim, h.Key+"=")+p.look.paint(code, value), least)
	}
	value := "NULL"
	if r.Value != nil {
		value = string(r.Value)
	}
	if terminal {
		value = shorten(value, max(8, p.look.Width-width))
	}
	p.line.WriteString(value)
	p.line.WriteByte('\n')
}

// shorten cuts text to so many characters, the last of which says so.
func shorten(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}
