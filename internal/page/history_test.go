package page

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// numbered is a point whose rate is its number.
func numbered(n int, slots ...slotPoint) point {
	return point{at: noon.Add(time.Duration(n) * Step), rate: number(n), p50: gap, p99: gap, slots: slots}
}

func slotNamed(name string, value int) slotPoint {
	return slotPoint{slotKey{"db", name}, number(value), number(value)}
}

func TestPollingPieceByPieceGivesWhatAskingOnceGives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(noon)
		var pieces historyAnswer
		for n := range rapid.IntRange(0, 3*capacity).Draw(t, "points") {
			h.add(numbered(n))
			if rapid.IntRange(0, 40).Draw(t, "poll") > 0 {
				continue
			}
			piece := h.since(pieces.Cursor)
			if piece.Whole {
				pieces.AtMS, pieces.Rate = nil, nil
			}
			pieces.Cursor, pieces.AtMS, pieces.Rate = piece.Cursor, append(pieces.AtMS, piece.AtMS...), append(pieces.Rate, piece.Rate...)
		}
		last := h.since(pieces.Cursor)
		if !last.Whole {
			last.AtMS, last.Rate = append(pieces.AtMS, last.AtMS...), append(pieces.Rate, last.Rate...)
		}
		whole := h.since("")
		if len(whole.AtMS) > capacity || len(last.Rate) < len(whole.Rate) {
			t.Fatalf("%d points, %d at once", len(last.Rate), len(whole.Rate))
		}
		kept := last.Rate[len(last.Rate)-len(whole.Rate):]
		if fmt.Sprint(kept) != fmt.Sprint(whole.Rate) {
			t.Fatalf("piece by piece %v\nat once %v", kept, whole.Rate)
		}
	})
}

func TestTheRingKeepsTheLastHour(t *testing.T) {
	h := newHistory(noon)
	for n := range capacity + 7 {
		h.add(numbered(n))
	}
	answer := h.since("")
	if len(answer.Rate) != capacity || answer.Rate[0] != 7 || answer.Rate[capacity-1] != capacity+6 {
		t.Errorf("%d points from %v to %v", len(answer.Rate), answer.Rate[0], answer.Rate[len(answer.Rate)-1])
	}
	if want := noon.Add(7 * Step).UnixMilli(); answer.AtMS[0] != want {
		t.Errorf("the first is at %d, want %d", answer.AtMS[0], want)
	}
}

func TestACursorOfAnotherProcessOrOfLongAgoGivesEverything(t *testing.T) {
	h := newHistory(noon)
	for n := range capacity + 100 {
		h.add(numbered(n))
	}
	for _, cursor := range []string{
		"", "nonsense", ".", "other.5", h.id, h.id + ".x", h.id + ".-1", h.id + ".99",
		fmt.Sprintf("%s.%d", h.id, capacity+101), newHistory(noon.Add(time.Second)).id + ".200",
	} {
		if answer := h.since(cursor); !answer.Whole || len(answer.AtMS) != capacity {
			t.Errorf("cursor %q: whole %t, %d points", cursor, answer.Whole, len(answer.AtMS))
		}
	}
	if answer := h.since(h.id + ".100"); answer.Whole || len(answer.AtMS) != capacity {
		t.Errorf("the oldest cursor that is still good: whole %t, %d points", answer.Whole, len(answer.AtMS))
	}
	if answer := h.since(h.since("").Cursor); answer.Whole || len(answer.AtMS) != 0 {
		t.Errorf("the newest cursor: whole %t, %d points", answer.Whole, len(answer.AtMS))
	}
}

func TestASlotThatGoesAwayLeavesGapsAndIsForgottenAfterAnHour(t *testing.T) {
	h := newHistory(noon)
	h.add(numbered(0, slotNamed("old", 5), slotNamed("new", 6)))
	h.add(numbered(1, slotNamed("new", 7)))
	answer := h.since("")
	if got := columns(answer); got != "old[5 null] new[6 7]" {
		t.Errorf("%s", got)
	}
	for n := 2; n <= capacity; n++ {
		h.add(numbered(n, slotNamed("new", n)))
	}
	if answer := h.since(""); len(answer.Slots) != 1 || answer.Slots[0].Slot != "new" {
		t.Errorf("%d slots after an hour", len(answer.Slots))
	}
}

func TestAMissedPointIsAGapAlsoWhereTheRingHadAValueAnHourAgo(t *testing.T) {
	h := newHistory(noon)
	for n := range capacity {
		h.add(numbered(n, slotNamed("slot", n)))
	}
	h.add(numbered(capacity))
	h.add(numbered(capacity+1, slotNamed("slot", 1)))
	retained := h.since("").Slots[0].Retained
	if v := retained[capacity-2]; v.known() {
		t.Errorf("the missed point has %v", v)
	}
	if retained[capacity-3] != capacity-1 || retained[capacity-1] != 1 {
		t.Errorf("its neighbours have %v and %v", retained[capacity-3], retained[capacity-1])
	}
}

func TestASlotThatAppearsHasGapsBefore(t *testing.T) {
	h := newHistory(noon)
	for n := range capacity + 3 { // so that its places in the ring were used by others
		h.add(numbered(n, slotNamed("first", n)))
	}
	h.add(numbered(capacity+3, slotNamed("first", 1), slotNamed("second", 2)))
	second := h.since("").Slots[1]
	for i, v := range second.Retained[:capacity-1] {
		if v.known() {
			t.Fatalf("the value %d is %v before the slot was seen", i, v)
		}
	}
	if second.Retained[capacity-1] != 2 {
		t.Errorf("%v", second.Retained[capacity-1])
	}
}

func TestAtMostFiftySlotsHaveLinesAndTheWorstAlwaysOne(t *testing.T) {
	h := newHistory(noon)
	var slots []slotPoint
	for i := range 60 {
		slots = append(slots, slotNamed(fmt.Sprint("slot", i), i))
	}
	h.add(numbered(0, slots...))
	answer := h.since("")
	if len(answer.Slots) != maxSeries || answer.Hidden != 10 {
		t.Fatalf("%d lines, %d hidden", len(answer.Slots), answer.Hidden)
	}
	// The last becomes the worst: it takes the place of the one that falls out.
	worst := append([]slotPoint{slots[59]}, slots[:59]...)
	h.add(numbered(1, worst...))
	answer = h.since("")
	if len(answer.Slots) != maxSeries || answer.Hidden != 10 {
		t.Fatalf("%d lines, %d hidden", len(answer.Slots), answer.Hidden)
	}
	if got := columns(answer); !strings.Contains(got, "slot59[null 59]") || strings.Contains(got, "slot49[") || !strings.Contains(got, "slot48[48 48]") {
		t.Errorf("%s", got)
	}
}

func TestAGapIsNullInJSON(t *testing.T) {
	text, err := json.Marshal([]number{0, gap, 1.5, 123456789, 0.00012345678})
	if want := "[0,null,1.5,1.23457e+08,0.000123457]"; err != nil || string(text) != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
}

// columns is the retained WAL of each slot, compact.
func columns(answer historyAnswer) string {
	var all []string
	for _, s := range answer.Slots {
		text, _ := json.Marshal(s.Retained)
		all = append(all, s.Slot+strings.ReplaceAll(string(text), ",", " "))
	}
	return strings.Join(all, " ")
}
