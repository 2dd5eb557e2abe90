package wal

import (
	"bytes"
	"errors"
	"testing"
)

// FuzzDecode feeds one message to a Decoder that knows some relations. It must
// never panic, and what it accepts must make sense.
func FuzzDecode(f *testing.F) {
	for _, major := range goldenMajors {
		for _, g := range readGoldens(f, major) {
			for _, m := range g.messages {
				if len(m.data) < 4096 {
					f.Add(true, m.data)
					f.Add(false, m.data)
				}
			}
		}
	}
	f.Add(true, insertMessage(1, text("e1"), null, text("")))
	f.Add(true, commitMessage(0x2000, 0x2030))
	f.Add(true, updateMessage(1, 'O', []column{text("a"), null, null}, []column{text("a"), {kind: 'u'}, null}))
	f.Add(true, insertMessage(3, text("a row of an unknown table")))
	f.Fuzz(func(t *testing.T, open bool, message []byte) {
		d, b := decoding(t, open)
		input := append([]byte(nil), message...)
		err := d.Decode(rowLSN, input, b)
		if err != nil {
			var bad *MalformedError
			var unknown *UnknownRelationError
			if !errors.As(err, &bad) && !errors.As(err, &unknown) {
				t.Fatalf("%T", err)
			}
			if len(b.Events) > 0 || err.Error() == "" {
				t.Fatal("an event besides an error, or an error without words")
			}
			return
		}
		if !bytes.Equal(input, message) {
			t.Fatal("the input was written to")
		}
		consistent(t, open, d, b, message)
		before := renderAll(b)
		for i := range input {
			input[i] ^= 0xff
		}
		if renderAll(b) != before {
			t.Fatal("an event changed with the input")
		}
	})
}

// consistent checks what was made of one accepted message.
func consistent(t *testing.T, open bool, d *Decoder, b *Batch, message []byte) {
	t.Helper()
	if len(b.Events) > 1 {
		t.Fatalf("%d events of one message", len(b.Events))
	}
	now := open
	for _, e := range b.Events {
		switch e.Kind {
		case Begin:
			now = true
			if open || e.LSN == 0 {
				t.Fatal(render(e))
			}
		case Commit:
			now = false
			if !open || e.LSN <= 0x2000 {
				t.Fatal(render(e))
			}
		case Insert:
			size := 0
			for _, v := range e.Row.Values {
				size += len(v)
			}
			if !open || e.LSN != rowLSN || len(e.Row.Values) != len(e.Row.Relation.Columns) || size != b.Bytes || size > len(message) {
				t.Fatal(render(e))
			}
		default:
			t.Fatalf("kind %d", e.Kind)
		}
	}
	if d.InTransaction() != now {
		t.Fatalf("InTransaction %t after %s", d.InTransaction(), renderAll(b))
	}
}

func renderAll(b *Batch) string {
	out := ""
	for _, e := range b.Events {
		out += render(e) + "\n"
	}
	return out
}
