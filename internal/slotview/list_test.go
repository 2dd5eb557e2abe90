package slotview

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cdcpub/cdcpub/internal/golden"
	"github.com/cdcpub/cdcpub/slotmon"
)

func lists() map[string]*List {
	lost := held()
	lost.Name, lost.Active, lost.Holder, lost.RetainedBytes, lost.WALStatus = "old_reports", false, nil, nil, pointer("lost")
	physical := slotmon.Slot{Name: "standby_1", Type: "physical", Active: true, Holder: &slotmon.Holder{PID: 812, ApplicationName: "walreceiver"}, RetainedBytes: pointer[int64](0), WALStatus: pointer("reserved")}
	unused := slotmon.Slot{Name: "standby_2", Type: "physical"}
	ahead := held()
	ahead.Name, ahead.ConfirmedLagBytes, ahead.Plugin, ahead.Database = "restored", pointer[int64](-5<<20), "test_decoding", "warehouse"
	long := *longNames().Slot
	long.Name = "orders_cdc_production_2"
	hostile := *hostile().Slot
	hostile.Name = "hostile"
	verdicts := map[string]slotmon.Severity{"old_reports": slotmon.Critical, "restored": slotmon.Critical, long.Name: slotmon.Warning}
	list := func(slots ...slotmon.Slot) *List {
		return NewList("db.internal:5432/shop", sample(slots...), "cdcpub", func(name string) slotmon.Report { return slotmon.Report{Verdict: verdicts[name]} })
	}
	longest := *longNames().Slot
	unseen := list(held())
	unseen.Unseen = noRights().Unseen
	return map[string]*List{
		"list": list(held(), lost, ahead, physical, unused), "list_long": list(held(), long, hostile), "list_longest": list(held(), longest),
		"list_empty": list(), "list_unseen": unseen,
	}
}

func TestLists(t *testing.T) {
	for name, list := range lists() {
		text := render(t, func(b *bytes.Buffer) error { return list.Table(b, Style{}) })
		golden.Compare(t, name+".txt", []byte(text))
		if name != "list_longest" { // the name of a slot is never cut
			fitsTerminal(t, text)
		}
		lines := strings.Split(text, "\n")
		for i := range list.Slots {
			if !strings.HasPrefix(lines[i+1], list.Slots[i].Name+" ") || !strings.HasSuffix(lines[i+1], strings.ToUpper(list.Slots[i].Verdict.String())) {
				t.Errorf("%s: line of %s: %q", name, list.Slots[i].Name, lines[i+1])
			}
			if n, head := utf8.RuneCountInString(lines[i+1][:strings.LastIndex(lines[i+1], " ")+1]), strings.Index(lines[0], "VERDICT"); n != head {
				t.Errorf("%s: the verdict is at column %d, its head at %d", name, n, head)
			}
		}
		colored := render(t, func(b *bytes.Buffer) error { return list.Table(b, Style{Color: true}) })
		for _, color := range colors {
			colored = strings.ReplaceAll(colored, "\x1b["+color+"m", "")
		}
		if strings.ReplaceAll(colored, "\x1b[0m", "") != text {
			t.Errorf("%s: color changes the table:\n%s", name, colored)
		}
	}
}

func TestListDocumentKeepsItsNames(t *testing.T) {
	for name, list := range lists() {
		text := render(t, func(b *bytes.Buffer) error { return list.JSON(b) })
		golden.Compare(t, name+".json", []byte(text))
		var document List
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&document); err != nil || len(document.Slots) != len(list.Slots) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
