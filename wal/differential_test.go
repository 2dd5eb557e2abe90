package wal

import (
	"fmt"
	"testing"

	"github.com/jackc/pglogrepl"
	"pgregory.net/rapid"
)

// byPglogrepl renders a well-formed message as another decoder reads it. It
// has no bounds checks: only for what real servers sent or we built.
func byPglogrepl(t testing.TB, relations map[uint32]*pglogrepl.RelationMessage, start pglogrepl.LSN, data []byte) string {
	t.Helper()
	message, err := pglogrepl.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	switch m := message.(type) {
	case *pglogrepl.RelationMessage:
		relations[m.RelationID] = m
	case *pglogrepl.BeginMessage:
		return fmt.Sprintf("B %s xid %d at %s\n", m.FinalLSN, m.Xid, m.CommitTime.UTC())
	case *pglogrepl.CommitMessage:
		return fmt.Sprintf("C %s at %s\n", m.TransactionEndLSN, m.CommitTime.UTC())
	case *pglogrepl.InsertMessage:
		rel := relations[m.RelationID]
		event := Event{Kind: Insert, LSN: start, Row: Row{Relation: &Relation{Schema: rel.Namespace, Name: rel.RelationName}}}
		if (classes{}).Classify(event.Row.Relation) != Outbox {
			return ""
		}
		out := ""
		for i, c := range m.Tuple.Columns {
			value := c.Data
			if c.DataType == pglogrepl.TupleDataTypeNull {
				value = nil
			}
			event.Row.Values = append(event.Row.Values, value)
			out += fmt.Sprintf("%s %d %d\n", rel.Columns[i].Name, rel.Columns[i].DataType, rel.Columns[i].TypeModifier)
		}
		return render(event) + "\n" + out
	}
	return ""
}

func byUs(t testing.TB, d *Decoder, start pglogrepl.LSN, data []byte) string {
	t.Helper()
	b := &Batch{}
	if err := d.Decode(start, data, b); err != nil {
		t.Fatal(err)
	}
	out := renderAll(b)
	for _, e := range b.Events {
		if e.Kind == Insert {
			for _, c := range e.Row.Relation.Columns {
				out += fmt.Sprintf("%s %d %d\n", c.Name, c.TypeOID, c.Modifier)
			}
		}
	}
	return out
}

func TestGoldensReadTheSameWithAnotherDecoder(t *testing.T) {
	for _, major := range goldenMajors {
		rows := 0
		for _, g := range readGoldens(t, major) {
			if g.view.refused != 0 {
				continue
			}
			d, relations := NewDecoder(classes{}), map[uint32]*pglogrepl.RelationMessage{}
			for _, m := range g.messages {
				want := byPglogrepl(t, relations, m.start, m.data)
				if got := byUs(t, d, m.start, m.data); got != want {
					t.Fatalf("%d, %s: got\n%s\nwant\n%s", major, g.view.name, got, want)
				}
				if m.data[0] == 'I' {
					rows++
				}
			}
		}
		if rows < 30 {
			t.Errorf("version %d: %d rows compared", major, rows)
		}
	}
}

func TestRandomTransactionsReadTheSameWithAnotherDecoder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d, relations := NewDecoder(classes{}), map[uint32]*pglogrepl.RelationMessage{}
		at := pglogrepl.LSN(rapid.Uint64Range(1, 1<<40).Draw(r, "commit"))
		messages := [][]byte{beginMessage(at)}
		for range rapid.IntRange(0, 5).Draw(r, "tables") {
			id := rapid.Uint32().Draw(r, "relation")
			names := rapid.SliceOfN(rapid.StringMatching(`[a-zü_ ]{1,12}`), 1, 20).Draw(r, "columns")
			name := rapid.SampledFrom([]string{"outbox", "outbox_eu", "orders"}).Draw(r, "table")
			messages = append(messages, relationMessage(id, "app", name, names...))
			for range rapid.IntRange(0, 5).Draw(r, "rows") {
				row := make([]column, len(names))
				for i := range row {
					row[i] = rapid.OneOf(rapid.Just(null), rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 300), func(b []byte) column { return column{'t', b} })).Draw(r, "value")
				}
				messages = append(messages, insertMessage(id, row...))
			}
		}
		messages = append(messages, commitMessage(at, at+rapid.SampledFrom([]pglogrepl.LSN{1, 0x30}).Draw(r, "length")))
		for _, m := range messages {
			want := byPglogrepl(t, relations, at, m)
			if got := byUs(t, d, at, m); got != want {
				r.Fatalf("got\n%s\nwant\n%s", got, want)
			}
		}
	})
}
