package harness

import (
	"maps"
	"strings"
	"testing"
)

func TestParseInsertRefusesWhatItDoesNotUnderstand(t *testing.T) {
	for _, line := range []string{
		`table public.outbox`,
		`table "public.outbox: INSERT: a[int4]:1`,
		`table public.outbox: INSERT: a`,
		`table public.outbox: INSERT: a[int4`,
		`table public.outbox: INSERT: a[int4]1`,
		`table public.outbox: INSERT: a[int4]:`,
		`table public.outbox: INSERT: a[text]:'x`,
		`table public.outbox: INSERT: a[text]:'x'b[text]:'y'`,
	} {
		if got, ok, err := parseInsert(line); err == nil {
			t.Errorf("parseInsert(%q) = %v, %v, want an error", line, got, ok)
		}
	}
	for _, line := range []string{`BEGIN 7`, `table public.outbox: DELETE: a[int4]:1`, `message: transactional: 1`} {
		if got, ok, err := parseInsert(line); ok || err != nil {
			t.Errorf("parseInsert(%q) = %v, %v, %v, want that it is no INSERT", line, got, ok, err)
		}
	}
}

// What the parser takes, printed again as test_decoding prints it, must be
// taken again and be the same.
func FuzzParseInsert(f *testing.F) {
	f.Add(`table public.outbox: INSERT: id[uuid]:'0' n[bigint]:-1 "A ""b"[text[]]:null t[text]:'it''s [x]:' b[bit]:B'1' y[boolean]:true`)
	f.Add(`table a.b: INSERT: (no-tuple-data)`)
	f.Fuzz(func(t *testing.T, line string) {
		first, ok, err := parseInsert(line)
		if err != nil || !ok {
			return
		}
		again, ok, err := parseInsert(render(first))
		if err != nil || !ok || again.table != first.table || !maps.EqualFunc(again.columns, first.columns, equal) {
			t.Errorf("%q gave %v, and rendered %v, %v", line, first, again, err)
		}
	})
}

func equal(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// render prints an INSERT as test_decoding does, every value quoted.
func render(i insert) string {
	line := "table " + i.table + insertMark
	if len(i.columns) == 0 {
		return line + " (no-tuple-data)"
	}
	for name, value := range i.columns {
		line += ` "` + strings.ReplaceAll(name, `"`, `""`) + `"[text]:`
		if value == nil {
			line += "null"
			continue
		}
		line += "'" + strings.ReplaceAll(*value, "'", "''") + "'"
	}
	return line
}
