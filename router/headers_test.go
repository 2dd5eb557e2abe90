package router_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/router"
)

const idHeader = `id="3f2504e0-4f89-11d3-9a0c-0305e82c3301" aggregateVersion="7" eventType="OrderCreated"`

func TestHeadersComeInOrder(t *testing.T) {
	config := defaults(withHeader("tenant", "tenant"), withHeader("event_id", "event_id"))
	cells := with(orderCreated(), text("headers", `{"b": "x", "a": "y"}`), text("tenant", "acme"), text("schema_version", "3"))
	want := idHeader + ` schemaVersion="3" tenant="acme" event_id="3f2504e0-4f89-11d3-9a0c-0305e82c3301" b="x" a="y"`
	if got := showHeaders(mustRoute(t, config, cells).Headers); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestStatedHeadersReplaceAllOfTheDefaults(t *testing.T) {
	config := defaults(func(c *router.Config) {
		c.Headers = []router.HeaderColumn{
			{Header: "kind", Column: router.Named("event_type"), OmitNull: true},
			{Header: "event_id", Column: router.Named("event_id")},
			{Header: "region", Column: router.Column{Name: "region", Optional: true}},
			{Header: "id", Column: router.Named("aggregate_version")},
		}
	})
	cells := with(orderCreated(), text("headers", `{"schemaVersion": 2, "eventType": "free"}`))
	want := `kind="OrderCreated" event_id="3f2504e0-4f89-11d3-9a0c-0305e82c3301" id="7" schemaVersion="2" eventType="free"`
	record := mustRoute(t, config, cells)
	if got := showHeaders(record.Headers); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := string(record.EventID); got != "3f2504e0-4f89-11d3-9a0c-0305e82c3301" {
		t.Errorf("the event id is %q", got)
	}

	cells = with(orderCreated(), null("event_type"), null("region"))
	want = `event_id="3f2504e0-4f89-11d3-9a0c-0305e82c3301" region=null id="7"`
	if got := showHeaders(mustRoute(t, config, cells).Headers); got != want {
		t.Errorf("with NULL: got %s\nwant %s", got, want)
	}
	wantError(t, config, with(orderCreated(), null("event_id")), "event_id", "NULL")
	wantError(t, config, with(orderCreated(), text("headers", `{"event_id": "other"}`)), "headers", "event_id", "contradicts")
	wantError(t, config, without(orderCreated(), "aggregate_version"), "aggregate_version", "no column aggregate_version")
}

func TestNullColumnGivesANullHeaderExceptSchemaVersion(t *testing.T) {
	config := defaults(withHeader("tenant", "tenant"))
	cells := with(orderCreated(), null("aggregate_version"), null("event_type"), null("schema_version"), null("tenant"), null("headers"))
	want := `id="3f2504e0-4f89-11d3-9a0c-0305e82c3301" aggregateVersion=null eventType=null tenant=null`
	if got := showHeaders(mustRoute(t, config, cells).Headers); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	cells = with(cells, text("event_type", ""), text("schema_version", ""))
	want = `id="3f2504e0-4f89-11d3-9a0c-0305e82c3301" aggregateVersion=null eventType="" schemaVersion="" tenant=null`
	if got := showHeaders(mustRoute(t, config, cells).Headers); got != want {
		t.Errorf("empty is not NULL: got %s\nwant %s", got, want)
	}
}

func TestMembersOfTheHeadersObjectBecomeHeaders(t *testing.T) {
	for object, want := range map[string]string{
		`{}`:                                   ``,
		` { } `:                                ``,
		`null`:                                 ``,
		`{"a": "b"}`:                           `a="b"`,
		`{"a":"b","c":""}`:                     `a="b" c=""`,
		`{"a": null}`:                          `a=null`,
		`{"a": "null"}`:                        `a="null"`,
		`{"n": 1.10, "e": -1E+5}`:              `n="1.10" e="-1E+5"`,
		`{"n": 12345678901234567890}`:          `n="12345678901234567890"`,
		`{"t": true, "f": false}`:              `t="true" f="false"`,
		`{"o": {"k": [1, "}"]}, "l": ["\"]"]}`: `o="{\"k\": [1, \"}\"]}" l="[\"\\\"]\"]"`,
		`{"a": "q\"b\\s\/\b\f\n\r\t"}`:         `a="q\"b\\s/\b\f\n\r\t"`,
		`{"a": "\u00fc\u20AC\ud83d\ude00 ü😀"}`: `a="ü€😀 ü😀"`,
		`{"\u006b": 1, "": 2}`:                 `k="1" ="2"`,
		`{"a": 1, "a": 2}`:                     `a="1" a="2"`,
		"{\"a\"\t:\n1\r,\"b\": 2 }\n":          `a="1" b="2"`,
		`{"id": "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "aggregateVersion": 7, "a": 1}`: `a="1"`,
		`{"schemaVersion": 4}`: `schemaVersion="4"`,
	} {
		got := showHeaders(mustRoute(t, defaults(), with(orderCreated(), text("headers", object))).Headers)
		if want := strings.TrimSpace(idHeader + " " + want); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", object, got, want)
		}
	}
}

