package router_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/router"
	"github.com/cdcpub/cdcpub/wal"
)

// Type OIDs of pg_type.dat that the tests use.
const (
	byteaOID       = 17
	int8OID        = 20
	int4OID        = 23
	textOID        = 25
	jsonbOID       = 3802
	uuidOID        = 2950
	timestampOID   = 1114
	timestamptzOID = 1184
	userOID        = 16401
)

var commitTime = time.Date(2026, 11, 30, 8, 17, 40, 123456789, time.UTC)

// cell is one column of a table and its value in one row; a nil value is NULL.
type cell struct {
	name  string
	oid   uint32
	value []byte
}

func text(name, value string) cell { return cell{name, textOID, []byte(value)} }

func null(name string) cell { return cell{name, textOID, nil} }

// orderCreated is the row of the wire facts: the common convention without the
// optional columns.
func orderCreated() []cell {
	return []cell{
		{"event_id", uuidOID, []byte("3f2504e0-4f89-11d3-9a0c-0305e82c3301")},
		text("aggregate_type", "Order"),
		{"aggregate_id", int8OID, []byte("42")},
		{"aggregate_version", int4OID, []byte("7")},
		text("event_type", "OrderCreated"),
		{"payload", jsonbOID, []byte(`{"note": null, "items": [], "total": 1.10, "orderId": 42}`)},
	}
}

// with replaces the columns of the same name and appends the others.
func with(cells []cell, changes ...cell) []cell {
	for _, change := range changes {
		replaced := false
		for i := range cells {
			if cells[i].name == change.name {
				cells[i], replaced = change, true
			}
		}
		if !replaced {
			cells = append(cells, change)
		}
	}
	return cells
}

func without(cells []cell, name string) []cell {
	var kept []cell
	for _, c := range cells {
		if c.name != name {
			kept = append(kept, c)
		}
	}
	return kept
}

func rowOf(cells []cell) wal.Row { return rowOfTable("public", "outbox", cells) }

func rowOfTable(schema, name string, cells []cell) wal.Row {
	row := wal.Row{Relation: &wal.Relation{ID: 16385, Schema: schema, Name: name}}
	for _, c := range cells {
		row.Relation.Columns = append(row.Relation.Columns, wal.Column{Name: c.name, TypeOID: c.oid, Modifier: -1})
		row.Values = append(row.Values, c.value)
	}
	return row
}

func defaults(changes ...func(*router.Config)) router.Config {
	config := router.Defaults()
	for _, change := range changes {
		change(&config)
	}
	return config
}

// withHeader adds a header of a column that the table must have.
func withHeader(header, column string) func(*router.Config) {
	return func(c *router.Config) {
		c.Headers = append(c.Headers, router.HeaderColumn{Header: header, Column: router.Named(column)})
	}
}

func newRouter(t testing.TB, config router.Config) *router.Router {
	t.Helper()
	r, err := router.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustRoute(t testing.TB, config router.Config, cells []cell) router.Record {
	t.Helper()
	record, err := newRouter(t, config).Route(commitTime, rowOf(cells))
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// wantError routes a row that cannot be published. The reason must contain all
// the words, and each error must tell the operator what to do.
func wantError(t *testing.T, config router.Config, cells []cell, column string, words ...string) *router.Error {
	t.Helper()
	record, err := newRouter(t, config).Route(commitTime, rowOf(cells))
	var e *router.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %s and error %v, want *router.Error", show(record), err)
	}
	if e.Column != column || e.Table != "public.outbox" || e.Hint == "" {
		t.Errorf("got column %q, table %q, hint %q; want column %q, table public.outbox and a hint", e.Column, e.Table, e.Hint, column)
	}
	for _, word := range words {
		if !strings.Contains(e.Reason, word) {
			t.Errorf("reason %q does not say %q", e.Reason, word)
		}
	}
	return e
}

// show writes a record so that two records look the same only if all their
// bytes are the same and NULL and empty differ.
func show(record router.Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "topic=%s key=%s value=%s time=%d id=%s", record.Topic, quote(record.Key), quote(record.Value), record.Timestamp.UnixNano(), quote(record.EventID))
	b.WriteString(" headers=" + showHeaders(record.Headers))
	return b.String()
}

func showHeaders(headers []router.Header) string {
	var parts []string
	for _, h := range headers {
		parts = append(parts, h.Key+"="+quote(h.Value))
	}
	return strings.Join(parts, " ")
}

