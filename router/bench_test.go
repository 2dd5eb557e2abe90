package router_test

import (
	"strings"
	"testing"

	"github.com/cdcpub/cdcpub/router"
	"github.com/cdcpub/cdcpub/wal"
)

// benchRows are 1000 rows of the default shape with 300 bytes of payload and a
// hundred aggregate types, as a decoder would hand them over.
func benchRows(extra ...cell) []wal.Row {
	rows := make([]wal.Row, 1000)
	relation := rowOf(with(orderCreated(), extra...)).Relation
	for i := range rows {
		cells := with(orderCreated(), text("aggregate_type", "Order"+strings.Repeat("x", i%100)), text("payload", strings.Repeat("p", 300)))
		rows[i] = rowOf(with(cells, extra...))
		rows[i].Relation = relation
	}
	return rows
}

func withTimestamp(c *router.Config) { c.Columns.Timestamp = router.Named("created_at") }

type shape struct {
	name   string
	config router.Config
	rows   []wal.Row
}

func shapes() []shape {
	return []shape{
		{"default", defaults(), benchRows()},
		{"headers", defaults(), benchRows(cell{"headers", jsonbOID, []byte(`{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tenant": "acme", "retry": 3}`)})},
		{"occurred_at", defaults(), benchRows(cell{"occurred_at", timestamptzOID, []byte("2026-11-30 08:17:40.123456+00")})},
		{"timestamp", defaults(withTimestamp), benchRows(cell{"created_at", timestamptzOID, []byte("2026-11-30 08:17:40.123456+00")})},
		{"bytea", defaults(), benchRows(cell{"payload", byteaOID, []byte(`\x` + strings.Repeat("ab", 300))})},
	}
}

func BenchmarkRoute(b *testing.B) {
	for _, shape := range shapes() {
		b.Run(shape.name, func(b *testing.B) {
			r := newRouter(b, shape.config)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := r.Route(commitTime, shape.rows[i%len(shape.rows)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Amortised over a thousand rows, a record costs a small part of an allocation;
// bytea costs the decoded payload. The number in the headers is checked with a
// pooled scanner, and the race detector empties pools at random.
func TestRoutingHardlyAllocates(t *testing.T) {
	limits := map[string]float64{"default": 0.1, "occurred_at": 0.1, "headers": 0.5, "timestamp": 0.1, "bytea": 1.1}
	for _, shape := range shapes() {
		r := newRouter(t, shape.config)
		perRun := testing.AllocsPerRun(20, func() {
			for _, row := range shape.rows {
				if _, err := r.Route(commitTime, row); err != nil {
					t.Fatal(err)
				}
			}
		})
		if perRow := perRun / float64(len(shape.rows)); perRow > limits[shape.name] {
			t.Errorf("%s: %.3f allocations per row, want at most %.1f", shape.name, perRow, limits[shape.name])
		}
	}
}
