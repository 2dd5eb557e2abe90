package wal

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
)

// classes classifies by name: outbox tables, "unknown" ones, and the rest.
type classes struct{}

func (classes) Classify(r *Relation) Class {
	switch {
	case strings.HasPrefix(r.Name, "outbox"):
		return Outbox
	case r.Name == "unknown":
		return Unknown
	}
	return Foreign
}

const rowLSN = 0x1f00

// decoding returns a Decoder that knows three relations; in a transaction
// committed at 0x2000 if open.
func decoding(t testing.TB, open bool) (*Decoder, *Batch) {
	t.Helper()
	d, b := NewDecoder(classes{}), &Batch{}
	messages := [][]byte{
		relationMessage(1, "app", "outbox", "id", "payload", "note"),
		relationMessage(2, "app", "orders", "id", "total"),
		relationMessage(3, "app", "unknown", "id"),
	}
	if open {
		messages = append(messages, beginMessage(0x2000))
	}
	for _, m := range messages {
		if err := d.Decode(0, m, b); err != nil {
			t.Fatal(err)
		}
	}
	b.Release()
	return d, b
}

func TestDecodeOfEveryMessage(t *testing.T) {
	at := time.Date(2000, 1, 1, 0, 0, 1, 0, time.UTC)
	tests := map[string]struct {
		open    bool
		message []byte
		want    string // rendered event, "" for none
	}{
		"begin":                       {false, beginMessage(0x2000), fmt.Sprintf("B 0/2000 xid 733 at %s", at)},
		"commit":                      {true, commitMessage(0x2000, 0x2030), fmt.Sprintf("C 0/2030 at %s", at)},
		"insert":                      {true, insertMessage(1, text("e1"), text(`{"a":1}`), text("x")), `I 0/1f00 app.outbox ["e1" "{\"a\":1}" "x"]`},
		"NULL and empty are not one":  {true, insertMessage(1, null, text(""), null), `I 0/1f00 app.outbox [NULL "" NULL]`},
		"the last value may be empty": {true, insertMessage(1, null, null, text("")), `I 0/1f00 app.outbox [NULL NULL ""]`},
		"foreign insert":              {true, insertMessage(2, text("1"), text("2")), ""},
		"foreign insert with TOAST":   {true, insertMessage(2, column{kind: 'u'}, column{'b', []byte{1}}), ""},
		"update":                      {true, updateMessage(1, 0, nil, []column{text("e1"), {kind: 'u'}, null}), ""},
		"update with old key":         {true, updateMessage(1, 'K', []column{text("e0"), null, null}, []column{text("e1"), null, null}), ""},
		"update with old row":         {true, updateMessage(1, 'O', []column{text("e0"), null, null}, []column{text("e1"), null, null}), ""},
		"delete by key":               {true, deleteMessage(1, 'K', text("e1"), null, null), ""},
		"delete with old row":         {true, deleteMessage(2, 'O', text("1"), text("2")), ""},
		"truncate":                    {true, truncateMessage(3, 1, 2), ""},
		"origin":                      {true, originMessage(0x99, "node_b"), ""},
		"type":                        {true, typeMessage(16999, "app", "mood"), ""},
		"relation":                    {true, relationMessage(5, "", "pg_thing", "c"), ""},
		"relation without columns":    {true, relationMessage(5, "app", "empty"), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, b := decoding(t, test.open)
			if err := d.Decode(rowLSN, test.message, b); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range b.Events {
				got = append(got, render(e))
			}
			if all := strings.Join(got, "\n"); !strings.EqualFold(all, test.want) {
				t.Errorf("got  %s\nwant %s", all, test.want)
			}
			if open := test.message[0] == 'B' || test.open && test.message[0] != 'C'; d.InTransaction() != open {
				t.Errorf("InTransaction %t", d.InTransaction())
			}
		})
	}
}

func render(e Event) string {
	switch e.Kind {
	case Begin:
		return fmt.Sprintf("B %s xid %d at %s", e.LSN, e.XID, e.CommitTime)
	case Commit:
		return fmt.Sprintf("C %s at %s", e.LSN, e.CommitTime)
	case Insert:
		var values []string
		for _, v := range e.Row.Values {
			values = append(values, renderValue(v))
		}
		return fmt.Sprintf("I %s %s [%s]", e.LSN, e.Row.Relation, strings.Join(values, " "))
	}
	return fmt.Sprintf("%d %s", e.Kind, e.LSN)
}

