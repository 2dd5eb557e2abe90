package demo

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cdcpub/cdcpub/internal/verify"
)

var paid = verify.Record{
	Topic: "orders", Partition: 1, Offset: 42, Key: []byte("ord-17"), Value: []byte(`{"eur": "62.25", "method": "transfer", "note": "` + strings.Repeat("long ", 20) + `"}`),
	Headers: []verify.Header{
		{Key: "id", Value: []byte("430fe985-3aa9-4e26-a189-b69c30db25eb")},
		{Key: "aggregateVersion", Value: []byte("2")},
		{Key: "eventType", Value: []byte("OrderPaid")},
	},
}

func printed(t *testing.T, look Look, records ...verify.Record) string {
	t.Helper()
	var b strings.Builder
	p := &printer{to: &b, look: look}
	if err := p.print(records); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAPipeGetsEachRecordWholeOnOneLine(t *testing.T) {
	want := "orders[1]@42 key=ord-17 id=430fe985-3aa9-4e26-a189-b69c30db25eb aggregateVersion=2 eventType=OrderPaid " + string(paid.Value) + "\n"
	if got := printed(t, Look{}, paid); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

func TestATombstoneIsNotAnEmptyValue(t *testing.T) {
	if got := printed(t, Look{}, verify.Record{Topic: "orders"}, verify.Record{Topic: "orders", Value: []byte{}}); got != "orders[0]@0 key= NULL\norders[0]@0 key= \n" {
		t.Errorf("%q", got)
	}
}

func TestATerminalLineFitsTheWidth(t *testing.T) {
	for _, width := range []int{100, 120, 200} {
		got := strings.TrimSuffix(printed(t, Look{Width: width}, paid), "\n")
		if n := utf8.RuneCountInString(got); n > width || n < width-1 && width < 200 {
			t.Errorf("%d columns of %d: %s", n, width, got)
		}
	}
}

func TestColourChangesNothingButEscapeSequences(t *testing.T) {
	got := printed(t, Look{Colour: true, Width: 120}, paid)
	for _, code := range append([]string{sgrReset, sgrBold, sgrDim}, keyColours...) {
		got = strings.ReplaceAll(got, code, "")
	}
	if want := printed(t, Look{Width: 120}, paid); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

type broken struct{}

var errBroken = errors.New("broken pipe")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestAFailedWriteIsReported(t *testing.T) {
	if err := (&printer{to: broken{}}).print([]verify.Record{paid}); !errors.Is(err, errBroken) {
		t.Error(err)
	}
}
