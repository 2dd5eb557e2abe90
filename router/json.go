package router

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// members walks over the members of one JSON object (RFC 8259), in the order of
// the text. Strings without escapes and all other values point into it.
type members struct {
	text []byte
	pos  int
	done bool

	// key and value are those of the member that next found. A value is nil for
	// null, the unquoted text for a string, else the JSON text as it stands.
	key   []byte
	value []byte
	// problem says what is wrong with the text, and ends the walk.
	problem string
}

// literalEnd holds what may follow a number, true, false or null.
const literalEnd = ",} \t\n\r"

const (
	notAnObject = "is not a JSON object"
	badObject   = "is not valid JSON"
)

// newMembers stands before the first member. JSON null has none.
func newMembers(text []byte) members {
	m := members{text: text}
	switch {
	case m.peek() == '{':
		m.pos++
		if m.peek() == '}' {
			m.close()
		}
	case string(bytes.TrimSpace(text)) == "null":
		m.done = true
	case json.Valid(text):
		m.problem = notAnObject
	default:
		m.problem = badObject
	}
	return m
}

// next reads one member and the comma or brace after it.
func (m *members) next() bool {
	if m.done || m.problem != "" {
		return false
	}
	if m.peek() != '"' {
		return m.fail()
	}
	var ok bool
	if m.key, ok = m.str(); !ok {
		return m.fail()
	}
	if m.peek() != ':' {
		return m.fail()
	}
	m.pos++
	if m.value, ok = m.any(); !ok {
		return m.fail()
	}
	switch m.peek() {
	case ',':
		m.pos++
	case '}':
		m.close()
	default:
		return m.fail()
	}
	return m.problem == ""
}

func (m *members) fail() bool {
	m.problem = badObject
	return false
}

// close accepts nothing but space behind the object.
func (m *members) close() {
	m.pos++
	m.done = true
	if m.peek(); m.pos < len(m.text) {
		m.problem = badObject
	}
}

// peek skips space and returns the next byte, 0 at the end.
func (m *members) peek() byte {
	for ; m.pos < len(m.text); m.pos++ {
		switch c := m.text[m.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

func (m *members) any() ([]byte, bool) {
	switch m.peek() {
	case '"':
		return m.str()
	case '{', '[':
		return m.checked(m.nestedEnd())
	default:
		end := m.pos
		for end < len(m.text) && strings.IndexByte(literalEnd, m.text[end]) < 0 {
			end++
		}
		value, ok := m.checked(end)
		if string(value) == "null" {
			return nil, ok
		}
		return value, ok
	}
}

func (m *members) checked(end int) ([]byte, bool) {
	value := m.text[m.pos:end:end]
	m.pos = end
	return value, json.Valid(value)
}

// nestedEnd finds the bracket that closes the one at pos. Whether the brackets
// fit each other is for checked to find out.
func (m *members) nestedEnd() int {
	depth, quoted := 0, false
	for i := m.pos; i < len(m.text); i++ {
		switch c := m.text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(m.text)
}

// str reads the string whose quote is at pos.
func (m *members) str() ([]byte, bool) {
	start := m.pos + 1
	escaped := false
	for i := start; i < len(m.text); i++ {
		switch c := m.text[i]; {
		case c == '"':
			m.pos = i + 1
			if escaped {
				return unescape(m.text[start:i])
			}
			return m.text[start:i:i], true
		case c == '\\':
			escaped = true
			i++
		case c < 0x20:
			return nil, false
		}
	}
	return nil, false
}

// unescape fails on what has no text: an unknown escape or half a surrogate
// pair (the type json lets it in, jsonb does not).
func unescape(s []byte) ([]byte, bool) {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		i++
		switch s[i] {
		case '"', '\\', '/':
			out = append(out, s[i])
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, size := unicodeEscape(s[i-1:])
			if size == 0 {
				return nil, false
			}
			out = utf8.AppendRune(out, r)
			i += size - 2
		default:
			return nil, false
		}
	}
	return out, true
}

// unicodeEscape reads \uXXXX, or two of them that form a surrogate pair, and
// returns how many bytes that took; 0 when there is no such character.
func unicodeEscape(s []byte) (rune, int) {
	first, ok := codeUnit(s)
	switch {
	case !ok:
		return 0, 0
	case !utf16.IsSurrogate(first):
		return first, 6
	}
	second, ok := codeUnit(s[6:])
	if r := utf16.DecodeRune(first, second); ok && r != utf8.RuneError {
		return r, 12
	}
	return 0, 0
}

func codeUnit(s []byte) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(s[2:6]), 16, 16)
	return rune(n), err == nil
}