func renderValue(v []byte) string {
	if v == nil {
		return "NULL"
	}
	return fmt.Sprintf("%q", v)
}

// pgoutput describes the types of users before each relation that has them.
func TestAColumnKnowsTheBuiltInTypeOfItsDomain(t *testing.T) {
	d, b := NewDecoder(classes{}), &Batch{}
	feed := func(messages ...[]byte) []Column {
		t.Helper()
		for _, m := range append(messages, beginMessage(0x2000), insertMessage(1, text("e1"), text("2")), commitMessage(0x2000, 0x2030)) {
			if err := d.Decode(rowLSN, m, b); err != nil {
				t.Fatal(err)
			}
		}
		return b.Events[len(b.Events)-2].Row.Relation.Columns
	}
	relation := relationMessage(1, "app", "outbox", "id", "payload")
	oid := feed(relation)[0].TypeOID
	for _, test := range []struct{ schema, name, base string }{
		{"", "bytea", "bytea"}, {"app", "mood", ""}, {"app", "bytea", ""}, {"", "timestamptz", "timestamptz"},
	} {
		// Nothing is known of a type until it is described, and then the last word counts.
		columns := feed(typeMessage(oid, test.schema, test.name), relation)
		if got := columns[0].Base; got != test.base {
			t.Errorf("type %s.%s gives base %q, want %q", test.schema, test.name, got, test.base)
		}
	}
	if err := d.Decode(0, typeMessage(oid, "", "bytea")[:8], b); err == nil {
		t.Error("half a type is taken")
	}
}