func quote(b []byte) string {
	if b == nil {
		return "null"
	}
	return fmt.Sprintf("%q", b)
}

// The bytes are those that Debezium's Outbox Event Router sends with the
// StringConverter, run with this row.
func TestRecordHasTheBytesOfDebeziumWithStringConverter(t *testing.T) {
	record := mustRoute(t, defaults(func(c *router.Config) { c.Topic = "order-events" }), orderCreated())
	want := `topic=order-events key="42" value="{\"note\": null, \"items\": [], \"total\": 1.10, \"orderId\": 42}"` +
		` time=1796026660123000000 id="3f2504e0-4f89-11d3-9a0c-0305e82c3301"` +
		` headers=id="3f2504e0-4f89-11d3-9a0c-0305e82c3301" aggregateVersion="7" eventType="OrderCreated"`
	if got := show(record); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if len(record.Value) != 57 {
		t.Errorf("value has %d bytes, want 57", len(record.Value))
	}
}

func TestNullPayloadIsATombstoneAndAnEmptyOneIsNot(t *testing.T) {
	if record := mustRoute(t, defaults(), with(orderCreated(), null("payload"))); record.Value != nil {
		t.Errorf("NULL gives %q", record.Value)
	}
	for _, payload := range []cell{text("payload", ""), {"payload", byteaOID, []byte(`\x`)}} {
		if record := mustRoute(t, defaults(), with(orderCreated(), payload)); record.Value == nil || len(record.Value) != 0 {
			t.Errorf("payload %q gives %s", payload.value, quote(record.Value))
		}
	}
	if record := mustRoute(t, defaults(), with(orderCreated(), text("payload", "null"))); string(record.Value) != "null" {
		t.Errorf("JSON null gives %s", quote(record.Value))
	}
}

func TestNullOrEmptyIdentityIsUnpublishable(t *testing.T) {
	for _, column := range []string{"event_id", "aggregate_id"} {
		wantError(t, defaults(), with(orderCreated(), null(column)), column, column, "NULL")
		wantError(t, defaults(), with(orderCreated(), text(column, "")), column, column, "empty")
		wantError(t, defaults(), with(orderCreated(), cell{column, byteaOID, []byte(`\x`)}), column, column, "empty")
	}
}

func TestErrorNamesTableColumnEventAndNextStep(t *testing.T) {
	e := wantError(t, defaults(), with(orderCreated(), null("aggregate_id")), "aggregate_id")
	want := "cannot publish event 3f2504e0-4f89-11d3-9a0c-0305e82c3301 of table public.outbox: column aggregate_id is NULL; next step: " +
		"change the configuration so that the row can be published; to give the row up knowingly, see README, 'A row that cannot be published'"
	if e.Error() != want {
		t.Errorf("got  %s\nwant %s", e, want)
	}
	e = wantError(t, defaults(), with(orderCreated(), null("event_id")), "event_id")
	if want := "cannot publish a row of table public.outbox: column event_id is NULL; "; !strings.HasPrefix(e.Error(), want) {
		t.Errorf("got %s, want prefix %s", e, want)
	}
}

func TestErrorStaysOneShortLineWhateverTheRowHolds(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	for name, cells := range map[string][]cell{
		"huge event id":       with(orderCreated(), text("event_id", huge), null("aggregate_id")),
		"huge aggregate type": with(orderCreated(), text("aggregate_type", huge)),
		"line feed in id":     with(orderCreated(), text("event_id", "a\nb"), null("aggregate_id")),
		"huge header name":    with(orderCreated(), text("headers", `{"`+huge+`": 1,}`)),
	} {
		_, err := newRouter(t, defaults()).Route(commitTime, rowOf(cells))
		if err == nil || len(err.Error()) > 2000 || strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("%s: error of %d bytes: %.300q", name, len(fmt.Sprint(err)), fmt.Sprint(err))
		}
	}
}

func TestRowThatDoesNotFitItsRelationIsAnError(t *testing.T) {
	row := rowOf(orderCreated())
	row.Values = row.Values[:3]
	for name, row := range map[string]wal.Row{"too few values": row, "no relation": {}} {
		var e *router.Error
		if _, err := newRouter(t, defaults()).Route(commitTime, row); !errors.As(err, &e) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
