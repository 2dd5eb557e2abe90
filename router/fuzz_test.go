package router_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cdcpub/cdcpub/router"
	"github.com/cdcpub/cdcpub/wal"
)

var legalTopic = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

// FuzzRoute: whatever the row and its relation, the outcome is a typed error or
// a record that Kafka and the consumers can take, and the same one again.
func FuzzRoute(f *testing.F) {
	f.Add([]byte{}, "Order", "42", "e-1", `{"a": 1}`, "{}", "2026-11-30 08:17:40+00", int64(0), uint32(timestamptzOID))
	f.Add([]byte{1, 2, 0x83}, "a/b", "", `\x00`, `{"id": null}`, `\xff`, "infinity", int64(1796026660123456789), uint32(byteaOID))
	f.Add([]byte{0x40, 0x91}, "..", "1", "e", "[", "", "0001-01-01 00:00:00+00 BC", int64(-1), uint32(userOID))
	f.Fuzz(func(t *testing.T, shape []byte, kind, key, id, headers, payload, created string, commit int64, oid uint32) {
		config := defaults(func(c *router.Config) {
			c.Columns.Timestamp = router.Column{Name: "created_at", Optional: true}
			c.Topic = "{event_type}{aggregate_type}"
			c.Topics = map[string]string{"Order": "orders"}
		})
		cells := shaped(shape, oid, []cell{text("event_id", id), text("aggregate_type", kind), text("aggregate_id", key),
			text("aggregate_version", "1"), text("event_type", kind), text("payload", payload), text("headers", headers), text("created_at", created)})
		row := rowOf(cells)
		if len(shape) > 20 {
			row.Values = row.Values[:len(row.Values)/2]
		}
		r := newRouter(t, config)
		record, err := r.Route(time.Unix(0, commit), row)
		var e *router.Error
		switch {
		case err == nil:
			checkRecord(t, record)
		case !errors.As(err, &e) || e.Reason == "" || e.Hint == "":
			t.Fatalf("not a full Error: %v", err)
		}
		again, errAgain := r.Route(time.Unix(0, commit), row)
		if (err == nil) != (errAgain == nil) || show(again) != show(record) {
			t.Fatalf("first %s, %v\nagain %s, %v", show(record), err, show(again), errAgain)
		}
	})
}

// shaped renames, nulls, retypes and drops columns as the bytes say: the low
// bits choose the column, the high bits what happens to it.
func shaped(shape []byte, oid uint32, cells []cell) []cell {
	for _, b := range shape {
		if len(cells) == 0 {
			break
		}
		i := int(b&0x1f) % len(cells)
		switch b >> 5 {
		case 0, 1:
			cells[i].oid = oid
		case 2, 3:
			cells[i].value = nil
		case 4:
			cells[i].name += "x"
		case 5:
			cells = append(cells[:i:i], cells[i+1:]...)
		case 6:
			cells = append(cells, cells[i])
		default:
			cells[i].value = []byte{}
		}
	}
	return cells
}

func checkRecord(t *testing.T, record router.Record) {
	t.Helper()
	if !legalTopic.MatchString(record.Topic) || record.Topic == "." || record.Topic == ".." {
		t.Fatalf("illegal topic %q", record.Topic)
	}
	if len(record.Key) == 0 || len(record.EventID) == 0 {
		t.Fatalf("key %q, event id %q", record.Key, record.EventID)
	}
	if first := record.Headers[0]; first.Key != "id" || !bytes.Equal(first.Value, record.EventID) {
		t.Fatalf("first header is %s=%q", first.Key, first.Value)
	}
	for _, h := range record.Headers[1:] {
		if h.Key == "id" {
			t.Fatalf("a second id header %q", h.Value)
		}
	}
	if ms := record.Timestamp.UnixMilli(); ms < 0 || !record.Timestamp.Equal(time.UnixMilli(ms)) {
		t.Fatalf("timestamp %v", record.Timestamp)
	}
}

// FuzzHeaders holds the scanner against encoding/json: the same texts are
// accepted, but for half surrogate pairs, and the same members found.
func FuzzHeaders(f *testing.F) {
	for _, object := range []string{`{}`, `null`, `[1]`, `{"a": "b", "n": 1.10e5, "o": {"x": ["}"]}, "z": null}`,
		`{"a": "\u00fc\ud83d\ude00\\\"", "b": true}`, `{"a": "\ud800"}`, `{"a" : 1 , "a":2}`, "{\"\xff\": \"\xff\"}", `{"a":1,}`} {
		f.Add(object)
	}
	r := newRouter(f, router.Config{
		Columns: router.Columns{EventID: router.Named("i"), AggregateID: router.Named("i"), Payload: router.Named("i"), Headers: router.Named("h")},
		Headers: []router.HeaderColumn{{Header: "id", Column: router.Named("i")}},
		Topic:   "t",
	})
	relation := rowOf([]cell{text("i", ""), text("h", "")}).Relation
	f.Fuzz(func(t *testing.T, object string) {
		record, err := r.Route(commitTime, wal.Row{Relation: relation, Values: [][]byte{[]byte("1"), []byte(object)}})
		want, ok := oracle(object)
		if err != nil {
			var e *router.Error
			if !errors.As(err, &e) {
				t.Fatalf("untyped error %v", err)
			}
			if ok && !hasSpecial(want) {
				t.Fatalf("%q is refused: %v", object, err)
			}
			return
		}
		if !ok {
			t.Fatalf("%q is accepted: %s", object, showHeaders(record.Headers))
		}
		if !utf8.ValidString(object) {
			return
		}
		var expected []router.Header
		for _, h := range want {
			if h.Key != "id" {
				expected = append(expected, h)
			}
		}
		if got, want := showHeaders(record.Headers[1:]), showHeaders(expected); got != want {
			t.Fatalf("%q:\ngot  %s\nwant %s", object, got, want)
		}
	})
}

// oracle reads the members with encoding/json, in order.
func oracle(object string) (headers []router.Header, ok bool) {
	if !json.Valid([]byte(object)) {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(object)))
	open, err := decoder.Token()
	if err != nil || open != json.Delim('{') {
		return nil, err == nil && open == nil
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, false
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return nil, false
		}
		var value any
		if err := json.Unmarshal(raw, &value); err != nil && raw[0] == '"' {
			return nil, false
		}
		header := router.Header{Key: key.(string), Value: raw}
		switch value := value.(type) {
		case string:
			header.Value = []byte(value)
		case nil:
			if string(raw) == "null" {
				header.Value = nil
			}
		}
		headers = append(headers, header)
	}
	return headers, true
}

// hasSpecial says that a refusal may be right although the text is valid: half
// a surrogate pair, which encoding/json replaces, or an id that contradicts.
func hasSpecial(members []router.Header) bool {
	for _, h := range members {
		if h.Key == "id" && (h.Value == nil || string(h.Value) != "1") || bytes.ContainsRune(h.Value, utf8.RuneError) || bytes.ContainsRune([]byte(h.Key), utf8.RuneError) {
			return true
		}
	}
	return false
}
