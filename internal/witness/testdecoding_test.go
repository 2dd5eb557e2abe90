package witness

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func ptr(s string) *string { return &s }

func TestAnInsertIsReadAsTestDecodingPrintsIt(t *testing.T) {
	for name, test := range map[string]struct {
		line  string
		table string
		want  map[string]*string
	}{
		"plain": {
			`table public.outbox: INSERT: id[uuid]:'0b5c' version[bigint]:3 paid[boolean]:true note[text]:null`,
			"public.outbox", map[string]*string{"id": ptr("0b5c"), "version": ptr("3"), "paid": ptr("t"), "note": nil},
		},
		"quotes and line ends in a value": {
			"table public.outbox: INSERT: a[text]:'it''s\nb[text]:''x''' b[text]:''",
			"public.outbox", map[string]*string{"a": ptr("it's\nb[text]:'x'"), "b": ptr("")},
		},
		"quoted names": {
			`table "My Schema"."a: b": INSERT: "x[1]"[text[]]:'{}' "say ""hi"""["odd]type"]:'1'`,
			`"My Schema"."a: b"`, map[string]*string{"x[1]": ptr("{}"), `say "hi"`: ptr("1")},
		},
		"bit string": {
			`table public.outbox: INSERT: flags[bit(3)]:B'101'`,
			"public.outbox", map[string]*string{"flags": ptr("101")},
		},
		"no columns": {
			`table public.outbox: INSERT: (no-tuple-data)`,
			"public.outbox", map[string]*string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok, err := parseInsert(test.line)
			if err != nil || !ok {
				t.Fatalf("ok %v, error %v", ok, err)
			}
			if got.table != test.table || !maps.EqualFunc(got.columns, test.want, equal) {
				t.Errorf("table %s, columns %v", got.table, slices.Collect(maps.Keys(got.columns)))
			}
		})
	}
}

func TestOtherLinesAreNoInserts(t *testing.T) {
	for _, line := range []string{
		"BEGIN", "BEGIN 7", "COMMIT (at 2026-01-01 00:00:00+00)",
		`table public.orders: UPDATE: id[text]:'x'`, `table public.outbox: DELETE: id[text]:'x'`,
		`table public.outbox: TRUNCATE: (no-flags)`,
		`message: transactional: 1 prefix: p, sz: 1 content:x`,
	} {
		if _, ok, err := parseInsert(line); ok || err != nil {
			t.Errorf("%s: ok %v, error %v", line, ok, err)
		}
	}
}

func TestABrokenLineIsAnError(t *testing.T) {
	for _, line := range []string{
		`table public.outbox`, `table public.outbox: INSERT: id`, `table public.outbox: INSERT: id[text`,
		`table public.outbox: INSERT: id[text]`, `table public.outbox: INSERT: id[text]:`,
		`table public.outbox: INSERT: id[text]:'open`, `table public.outbox: INSERT:id[text]:'x'`,
		`table "public.outbox: INSERT: a[int4]:1`, `table public.outbox: INSERT: a[int4]1`,
		`table public.outbox: INSERT: a[text]:'x'b[text]:'y'`,
	} {
		if got, ok, err := parseInsert(line); err == nil {
			t.Errorf("%s: read as %v, %v", line, got, ok)
		}
	}
}

// What the parser takes, printed again as test_decoding prints it, must be
// taken again and be the same.
func FuzzParseInsert(f *testing.F) {
	f.Add(`table public.outbox: INSERT: id[uuid]:'0b5c' version[bigint]:3 paid[boolean]:true note[text]:null`)
	f.Add(`table "a: b": INSERT: "x[1]"[text[]]:'it''s' flags[bit(3)]:B'101'`)
	f.Add(`table public.outbox: INSERT: id[uuid]:'0' n[bigint]:-1 "A ""b"[text[]]:null t[text]:'it''s [x]:' b[bit]:B'1' y[boolean]:true`)
	f.Add(`table a.b: INSERT: (no-tuple-data)`)
	f.Fuzz(func(t *testing.T, line string) {
		first, ok, err := parseInsert(line)
		if err != nil || !ok {
			return
		}
		if first.table == "" && line[len("table ")] != ':' {
			t.Errorf("%q: an insert into no table", line)
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
