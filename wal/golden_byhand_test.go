package wal

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pglogrepl"
)

// What must be in the goldens, written by hand from the history.
func TestGoldensHaveWhatTheHistoryMeans(t *testing.T) {
	for _, major := range goldenMajors {
		views := map[string]golden{}
		for _, g := range readGoldens(t, major) {
			views[g.view.name] = g
		}
		for _, v := range goldenViews {
			if _, ok := views[v.name]; !ok && major >= v.from {
				t.Fatalf("%d has no view %s", major, v.name)
			}
		}
		everything, inserts := views["everything"], views["inserts"]
		for _, c := range []struct {
			what string
			got  any
			want any
		}{
			{"old rows of updates", everything.tags('U'), "NNNNKO"},
			{"old rows of deletes", everything.tags('D'), "KOK"},
			{"truncates", everything.count('T'), 1},
			{"origins", everything.count('O'), 1},
			{"origins of inserts alone", inserts.count('O'), 1},
			{"messages that nobody asked for", everything.count('M') + inserts.count('M'), 0},
			{"messages asked for", views["messages"].count('M'), 2},
			{"unchanged TOAST values", everything.unchanged(t), 1},
			{"updates without updates", inserts.count('U') + inserts.count('D') + inserts.count('T'), 0},
			{"columns of outbox", inserts.columns(t, "outbox"), "[[id aggregate_id version payload note at amount ratio bin span feeling tags done]" +
				" [id aggregate_id version payload note at amount ratio bin span feeling done added]]"},
			{"columns of outbox_made", inserts.columns(t, "outbox_made"), "[[id total]]"},
			{"columns of a partition", inserts.columns(t, "outbox_parts_us"), "[[payload region id]]"},
			{"columns of the root", views["via_root"].columns(t, "outbox_parts"), "[[id region payload]]"},
		} {
			if c.got != c.want {
				t.Errorf("%d: %s: %v, want %v", major, c.what, c.got, c.want)
			}
		}
		if made, ok := views["made"]; ok && made.columns(t, "outbox_made") != "[[id total doubled]]" {
			t.Errorf("%d: published generated columns: %s", major, made.columns(t, "outbox_made"))
		}
		if views["streaming"].count('S') == 0 {
			t.Errorf("%d: no transaction was streamed", major)
		}
	}
}

// What we never ask for stops the stream, by name, should it come anyway.
func TestGoldensOfOtherProtocolsAreRefused(t *testing.T) {
	for _, major := range goldenMajors {
		for _, g := range readGoldens(t, major) {
			if g.view.refused == 0 {
				continue
			}
			for _, m := range g.messages {
				var refused *MalformedError
				if err := NewDecoder(classes{}).Decode(m.start, m.data, &Batch{}); !errors.As(err, &refused) || refused.Type != g.view.refused {
					t.Errorf("%d: %q is read: %v", major, m.data, err)
				}
			}
		}
	}
}

func (g golden) count(kind byte) (n int) {
	for _, m := range g.messages {
		if m.data[0] == kind {
			n++
		}
	}
	return n
}

// tags are what kind of row comes first in each update or delete: N new, K key,
// O old.
func (g golden) tags(kind byte) (tags string) {
	for _, m := range g.messages {
		if m.data[0] == kind {
			tags += string(m.data[5])
		}
	}
	return tags
}

// unchanged counts the values that an update left out.
func (g golden) unchanged(t *testing.T) (n int) {
	t.Helper()
	for _, m := range g.messages {
		if m.data[0] != 'U' {
			continue
		}
		message, err := pglogrepl.Parse(m.data)
		if err != nil {
			t.Fatal(err)
		}
		for _, column := range message.(*pglogrepl.UpdateMessage).NewTuple.Columns {
			if column.DataType == pglogrepl.TupleDataTypeToast {
				n++
			}
		}
	}
	return n
}

// columns are the different descriptions of a table, in order.
func (g golden) columns(t *testing.T, table string) string {
	t.Helper()
	var all [][]string
	for _, m := range g.messages {
		if m.data[0] != 'R' {
			continue
		}
		message, err := pglogrepl.Parse(m.data)
		if err != nil {
			t.Fatal(err)
		}
		relation := message.(*pglogrepl.RelationMessage)
		var names []string
		for _, column := range relation.Columns {
			names = append(names, column.Name)
		}
		if relation.RelationName == table && !slices.ContainsFunc(all, func(known []string) bool { return slices.Equal(known, names) }) {
			all = append(all, names)
		}
	}
	return fmt.Sprint(all)
}