func TestASchemaWithoutNameIsPgCatalog(t *testing.T) {
	d, b := decoding(t, true)
	for _, m := range [][]byte{relationMessage(5, "", "outbox_x", "c"), insertMessage(5, text("v"))} {
		if err := d.Decode(rowLSN, m, b); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.Events[0].Row.Relation.Schema; got != "pg_catalog" {
		t.Error(got)
	}
}

// ALTER TABLE within a transaction: rows before and after it are read by
// their own descriptions.
func TestRowsKeepTheRelationTheyWereDecodedWith(t *testing.T) {
	d, b := decoding(t, true)
	for _, m := range [][]byte{
		insertMessage(1, text("e1"), null, null),
		relationMessage(1, "app", "outbox", "id", "payload", "note", "added"),
		insertMessage(1, text("e2"), null, null, text("new")),
	} {
		if err := d.Decode(rowLSN, m, b); err != nil {
			t.Fatal(err)
		}
	}
	first, second := b.Events[0].Row, b.Events[1].Row
	if len(first.Relation.Columns) != 3 || len(first.Values) != 3 || len(second.Relation.Columns) != 4 || string(second.Values[3]) != "new" {
		t.Errorf("%+v, then %+v", first.Relation, second.Relation)
	}
}

func TestMalformedMessagesAreErrors(t *testing.T) {
	with := func(b []byte, more ...byte) []byte { return append(append([]byte(nil), b...), more...) }
	length := func(n uint32) []byte { // an insert whose first value announces n bytes
		m := insertMessage(1, text("abcd"), null, null)
		copy(m[9:], []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
		return m
	}
	tests := map[string]struct {
		open    bool
		message []byte
	}{
		"empty":                               {true, nil},
		"unknown type":                        {true, []byte{'?', 1, 2}},
		"logical message, not asked for":      {true, []byte{'M', 0}},
		"stream start, not asked for":         {true, []byte{'S', 0, 0, 0, 1, 1}},
		"begin within a transaction":          {true, beginMessage(0x3000)},
		"begin without LSN":                   {false, beginMessage(0)},
		"begin with more":                     {false, with(beginMessage(0x2000), 0)},
		"commit outside a transaction":        {false, commitMessage(0x2000, 0x2030)},
		"commit of another transaction":       {true, commitMessage(0x2001, 0x2030)},
		"commit that ends where it begins":    {true, commitMessage(0x2000, 0x2000)},
		"commit that ends before it begins":   {true, commitMessage(0x2000, 0)},
		"insert outside a transaction":        {false, insertMessage(1, null, null, null)},
		"insert into what was not described":  {true, insertMessage(99, null)},
		"insert with an old row":              {true, tuple(append(rowMessage('I', 1), 'O'), null, null, null)},
		"insert with unchanged TOAST":         {true, insertMessage(1, null, column{kind: 'u'}, null)},
		"insert with a binary value":          {true, insertMessage(1, null, column{'b', []byte{1}}, null)},
		"insert with an unknown value":        {true, insertMessage(1, null, column{kind: 'z'}, null)},
		"insert with a column less":           {true, insertMessage(1, null, null)},
		"insert with a column more":           {true, insertMessage(1, null, null, null, null)},
		"insert with a value too long by one": {true, length(5 + 3)},
		"insert with a value of 4 GB":         {true, length(math.MaxUint32)},
		"insert with a value of 2 GB":         {true, length(1 << 31)},
		"insert with a value too short":       {true, length(3)},
		"insert with -1 columns":              {true, append(append(rowMessage('I', 1), 'N'), 0xff, 0xff)},
		"update without a new row":            {true, tuple(append(rowMessage('U', 1), 'K'), null)},
		"update with an unknown tag":          {true, tuple(append(rowMessage('U', 1), 'X'), null)},
		"update with an unknown value":        {true, updateMessage(1, 0, nil, []column{{kind: 'z'}})},
		"delete of a new row":                 {true, deleteMessage(1, 'N', null)},
		"delete outside a transaction":        {false, deleteMessage(1, 'K', null)},
		"truncate that announces more":        {true, truncateMessage(0, 1, 2)[:13]},
		"truncate of 4 billion":               {true, []byte{'T', 0xff, 0xff, 0xff, 0xff, 0}},
		"relation with -1 columns":            {true, with(relationMessage(5, "s", "t")[:len(relationMessage(5, "s", "t"))-2], 0xff, 0xff)},
		"relation with columns missing":       {true, with(relationMessage(5, "s", "t")[:len(relationMessage(5, "s", "t"))-2], 0x7f, 0xff)},
		"string without its end":              {true, append(rowMessage('R', 5), "schema"...)},
	}
	for _, kind := range []byte("bPKrp") {
		tests["two-phase "+string(kind)] = struct {
			open    bool
			message []byte
		}{true, []byte{kind, 0, 0}}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { malformed(t, test.open, test.message) })
	}
}

// Every message is malformed when it is cut short anywhere or has a byte more.
func TestEveryCutIsMalformed(t *testing.T) {
	whole := map[string][]byte{
		"begin": beginMessage(0x2000), "commit": commitMessage(0x2000, 0x2030),
		"insert":         insertMessage(1, text("e1"), null, text("")),
		"foreign insert": insertMessage(2, text("e1"), null),
		"update":         updateMessage(1, 'K', []column{text("a"), null}, []column{text("b"), {kind: 'u'}}),
		"delete":         deleteMessage(1, 'O', text("a"), null),
		"truncate":       truncateMessage(1, 1, 2), "relation": relationMessage(5, "app", "t", "a", "b"),
		"origin": originMessage(7, "node"), "type": typeMessage(7, "app", "mood"),
	}
	for name, message := range whole {
		t.Run(name, func(t *testing.T) {
			open := name != "begin"
			for n := range message {
				malformed(t, open, message[:n])
			}
			malformed(t, open, append(append([]byte(nil), message...), 0))
		})
	}
}

func malformed(t *testing.T, open bool, message []byte) {
	t.Helper()
	d, b := decoding(t, open)
	err := d.Decode(rowLSN, message, b)
	var bad *MalformedError
	if !errors.As(err, &bad) {
		t.Fatalf("% x gives %v", message, err)
	}
	if open && bad.CommitLSN != 0x2000 || bad.LSN != rowLSN || len(bad.Head) > 64 || bad.Cause == nil {
		t.Errorf("%+v", bad)
	}
	if len(message) > 0 && (bad.Type != message[0] || &bad.Head[0] == &message[0]) {
		t.Errorf("type %q, head % x, aliased %t", bad.Type, bad.Head, &bad.Head[0] == &message[0])
	}
	if len(b.Events) > 0 {
		t.Errorf("an event %s besides the error", render(b.Events[0]))
	}
}

func TestARowOfAnUnknownTableStopsAndNamesIt(t *testing.T) {
	for name, message := range map[string][]byte{
		"insert": insertMessage(3, text("x")), "update": updateMessage(3, 0, nil, []column{text("x")}), "delete": deleteMessage(3, 'K', text("x")),
	} {
		d, b := decoding(t, true)
		err := d.Decode(rowLSN, message, b)
		var unknown *UnknownRelationError
		if !errors.As(err, &unknown) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if unknown.Relation.String() != "app.unknown" || unknown.LSN != rowLSN || unknown.CommitLSN != pglogrepl.LSN(0x2000) {
			t.Errorf("%s: %+v", name, unknown)
		}
	}
}
