package verify

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// DefaultHeaders returns the headers of the default configuration, in order:
// id, aggregateVersion, eventType; schemaVersion when column schema_version
// is not NULL; then the members of the JSON object in a column headers, in
// the order in which PostgreSQL prints them. NULL and JSON null are null
// headers, JSON strings are unquoted, other JSON values stay as printed.
// Without Columns only the first three are known.
func DefaultHeaders(r Row) []Header {
	headers := make([]Header, 0, 4)
	headers = append(headers,
		Header{Key: "id", Value: []byte(r.EventID)},
		Header{Key: "aggregateVersion", Value: column(r, "aggregate_version", strconv.FormatInt(r.Version, 10))},
		Header{Key: "eventType", Value: column(r, "event_type", r.EventType)},
	)
	if v := r.Columns["schema_version"]; v != nil {
		headers = append(headers, Header{Key: "schemaVersion", Value: nullable(v)})
	}
	if v := r.Columns["headers"]; v != nil {
		headers = append(headers, spread(*v)...)
	}
	return headers
}

// column prefers what the history shows for the column, which may be NULL.
func column(r Row, name, otherwise string) []byte {
	if v, ok := r.Columns[name]; ok {
		return nullable(v)
	}
	return []byte(otherwise)
}

func nullable(s *string) []byte {
	if s == nil {
		return nil
	}
	return []byte(*s)
}

// spread returns the members of a JSON object in the order of the text. Text
// that is no object gives none: such a row cannot be published, so that any
// record of it differs from the expectation or is in the quarantine.
func spread(object string) []Header {
	d := json.NewDecoder(strings.NewReader(object))
	if start, err := d.Token(); err != nil || start != json.Delim('{') || !json.Valid([]byte(object)) {
		return nil
	}
	var headers []Header
	for d.More() {
		var raw json.RawMessage
		name, err := d.Token()
		if err == nil {
			err = d.Decode(&raw)
		}
		if err != nil {
			return nil
		}
		headers = append(headers, Header{Key: name.(string), Value: memberText(raw)})
	}
	return headers
}

func memberText(raw json.RawMessage) []byte {
	var s string
	switch {
	case bytes.Equal(raw, []byte("null")):
		return nil
	case json.Unmarshal(raw, &s) == nil:
		return []byte(s)
	}
	return raw
}

// matches tells whether a record is exactly what its row makes.
func matches(r Record, row Row, e Expectation) bool {
	return same(e.Key(row), r.Key) &&
		same(e.Value(row), r.Value) &&
		e.Timestamp(row).UnixMilli() == r.Timestamp.UnixMilli() &&
		sameHeaders(e.Headers(row), r.Headers)
}

func sameHeaders(want, got []Header) bool {
	if len(want) != len(got) {
		return false
	}
	for n := range want {
		if want[n].Key != got[n].Key || !same(want[n].Value, got[n].Value) {
			return false
		}
	}
	return true
}

// same keeps null and empty apart: a null value is a tombstone.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }
