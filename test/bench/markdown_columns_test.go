package bench

import (
	"strings"
	"testing"
)

// TestTablesHaveAsManyCellsInEachLine: of others a renderer makes no table.
func TestTablesHaveAsManyCellsInEachLine(t *testing.T) {
	r := report{Rounds: 1, Loads: []string{"drain", "steady"}, Results: []result{
		{Load: "drain", Subject: reference, Rows: 1, Seconds: 1}, {Load: "drain", Subject: cdcpub, Rows: 1, Seconds: 1, Allocations: 1},
		{Load: "steady", Subject: cdcpub, Rows: 1, Seconds: 1, Latency: &latency{}, Commit: &latency{}},
	}}
	tables, cells := 0, 0
	for line := range strings.Lines(r.markdown() + "\n" + r.headline()) {
		n := strings.Count(line, "|")
		switch {
		case n > 0 && cells == 0:
			tables++
		case n > 0 && n != cells:
			t.Errorf("%d cells after %d: %s", n-1, cells-1, line)
		}
		cells = n
	}
	if tables != 3 {
		t.Errorf("%d tables, want 3", tables)
	}
}
