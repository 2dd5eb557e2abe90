package wal

import (
	"bytes"
	"fmt"
	"testing"
)

func TestDecodedBytesAreCopiesOfTheInput(t *testing.T) {
	for _, size := range []int{1, 100, arenaChunk/4 - 100, arenaChunk / 4, arenaChunk, 3 * arenaChunk} {
		d, b := decoding(t, true)
		value := bytes.Repeat([]byte{'v'}, size)
		message := insertMessage(1, text("e"), column{'t', value}, null)
		if err := d.Decode(rowLSN, message, b); err != nil {
			t.Fatal(err)
		}
		clear(message)
		row := b.Events[0].Row
		if string(row.Values[0]) != "e" || !bytes.Equal(row.Values[1], value) {
			t.Errorf("%d bytes changed with the input", size)
		}
	}
}

func TestRowBytesOutliveReleaseAndLaterRows(t *testing.T) {
	d, b := decoding(t, true)
	var kept [][]byte
	for i := range 5000 {
		if err := d.Decode(rowLSN, insertMessage(1, text(fmt.Sprint("id ", i)), text(fmt.Sprint("value ", i)), null), b); err != nil {
			t.Fatal(err)
		}
		if b.full() {
			for _, e := range b.Events {
				kept = append(kept, e.Row.Values[1])
			}
			b.Release()
		}
	}
	if len(kept) < 4000 {
		t.Fatalf("%d rows", len(kept))
	}
	for i, value := range kept {
		if want := fmt.Sprint("value ", i); string(value) != want {
			t.Fatalf("%q, want %q", value, want)
		}
	}
}

// A value may be appended to without writing over its neighbour.
func TestValuesHaveNoRoomToGrowInto(t *testing.T) {
	d, b := decoding(t, true)
	if err := d.Decode(rowLSN, insertMessage(1, text("a"), text("b"), text("c")), b); err != nil {
		t.Fatal(err)
	}
	values := b.Events[0].Row.Values
	_ = append(values[0], "XXXXXXXXXXXXXXXX"...)
	_ = append(values[:1:1], []byte("Y"))
	if got := fmt.Sprintf("%s", values); got != "[a b c]" {
		t.Error(got)
	}
}

func TestValuesStayWhereTheyAreWhenTheSlabGrows(t *testing.T) {
	d, b := decoding(t, true)
	for i := range maxBatchEvents {
		if err := d.Decode(rowLSN, insertMessage(1, text(fmt.Sprint(i)), null, null), b); err != nil {
			t.Fatal(err)
		}
	}
	for i, e := range b.Events {
		if got := string(e.Row.Values[0]); got != fmt.Sprint(i) || len(e.Row.Values) != 3 {
			t.Fatalf("row %d holds %q", i, got)
		}
	}
}

func TestABatchIsFullByEventsAndByBytes(t *testing.T) {
	d, b := decoding(t, true)
	for !b.full() {
		if err := d.Decode(rowLSN, insertMessage(1, null, null, null), b); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.Events) != maxBatchEvents || b.Bytes != 0 {
		t.Errorf("%d events, %d bytes", len(b.Events), b.Bytes)
	}
	b.Release()
	if len(b.Events) != 0 || b.Bytes != 0 || b.full() {
		t.Errorf("after Release: %d events, %d bytes", len(b.Events), b.Bytes)
	}
	for !b.full() {
		if err := d.Decode(rowLSN, insertMessage(1, text("e"), text(string(make([]byte, 1000))), null), b); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.Events) != b.Bytes/1001 || b.Bytes < maxBatchBytes || b.Bytes > maxBatchBytes+1001 {
		t.Errorf("%d events, %d bytes", len(b.Events), b.Bytes)
	}
}

func TestReleaseForgetsTheRows(t *testing.T) {
	d, b := decoding(t, true)
	if err := d.Decode(rowLSN, insertMessage(1, text("a"), null, null), b); err != nil {
		t.Fatal(err)
	}
	events, values := b.Events[:1], b.Events[0].Row.Values
	b.Release()
	if events[0].Row.Relation != nil || values[0] != nil {
		t.Error("a released batch keeps a row's memory alive")
	}
}

func TestKeepalivesInARowAreOneEvent(t *testing.T) {
	b := &Batch{}
	b.keepalive(5)
	b.keepalive(9)
	b.keepalive(7)
	if len(b.Events) != 1 || b.Events[0].LSN != 9 {
		t.Errorf("%+v", b.Events)
	}
}

func TestARowCostsAlmostNoAllocation(t *testing.T) {
	d, b := decoding(t, true)
	message := insertMessage(1, text("0190b6d4-7c3e-7b1a-8d5e-0123456789ab"), column{'t', bytes.Repeat([]byte{'p'}, 300)}, null)
	const rows = 1000
	per := testing.AllocsPerRun(100, func() {
		for range rows {
			if err := d.Decode(rowLSN, message, b); err != nil {
				t.Fatal(err)
			}
		}
		b.Release()
	})
	if per/rows > 0.02 {
		t.Errorf("%.3f allocations per row", per/rows)
	}
}

func BenchmarkDecode(b *testing.B) {
	d, batch := decoding(b, true)
	message := insertMessage(1, text("0190b6d4-7c3e-7b1a-8d5e-0123456789ab"), column{'t', bytes.Repeat([]byte{'p'}, 308)}, text("2026-11-30 08:00:00.123456+00"))
	b.ReportAllocs()
	b.SetBytes(int64(len(message)))
	for b.Loop() {
		if err := d.Decode(rowLSN, message, batch); err != nil {
			b.Fatal(err)
		}
		if batch.full() {
			batch.Release()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/row")
}
