package router_test

import (
	"bytes"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"weak"

	"pgregory.net/rapid"

	"github.com/cdcpub/cdcpub/router"
	"github.com/cdcpub/cdcpub/wal"
)

func routed(r *router.Router, row wal.Row) string {
	record, err := r.Route(commitTime, row)
	if err != nil {
		return "error " + err.Error()
	}
	return show(record)
}

// rows draws rows of the full convention, good and bad ones.
func rows() *rapid.Generator[[]cell] {
	word := rapid.OneOf(rapid.StringMatching(`[a-z]{1,8}`), rapid.String())
	object := rapid.OneOf(
		rapid.SampledFrom([]string{`{}`, `null`, `[]`, `{"id": "x"}`, `{"a": {"b": [1, 2]}, "c": "\u00e4"}`}),
		rapid.Map(rapid.StringMatching(`[a-z]{1,4}`), func(name string) string { return `{"` + name + `": "` + name + `"}` }),
	)
	return rapid.Custom(func(t *rapid.T) []cell {
		var cells []cell
		for _, name := range []string{"event_id", "aggregate_type", "aggregate_id", "aggregate_version", "event_type", "payload", "schema_version"} {
			cells = append(cells, text(name, word.Draw(t, name)))
		}
		cells = append(cells, text("headers", object.Draw(t, "headers")))
		for i := range cells {
			if rapid.IntRange(0, 9).Draw(t, "null") == 0 {
				cells[i].value = nil
			}
		}
		return cells
	})
}

// A router that has seen other rows, and so has other caches, and one that
// starts from nothing make the same bytes: the bytes before and after a crash.
func TestRepeatsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := defaults(func(c *router.Config) {
			c.Topic = rapid.SampledFrom([]string{"orders", "outbox.{aggregate_type}", "{event_type}.{aggregate_type}"}).Draw(t, "topic")
			c.Topics = map[string]string{"order": "orders", "a": "as"}
		})
		warm := newRouterOf(t, config)
		table := rapid.SliceOfN(rows(), 1, 20).Draw(t, "rows")
		var first []string
		for _, cells := range table {
			first = append(first, routed(warm, rowOf(cells)))
		}
		for i, cells := range table {
			row := rowOf(cells)
			before := rowOf(cells)
			for j, value := range row.Values {
				before.Values[j] = bytes.Clone(value)
			}
			for _, again := range []string{routed(warm, row), routed(newRouterOf(t, config), row)} {
				if again != first[i] {
					t.Fatalf("first %s\nagain %s", first[i], again)
				}
			}
			for j := range row.Values {
				if !bytes.Equal(row.Values[j], before.Values[j]) {
					t.Fatalf("Route changed value %d of the row", j)
				}
			}
		}
	})
}

func newRouterOf(t *rapid.T, config router.Config) *router.Router {
	r, err := router.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRecordsStayAsTheyWereWhileOthersAreRouted(t *testing.T) {
	r := newRouter(t, defaults())
	var records []router.Record
	var want []string
	for i := range 5000 {
		n := strconv.Itoa(i)
		cells := with(orderCreated(), text("event_id", n), text("aggregate_version", n), text("aggregate_type", "T"+n))
		if i%3 == 0 {
			cells = with(cells, text("headers", `{"h`+n+`": `+n+`, "x": "`+n+`"}`))
		}
		row := rowOf(cells)
		record, err := r.Route(commitTime, row)
		if err != nil || record.Topic != "outbox.event.T"+n {
			t.Fatalf("got %s, %v", show(record), err)
		}
		// The Values slice belongs to the batch and is used again.
		want = append(want, show(record))
		clear(row.Values)
		records = append(records, record)
	}
	for i, record := range records {
		// Whoever appends a header must not write into the next record.
		_ = append(record.Headers, router.Header{Key: "appended"})
		if got := show(record); got != want[i] {
			t.Fatalf("record %d was %s and is %s", i, want[i], got)
		}
	}
}

func TestRecordWithManyHeadersIsWhole(t *testing.T) {
	r := newRouter(t, defaults())
	for _, count := range []int{1, 13, 14, 60, 61, 62, 100, 1000, 2} {
		var object []byte
		for i := range count {
			object = append(object, `,"h`+strconv.Itoa(i)+`":`+strconv.Itoa(i)...)
		}
		object[0] = '{'
		object = append(object, '}')
		record, err := r.Route(commitTime, rowOf(with(orderCreated(), cell{"headers", jsonbOID, object})))
		if err != nil || len(record.Headers) != count+3 {
			t.Fatalf("%d members give %d headers, %v", count, len(record.Headers), err)
		}
		for i, h := range record.Headers[3:] {
			if h.Key != "h"+strconv.Itoa(i) || string(h.Value) != strconv.Itoa(i) {
				t.Fatalf("header %d is %s=%s", i, h.Key, h.Value)
			}
		}
	}
}

func TestOldRelationsAreForgotten(t *testing.T) {
	r := newRouter(t, defaults())
	var relations []weak.Pointer[wal.Relation]
	for range 2000 {
		row := rowOf(orderCreated())
		relations = append(relations, weak.Make(row.Relation))
		if _, err := r.Route(commitTime, row); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	alive := slices.DeleteFunc(relations, func(p weak.Pointer[wal.Relation]) bool { return p.Value() == nil })
	if len(alive) > 256 {
		t.Errorf("%d relations are held", len(alive))
	}
	runtime.KeepAlive(r)
}

// A record that waits for its broker must not keep the rows around it alive,
// or memory would grow with what was acknowledged long ago.
func TestRecordThatWaitsHoldsLittleOfItsNeighbours(t *testing.T) {
	const limit = 32 << 10
	for _, size := range []int{200, 2000, 3800, 20_000, 1 << 20} {
		r := newRouter(t, defaults())
		var buffers []weak.Pointer[byte]
		var waiting router.Record
		count := min(2000, 100<<20/size)
		for i := range count {
			row := rowInOneBuffer(size)
			buffers = append(buffers, weak.Make(&row.Values[0][0]))
			record, err := r.Route(commitTime, row)
			if err != nil {
				t.Fatal(err)
			}
			if i == count/2 {
				waiting = record
			}
		}
		runtime.GC()
		alive := slices.DeleteFunc(buffers, func(p weak.Pointer[byte]) bool { return p.Value() == nil })
		if held := (len(alive) - 1) * size; held > limit {
			t.Errorf("rows of %d bytes: one record and the router hold %d others, %d bytes", size, len(alive)-1, held)
		}
		runtime.KeepAlive(waiting)
		runtime.KeepAlive(r)
	}
}

// rowInOneBuffer lays the values out as a decoder does: one buffer per row.
func rowInOneBuffer(size int) wal.Row {
	cells := orderCreated()
	cells[5].value = bytes.Repeat([]byte("x"), size)
	row := rowOf(cells)
	buffer := make([]byte, 0, size+256)
	for i, value := range row.Values {
		start := len(buffer)
		buffer = append(buffer, value...)
		row.Values[i] = buffer[start:len(buffer):len(buffer)]
	}
	return row
}
