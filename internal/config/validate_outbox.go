package config

import (
	"fmt"
	"slices"
	"strings"
)

func (v *validator) outbox(o *Outbox) {
	v.required("outbox.tables", len(o.Tables) == 0, "[public.outbox]")
	seen := map[Table]bool{}
	for i, table := range o.Tables {
		path := fmt.Sprintf("outbox.tables[%d]", i)
		switch {
		case table.Schema == "" || table.Name == "":
			v.fail(path, errTable.Error())
		case seen[table]:
			v.fail(path, fmt.Sprintf("%s is listed twice", table))
		case strings.HasPrefix(table.Schema, "pg_temp"):
			v.fail(path, fmt.Sprintf("%s is a temporary table, whose rows never reach the WAL; name a permanent one", table))
		}
		seen[table] = true
	}
	v.columns(&o.Columns)
	v.headers(o.Headers)
	if oneOf(v, "outbox.preset", o.Preset, PresetNone, PresetDebezium) {
		v.eventIDHeader(o)
	}
}

func (v *validator) headers(headers Headers) {
	seen := map[string]bool{}
	for _, h := range headers {
		path := join("outbox.headers", printable(h.Name))
		switch {
		case h.Name == "":
			v.fail("outbox.headers", "a header needs a name")
		case seen[h.Name]:
			v.fail(path, "is stated twice")
		case h.Column == "":
			v.fail(path, "names no column")
		default:
			v.identifier(path, h.Column)
		}
		seen[h.Name] = true
	}
}

// eventIDHeader reports that consumers could not recognise repeats.
func (v *validator) eventIDHeader(o *Outbox) {
	eventID := o.Columns.EventID
	carries := slices.ContainsFunc(o.Headers, func(h Header) bool { return h.Column == eventID })
	if !carries && eventID != "" && !v.unread {
		v.fail("outbox.headers", fmt.Sprintf("none carries the event id (column %q), by which consumers recognise repeats; "+
			"add one with that column, for example id", eventID), "outbox.columns.event_id", "outbox.preset")
	}
}

func (v *validator) columns(columns *Columns) {
	for _, f := range leaves(columns, "outbox.columns") {
		v.identifier(f.path, f.value.String())
	}
	v.required("outbox.columns.event_id", columns.EventID == "", "event_id")
	v.required("outbox.columns.aggregate_id", columns.AggregateID == "", "aggregate_id")
	v.required("outbox.columns.payload", columns.Payload == "", "payload")
}
