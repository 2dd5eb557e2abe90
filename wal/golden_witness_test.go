package wal

import (
	"encoding/binary"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// told is what test_decoding said of one change.
type told struct {
	lsn    string
	kind   byte
	tables []string
	tuple  string // with its leading blank
}

// toldTransaction is what test_decoding said of one transaction.
type toldTransaction struct {
	end, at string
	changes []told
}

// readWitness returns what test_decoding said, by transaction id.
func readWitness(t *testing.T, major int) map[string]*toldTransaction {
	t.Helper()
	content, err := os.ReadFile(goldenFile(major, "witness"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*toldTransaction{}
	for line := range strings.Lines(string(content)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
		text, err := strconv.Unquote(fields[2])
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		lsn, xid := fields[0], fields[1]
		if all[xid] == nil {
			all[xid] = &toldTransaction{}
		}
		verb, rest, _ := strings.Cut(text, " ")
		switch verb {
		case "BEGIN", "message:":
		case "COMMIT":
			all[xid].end = lsn
			all[xid].at = strings.TrimSuffix(strings.TrimPrefix(rest, xid+" (at "), ")")
		case "table":
			tables, rest, _ := strings.Cut(rest, ": ")
			kind, tuple, _ := strings.Cut(rest, ":")
			all[xid].changes = append(all[xid].changes, told{lsn, kind[0], strings.Split(tables, ", "), tuple})
		default:
			t.Fatalf("test_decoding said %q", text)
		}
	}
	return all
}

// shows is the part of a transaction that a view has.
func (v goldenView) shows(all []told) (shown []told) {
	for _, change := range all {
		var tables []string
		for _, table := range change.tables {
			if slices.Contains(v.tables, "app.outbox_parts") && strings.HasPrefix(table, "app.outbox_parts_") {
				table = "app.outbox_parts"
			}
			if slices.Contains(v.tables, table) {
				tables = append(tables, table)
			}
		}
		if len(tables) > 0 && strings.IndexByte(v.kinds, change.kind) >= 0 {
			change.tables = tables
			shown = append(shown, change)
		}
	}
	return shown
}

// PostgreSQL's own decoder and ours read the same from the same WAL:
// transactions, changes and their tables, LSNs, times, and every value.
func TestGoldensReadTheSameAsByTestDecoding(t *testing.T) {
	for _, major := range goldenMajors {
		witnessed := readWitness(t, major)
		for _, g := range readGoldens(t, major) {
			if g.view.refused == 0 {
				t.Run(fmt.Sprintf("%d/%s", major, g.view.name), func(t *testing.T) { g.compare(t, witnessed) })
			}
		}
	}
}

func (g golden) compare(t *testing.T, witnessed map[string]*toldTransaction) {
	d, b := NewDecoder(classes{}), &Batch{}
	seen := map[string]bool{}
	var begin Event
	var now *toldTransaction
	var left []told
	for _, m := range g.messages {
		if err := d.Decode(m.start, m.data, b); err != nil {
			t.Fatal(err)
		}
		kind := m.data[0]
		switch {
		case kind == 'B':
			begin = b.Events[0]
			xid := fmt.Sprint(begin.XID)
			if now = witnessed[xid]; now == nil {
				t.Fatalf("test_decoding knows no transaction %s", xid)
			}
			seen[xid], left = true, g.view.shows(now.changes)
		case kind == 'C':
			end := b.Events[0]
			at := end.CommitTime.Format("2006-01-02 15:04:05.999999+00")
			if end.LSN.String() != now.end || at != now.at || !begin.CommitTime.Equal(end.CommitTime) {
				t.Errorf("transaction %d ends at %s, %s; test_decoding says %s, %s", begin.XID, end.LSN, at, now.end, now.at)
			}
			if len(left) > 0 {
				t.Errorf("transaction %d: not seen: %v", begin.XID, left)
			}
		case strings.IndexByte("IUDT", kind) >= 0:
			if len(left) == 0 || kind != left[0].kind || !slices.Equal(d.tablesOf(m.data), left[0].tables) || m.start.String() != left[0].lsn {
				t.Fatalf("transaction %d: %c of %v at %s; test_decoding says next: %+v", begin.XID, kind, d.tablesOf(m.data), m.start, left)
			}
			if len(b.Events) > 0 {
				sameTuple(t, b.Events[0].Row, left[0].tuple)
			}
			left = left[1:]
		}
		b.Release()
	}
	for xid, transaction := range witnessed {
		if !seen[xid] && len(g.view.shows(transaction.changes)) > 0 {
			t.Errorf("transaction %s is missing", xid)
		}
	}
}

// tablesOf are the relations of a message, quoted as PostgreSQL does.
func (d *Decoder) tablesOf(message []byte) (names []string) {
	ids := message[1:5]
	if message[0] == 'T' {
		ids = message[6:]
	}
	for ; len(ids) >= 4; ids = ids[4:] {
		rel := d.relations[binary.BigEndian.Uint32(ids)]
		names = append(names, quoted(rel.Schema)+"."+quoted(rel.Name))
	}
	return names
}

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

func quoted(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// unsent are the columns that test_decoding shows and pgoutput does not send:
// generated ones. It knows no value of a virtual one.
var unsent = []string{" doubled[integer]:42", " doubled[integer]:null", " tripled[integer]:null"}

// sameTuple compares a row with test_decoding's text, in which the columns may
// be in another order: that of a partition.
func sameTuple(t *testing.T, row Row, text string) {
	t.Helper()
	missing := map[int]bool{}
	for i := range row.Relation.Columns {
		missing[i] = true
	}
columns:
	for rest := text; rest != ""; {
		for i := range missing {
			if after, ok := cutColumn(rest, row.Relation.Columns[i].Name, row.Values[i]); ok {
				delete(missing, i)
				rest = after
				continue columns
			}
		}
		for _, column := range unsent {
			if after, ok := strings.CutPrefix(rest, column); ok {
				rest = after
				continue columns
			}
		}
		t.Errorf("%s: we read %q, test_decoding%s", row.Relation, row.Values, rest)
		return
	}
	if len(missing) > 0 {
		t.Errorf("%s: test_decoding does not show columns %v:%s", row.Relation, missing, text)
	}
}

// cutColumn cuts ` name[type]:value` from the beginning of text, if that is
// what it begins with.
func cutColumn(text, name string, value []byte) (after string, ok bool) {
	if text, ok = strings.CutPrefix(text, " "+quoted(name)+"["); !ok {
		return "", false
	}
	typeName, text, _ := strings.Cut(text, "]:")
	want := string(value)
	switch {
	case value == nil:
		want = "null"
	case strings.HasPrefix(text, "B'"):
		want = "B'" + want + "'"
	case strings.HasPrefix(text, "'"):
		want = "'" + strings.ReplaceAll(want, "'", "''") + "'"
	case typeName == "boolean":
		want = map[string]string{"t": "true", "f": "false"}[want]
	}
	after, ok = strings.CutPrefix(text, want)
	return after, ok && (after == "" || after[0] == ' ')
}
