package harness

import (
	"errors"
	"fmt"
	"strings"
)

// insert is one INSERT as test_decoding prints it.
type insert struct {
	table   string // qualified, as quote_identifier writes it
	columns map[string]*string
}

const insertMark = ": INSERT:"

// parseInsert reads a line of test_decoding. ok is false for a line that is
// not an INSERT. The form is
//
//	table public.outbox: INSERT: id[uuid]:'...' n[bigint]:1 "A b"[text[]]:null
//
// after tuple_to_stringinfo and print_literal in PostgreSQL's
// contrib/test_decoding/test_decoding.c: a quote within a quoted value is
// doubled, nothing else is escaped, and a value may contain line ends.
func parseInsert(line string) (result insert, ok bool, err error) {
	rest, isTable := strings.CutPrefix(line, "table ")
	if !isTable {
		return insert{}, false, nil
	}
	end, err := endOfName(rest, ':')
	if err != nil {
		return insert{}, false, fmt.Errorf("table name in %.200q: %w", line, err)
	}
	result = insert{table: rest[:end], columns: map[string]*string{}}
	rest, isInsert := strings.CutPrefix(rest[end:], insertMark)
	if !isInsert {
		return insert{}, false, nil
	}
	if rest == " (no-tuple-data)" {
		return result, true, nil
	}
	for rest != "" {
		if rest, err = result.parseColumn(rest); err != nil {
			return insert{}, false, fmt.Errorf("%w in %.200q", err, line)
		}
	}
	return result, true, nil
}

// parseColumn reads ` name[type]:value` and returns what follows.
func (i *insert) parseColumn(text string) (rest string, err error) {
	text, ok := strings.CutPrefix(text, " ")
	if !ok {
		return "", errors.New("no blank before a column")
	}
	end, err := endOfName(text, '[')
	if err != nil {
		return "", err
	}
	name := unquote(text[:end])
	text = text[end+1:]
	// A type name may have brackets (text[]) and quoted parts ("a]b").
	depth := 1
	var quoted bool
	typeEnd := strings.IndexFunc(text, func(r rune) bool {
		switch {
		case r == '"':
			quoted = !quoted
		case quoted:
		case r == '[':
			depth++
		case r == ']':
			depth--
		}
		return depth == 0
	})
	if typeEnd < 0 {
		return "", fmt.Errorf("column %s: its type does not end", name)
	}
	typeName := text[:typeEnd]
	text, ok = strings.CutPrefix(text[typeEnd+1:], ":")
	if !ok {
		return "", fmt.Errorf("column %s: no colon after its type", name)
	}
	value, rest, err := parseValue(text, typeName)
	if err != nil {
		return "", fmt.Errorf("column %s: %w", name, err)
	}
	i.columns[name] = value
	return rest, nil
}

// parseValue reads null, a quoted literal, or a bare number or boolean. The
// value is as the type's output function writes it; nil is NULL.
func parseValue(text, typeName string) (value *string, rest string, err error) {
	if strings.HasPrefix(text, "B'") { // bit strings
		text = text[1:]
	}
	if !strings.HasPrefix(text, "'") {
		end := strings.IndexByte(text, ' ')
		if end < 0 {
			end = len(text)
		}
		word := text[:end]
		switch {
		case word == "":
			return nil, "", errors.New("no value")
		case word == "null":
			return nil, text[end:], nil
		case typeName == "boolean": // test_decoding spells it out
			word = word[:1]
		}
		return &word, text[end:], nil
	}
	var b strings.Builder
	for text = text[1:]; ; {
		quote := strings.IndexByte(text, '\'')
		if quote < 0 {
			return nil, "", errors.New("a literal does not end")
		}
		b.WriteString(text[:quote])
		text = text[quote+1:]
		if !strings.HasPrefix(text, "'") {
			literal := b.String()
			return &literal, text, nil
		}
		b.WriteByte('\'')
		text = text[1:]
	}
}

// endOfName finds stop outside of a quoted identifier.
func endOfName(text string, stop byte) (int, error) {
	quoted := false
	for i := range len(text) {
		switch {
		case text[i] == '"':
			quoted = !quoted
		case text[i] == stop && !quoted:
			return i, nil
		}
	}
	return 0, errors.New("a name does not end")
}

// unquote undoes quote_identifier.
func unquote(name string) string {
	if len(name) < 2 || name[0] != '"' {
		return name
	}
	return strings.ReplaceAll(name[1:len(name)-1], `""`, `"`)
}
