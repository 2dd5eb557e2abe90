package config

import (
	"errors"
	"fmt"
	"strings"
)

// Table is a schema-qualified table, its names as the catalogs have them.
type Table struct {
	Schema string
	Name   string
}

// maxIdentifier is NAMEDATALEN-1. PostgreSQL cuts longer names silently.
const maxIdentifier = 63

// UnmarshalText reads schema.table by the rules of SQL: names fold to lower
// case unless they are in double quotes, where "" stands for a quote.
func (t *Table) UnmarshalText(text []byte) error {
	schema, rest, err := cutIdentifier(string(text))
	if err != nil {
		return err
	}
	rest, qualified := strings.CutPrefix(rest, ".")
	if !qualified {
		if rest != "" {
			return errTable
		}
		return fmt.Errorf("must be schema-qualified, for example public.%s", text)
	}
	name, rest, err := cutIdentifier(rest)
	if err != nil {
		return err
	}
	if rest != "" {
		return errTable
	}
	*t = Table{Schema: schema, Name: name}
	return nil
}

var errTable = errors.New(`must be schema.table, with double quotes around a name that has other than letters, digits, _ and $`)

// MarshalText writes what String returns.
func (t Table) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// String is the name as SQL wants it, quoted where necessary.
func (t Table) String() string { return quoteIdentifier(t.Schema) + "." + quoteIdentifier(t.Name) }

// cutIdentifier takes one SQL identifier from the front of s.
func cutIdentifier(s string) (name, rest string, err error) {
	if strings.HasPrefix(s, `"`) {
		name, rest, err = cutQuoted(s[1:])
	} else {
		end := 0
		for end < len(s) && plainByte(s[end], end == 0) {
			end++
		}
		name, rest = foldASCII(s[:end]), s[end:]
	}
	switch {
	case err != nil:
		return "", "", err
	case name == "":
		return "", "", errTable
	case len(name) > maxIdentifier:
		return "", "", fmt.Errorf("has a name longer than %d bytes", maxIdentifier)
	}
	return name, rest, nil
}

// cutQuoted takes a quoted identifier whose opening quote is already gone.
func cutQuoted(s string) (name, rest string, err error) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, `"`)
		if !found {
			return "", "", errors.New(`lacks a closing double quote`)
		}
		b.WriteString(before)
		if !strings.HasPrefix(after, `"`) {
			return b.String(), after, nil
		}
		b.WriteByte('"')
		s = after[1:]
	}
}

// plainByte tells if an identifier without quotes may have c. Bytes above
// ASCII are letters to PostgreSQL.
func plainByte(c byte, first bool) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_', c >= 0x80:
		return true
	case '0' <= c && c <= '9', c == '$':
		return !first
	}
	return false
}

// foldASCII lowers ASCII letters only, as PostgreSQL does in UTF-8.
func foldASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + ('a' - 'A')
		}
		return r
	}, s)
}

// quoteIdentifier adds double quotes if s would not read back without them.
func quoteIdentifier(s string) string {
	for i := range len(s) {
		if !plainByte(s[i], i == 0) || ('A' <= s[i] && s[i] <= 'Z') {
			return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
		}
	}
	return s
}
