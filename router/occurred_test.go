package router_test

import (
	"slices"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/router"
)

func TestOccurredAtIsReadInMicroseconds(t *testing.T) {
	at := time.Date(2026, 11, 30, 8, 17, 40, 123456000, time.UTC).UnixMicro()
	for _, test := range []struct {
		oid  uint32
		text string
		want int64
	}{
		{timestamptzOID, "2026-11-30 08:17:40.123456+00", at},
		{timestamptzOID, "2026-11-30 13:47:40.123456+05:30", at},
		{timestampOID, "2026-11-30 08:17:40.123456", at},
		{timestamptzOID, "1970-01-01 00:00:00.000001+00", 1},
	} {
		record := mustRoute(t, defaults(), with(orderCreated(), cell{"occurred_at", test.oid, []byte(test.text)}))
		if record.OccurredAt != test.want {
			t.Errorf("%s gives %d, want %d", test.text, record.OccurredAt, test.want)
		}
	}
}

// It is only measured, so whatever it holds the row goes out as it would
// without it.
func TestOccurredAtNeverChangesNorStopsARecord(t *testing.T) {
	want := show(mustRoute(t, defaults(), orderCreated()))
	for _, c := range []cell{
		{"occurred_at", timestamptzOID, nil},
		{"occurred_at", timestamptzOID, []byte("infinity")},
		{"occurred_at", timestamptzOID, []byte("-infinity")},
		{"occurred_at", timestamptzOID, []byte("1969-12-31 23:59:59+00")},
		{"occurred_at", timestamptzOID, []byte("0044-03-15 00:00:00+00 BC")},
		{"occurred_at", timestamptzOID, []byte("294276-12-31 23:59:59.999999+00")}, // beyond int64 microseconds
		{"occurred_at", timestamptzOID, []byte("Mon Nov 30 08:17:40 2026 UTC")},
		{"occurred_at", timestamptzOID, []byte("2026-11-30 08:17:40")},
		{"occurred_at", timestampOID, []byte("")},
		{"occurred_at", int8OID, []byte("1796026660123")},
		{"occurred_at", textOID, []byte("2026-11-30 08:17:40+00")},
		text("another_column", "x"),
	} {
		for name, config := range map[string]router.Config{
			"convention": defaults(),
			"named":      defaults(func(c *router.Config) { c.Columns.OccurredAt = router.Named("occurred_at") }),
		} {
			record := mustRoute(t, config, with(orderCreated(), c))
			if record.OccurredAt != 0 || show(record) != want {
				t.Errorf("%s: %s %q gives %d, %s", name, c.name, c.value, record.OccurredAt, show(record))
			}
		}
	}
}

func TestOccurredAtIsRequiredOfATableOnlyWhenItIsNamed(t *testing.T) {
	if required := defaults().RequiredColumns(); slices.Contains(required, "occurred_at") {
		t.Errorf("by convention: %q", required)
	}
	named := defaults(func(c *router.Config) { c.Columns.OccurredAt = router.Named("happened") })
	if required := named.RequiredColumns(); !slices.Contains(required, "happened") {
		t.Errorf("named: %q", required)
	}
	unused := defaults(func(c *router.Config) { c.Columns.OccurredAt = router.Column{} })
	if required := unused.RequiredColumns(); slices.Contains(required, "") {
		t.Errorf("unused: %q", required)
	}
}