func TestHeadersThatAreNoObjectAreUnpublishable(t *testing.T) {
	for _, object := range []string{`[]`, `[{"a": 1}]`, `"a"`, `1`, `true`} {
		wantError(t, defaults(), with(orderCreated(), text("headers", object)), "headers", "not a JSON object")
	}
	for _, object := range []string{
		``, ` `, `{`, `{"a"`, `{"a"}`, `{"a":}`, `{"a": 1`, `{"a": 1,}`, `{,}`, `{"a": 1} x`, `{} {}`, `{a: 1}`, `{'a': 1}`,
		`{"a": 01}`, `{"a": +1}`, `{"a": .5}`, `{"a": NaN}`, `{"a": nul}`, `{"a": tru e}`, `{"a": [1}`, `{"a": {]}`, `{"a": [1,]}`,
		`{"a": "x}`, `{"a": "\x"}`, `{"a": "\u12"}`, `{"a": "\ud800"}`, `{"a": "\ud800\u0041"}`, `{"a": "\udc00"}`, "{\"a\": \"\n\"}",
		`{"a": "\`, `{"a": "\"}`, `{"a" 1}`, `{"a": 1 "b": 2}`, `"key"=>"hstore"`, `nul`,
	} {
		wantError(t, defaults(), with(orderCreated(), text("headers", object)), "headers", "not valid JSON")
	}
}

func TestMemberMustNotContradictAColumn(t *testing.T) {
	for _, object := range []string{`{"id": "other"}`, `{"a": 1, "eventType": null}`, `{"aggregateVersion": 8}`, `{"\u0069d": ""}`} {
		wantError(t, defaults(), with(orderCreated(), text("headers", object)), "headers", "contradicts")
	}
	cells := with(orderCreated(), null("event_type"), text("headers", `{"eventType": ""}`))
	wantError(t, defaults(), cells, "headers", "eventType", "contradicts")
	cells = with(orderCreated(), null("event_type"), text("headers", `{"eventType": null}`))
	mustRoute(t, defaults(), cells)
}

func TestByteaIsDecodedWhereverItGoes(t *testing.T) {
	config := defaults(withHeader("trace", "trace"))
	bytea := func(name, value string) cell { return cell{name, byteaOID, []byte(value)} }
	cells := with(orderCreated(), bytea("event_id", `\x0aFf`), bytea("aggregate_id", `\x00`), bytea("payload", `\x0000000001beef`), bytea("trace", `\x`))
	want := `topic=outbox.event.Order key="\x00" value="\x00\x00\x00\x00\x01\xbe\xef" time=1796026660123000000 id="\n\xff"` +
		` headers=id="\n\xff" aggregateVersion="7" eventType="OrderCreated" trace=""`
	if got := show(mustRoute(t, config, cells)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := mustRoute(t, config, with(cells, cell{"payload", byteaOID, nil}, cell{"trace", byteaOID, nil})); got.Value != nil || got.Headers[3].Value != nil {
		t.Errorf("NULL bytea gives %s", show(got))
	}
}

func TestADomainIsReadAsWhatItIsOver(t *testing.T) {
	config := defaults(func(c *router.Config) { c.Columns.Timestamp = router.Named("at") })
	// "" is a type of a user's own, or a domain over one.
	for base, want := range map[string]string{"bytea": "\x01\x02", "text": `\x0102`, "": `\x0102`} {
		row := rowOf(with(orderCreated(), cell{"payload", userOID, []byte(`\x0102`)}, cell{"at", timestamptzOID, nil}))
		row.Relation.Columns[5].Base = base
		got, err := newRouter(t, config).Route(commitTime, row)
		if err != nil || string(got.Value) != want {
			t.Errorf("payload over %q: %v, %v", base, show(got), err)
		}
	}
	for base, text := range map[string]string{"timestamptz": "2026-11-30 08:17:40.123+01", "timestamp": "2026-11-30 07:17:40.123"} {
		row := rowOf(with(orderCreated(), cell{"at", userOID, []byte(text)}))
		row.Relation.Columns[6].Base = base
		got, err := newRouter(t, config).Route(commitTime, row)
		if want := time.Date(2026, 11, 30, 7, 17, 40, 123e6, time.UTC); err != nil || !got.Timestamp.Equal(want) {
			t.Errorf("timestamp over %q: %v, %v", base, show(got), err)
		}
	}
	row := rowOf(with(orderCreated(), cell{"at", userOID, []byte("2026-11-30 08:17:40+00")}))
	row.Relation.Columns[6].Base = "text"
	if err := newRouter(t, config).Check(row.Relation); err == nil {
		t.Error("a domain over text is taken for a timestamp")
	}
}

func TestTextThatIsNotUTF8IsUnpublishable(t *testing.T) {
	config := defaults(withHeader("trace", "trace"))
	cells := with(orderCreated(), text("trace", "ü"), text("headers", `{"a": "ü"}`))
	mustRoute(t, config, cells)
	for _, column := range []string{"event_id", "aggregate_id", "payload", "trace", "event_type", "headers"} {
		broken := with(slices.Clone(cells), text(column, "{\"a\": \"ü\xfc\"}"))
		wantError(t, config, broken, column, "is not UTF-8: byte 0xfc at offset 9")
	}
	if got := mustRoute(t, config, with(cells, cell{"payload", byteaOID, []byte(`\xfc`)})); string(got.Value) != "\xfc" {
		t.Errorf("bytea: %s", show(got))
	}
}

func TestByteaNotInHexFormatIsUnpublishable(t *testing.T) {
	for _, value := range []string{``, `\`, `x00`, `\y00`, `\x0`, `\xzz`, `\000\001`, `{"a": 1}`} {
		wantError(t, defaults(), with(orderCreated(), cell{"payload", byteaOID, []byte(value)}), "payload", "hex format")
	}
	e := wantError(t, defaults(), with(orderCreated(), cell{"event_id", byteaOID, []byte(`\x0102`)}, null("aggregate_id")), "aggregate_id")
	if e.EventID != `\x0102` {
		t.Errorf("the error names %q, not the text that finds the row", e.EventID)
	}
}
