package page

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/cdcpub/cdcpub/slotmon"
)

// historyAnswer is the answer of /page/history, in columns: the value i of each
// belongs to the time i. A null is a gap.
type historyAnswer struct {
	// Cursor is for since in the next request.
	Cursor string `json:"cursor"`
	// Whole: the answer replaces what the page has; else it comes after it.
	Whole    bool               `json:"whole"`
	StepMS   int64              `json:"step_ms"`
	WindowMS int64              `json:"window_ms"`
	AtMS     []int64            `json:"at_ms"` // Unix time
	Verdict  []slotmon.Severity `json:"verdict"`
	Rate     []number           `json:"rate"` // records per second
	P50      []number           `json:"p50"`  // seconds
	P99      []number           `json:"p99"`
	Slots    []slotColumns      `json:"slots"`
	// Hidden counts the slots that have no line because there are too many.
	Hidden int `json:"hidden"`
}

type slotColumns struct {
	Server   string   `json:"server"`
	Slot     string   `json:"slot"`
	Retained []number `json:"retained"` // bytes
	Lag      []number `json:"lag"`
}

// since returns the points after the cursor of an earlier answer, and all if
// the cursor is empty, of another process or older than the ring.
func (h *history) since(cursor string) historyAnswer {
	h.mu.Lock()
	defer h.mu.Unlock()
	oldest := max(0, h.next-capacity)
	from, whole := oldest, true
	if n, ok := h.position(cursor); ok && n >= oldest && n <= h.next {
		from, whole = n, false
	}
	answer := historyAnswer{
		Cursor: fmt.Sprintf("%s.%d", h.id, h.next), Whole: whole,
		StepMS: Step.Milliseconds(), WindowMS: (capacity * Step).Milliseconds(),
		AtMS: []int64{}, Verdict: []slotmon.Severity{},
		Rate: []number{}, P50: []number{}, P99: []number{}, Slots: []slotColumns{}, Hidden: h.hidden,
	}
	for n := from; n < h.next; n++ {
		p := &h.points[n%capacity]
		answer.AtMS = append(answer.AtMS, p.at.UnixMilli())
		answer.Verdict = append(answer.Verdict, p.verdict)
		answer.Rate = append(answer.Rate, p.rate)
		answer.P50 = append(answer.P50, p.p50)
		answer.P99 = append(answer.P99, p.p99)
	}
	for _, s := range h.series {
		columns := slotColumns{s.key.server, s.key.slot, []number{}, []number{}}
		for n := from; n < h.next; n++ {
			columns.Retained = append(columns.Retained, s.retained[n%capacity])
			columns.Lag = append(columns.Lag, s.lag[n%capacity])
		}
		answer.Slots = append(answer.Slots, columns)
	}
	return answer
}

func (h *history) position(cursor string) (n int, ok bool) {
	id, position, _ := strings.Cut(cursor, ".")
	n, err := strconv.Atoi(position)
	return n, err == nil && id == h.id
}

// MarshalJSON writes six digits, which is more than a plot can show, and null
// for a gap.
func (n number) MarshalJSON() ([]byte, error) {
	if !n.known() {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(n), 'g', 6, 64), nil
}

var _ json.Marshaler = number(0)
