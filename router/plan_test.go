package router_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cdcpub/cdcpub/router"
	"github.com/cdcpub/cdcpub/wal"
)

// Which tables are outboxes, the stream has decided; partitions arrive under
// their own names.
func TestRowsOfAnyTableAreRouted(t *testing.T) {
	r := newRouter(t, defaults())
	want := show(mustRoute(t, defaults(), orderCreated()))
	for _, name := range [][2]string{{"public", "outbox"}, {"billing", "events"}, {"parts", "outbox_2026_11"}, {"public", "Outbox"}} {
		record, err := r.Route(commitTime, rowOfTable(name[0], name[1], orderCreated()))
		if err != nil || show(record) != want {
			t.Errorf("%v gives %s, %v", name, show(record), err)
		}
		var e *router.Error
		_, err = r.Route(commitTime, rowOfTable(name[0], name[1], with(orderCreated(), null("aggregate_id"))))
		if !errors.As(err, &e) || e.Table != name[0]+"."+name[1] {
			t.Errorf("a bad row of %v gives %v", name, err)
		}
	}
}

func TestMissingRequiredColumnsAreNamedTogether(t *testing.T) {
	cells := without(without(orderCreated(), "payload"), "aggregate_id")
	e := wantError(t, defaults(), cells, "aggregate_id", "no columns aggregate_id, payload")
	if e.EventID == "" {
		t.Error("the event id is there but not named")
	}
	for _, column := range []string{"event_id", "aggregate_type", "aggregate_id", "aggregate_version", "event_type", "payload"} {
		wantError(t, defaults(), without(orderCreated(), column), column, "no column "+column)
	}
}

func TestCheckFindsWithoutARowWhatRouteFindsWithOne(t *testing.T) {
	r := newRouter(t, defaults(func(c *router.Config) {
		c.Columns.Timestamp = router.Column{Name: "created_at", Optional: true}
	}))
	for name, row := range map[string]wal.Row{
		"good":        rowOf(orderCreated()),
		"missing":     rowOf(without(orderCreated(), "payload")),
		"wrong type":  rowOf(with(orderCreated(), cell{"created_at", int8OID, []byte("1")})),
		"no relation": {},
		"other table": rowOfTable("public", "customers", []cell{text("name", "Ada")}),
	} {
		_, routed := r.Route(commitTime, row)
		checked := r.Check(row.Relation)
		if bad := name != "good"; (routed != nil) != bad || (checked != nil) != bad {
			t.Errorf("%s: Route says %v, Check says %v", name, routed, checked)
		}
		var a, b *router.Error
		if errors.As(routed, &a) {
			if !errors.As(checked, &b) || a.Reason != b.Reason || a.Hint != b.Hint || a.Table != b.Table || a.Column != b.Column {
				t.Errorf("%s: Route says %v, Check says %v", name, routed, checked)
			}
		}
	}
}

func TestMissingOptionalColumnIsAnErrorOnlyWhenConfiguredByName(t *testing.T) {
	if got := showHeaders(mustRoute(t, defaults(), orderCreated()).Headers); strings.Contains(got, "schemaVersion") {
		t.Errorf("headers are %s", got)
	}
	for column, name := range map[string]func(*router.Config){
		"schema_version": func(c *router.Config) { c.Headers[3].Column = router.Named("schema_version") },
		"headers":        func(c *router.Config) { c.Columns.Headers = router.Named("headers") },
		"created_at":     func(c *router.Config) { c.Columns.Timestamp = router.Named("created_at") },
		"tenant":         withHeader("tenant", "tenant"),
		"region":         func(c *router.Config) { c.Topic = "outbox.{region}" },
	} {
		wantError(t, defaults(name), orderCreated(), column, "no column "+column)
	}
}

func TestColumnsThatAreSwitchedOffAreNotNeeded(t *testing.T) {
	config := defaults(func(c *router.Config) {
		c.Headers = c.Headers[:1]
		c.Topic = "orders"
	})
	cells := orderCreated()
	for _, column := range []string{"aggregate_version", "event_type", "aggregate_type"} {
		cells = without(cells, column)
	}
	if got := showHeaders(mustRoute(t, config, cells).Headers); got != `id="3f2504e0-4f89-11d3-9a0c-0305e82c3301"` {
		t.Errorf("headers are %s", got)
	}
}

// A table with exactly the required columns is routed, and lacking any of them
// it is not.
func TestRequiredColumnsAreThoseThatARowNeeds(t *testing.T) {
	for name, test := range map[string]struct {
		config router.Config
		want   []string
	}{
		"defaults": {defaults(), []string{"aggregate_id", "aggregate_type", "aggregate_version", "event_id", "event_type", "payload"}},
		"everything": {defaults(createdAt, withHeader("tenant", "tenant"), func(c *router.Config) {
			c.Topic = "{region}"
			c.Topics = map[string]string{"Order": "orders"}
			c.Columns.Headers = router.Named("meta")
		}), []string{"aggregate_id", "aggregate_type", "aggregate_version", "created_at", "event_id", "event_type", "meta", "payload", "region", "tenant"}},
		"the least": {defaults(func(c *router.Config) {
			c.Topic, c.Headers = "orders", c.Headers[:1]
			c.Columns.Payload = router.Named("event_id")
		}), []string{"aggregate_id", "event_id"}},
		"an optional column of a header in the topic": {defaults(func(c *router.Config) {
			c.Topic = "v{schema_version}"
		}), []string{"aggregate_id", "aggregate_version", "event_id", "event_type", "payload", "schema_version"}},
		"only a map of topics": {defaults(func(c *router.Config) {
			c.Topic, c.Topics = "", map[string]string{"Order": "orders"}
		}), []string{"aggregate_id", "aggregate_type", "aggregate_version", "event_id", "event_type", "payload"}},
	} {
		required := test.config.RequiredColumns()
		if got := slices.Sorted(slices.Values(required)); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
		r := newRouter(t, test.config)
		var cells []cell
		for _, column := range required {
			cells = append(cells, cell{column, timestamptzOID, []byte("1")})
		}
		if err := r.Check(rowOf(cells).Relation); err != nil {
			t.Errorf("%s: with all of them: %v", name, err)
		}
		for _, column := range required {
			if err := r.Check(rowOf(without(cells, column)).Relation); err == nil {
				t.Errorf("%s: %s is not needed", name, column)
			}
		}
	}
}

func TestRowsAroundAnAlterTableAreReadEachByItsOwnRelation(t *testing.T) {
	r := newRouter(t, defaults())
	before := rowOf(orderCreated())
	after := rowOf(append([]cell{text("note", "new first column")}, orderCreated()...))
	for range 2 {
		for _, row := range []wal.Row{before, after} {
			record, err := r.Route(commitTime, row)
			if err != nil || string(record.Key) != "42" {
				t.Fatalf("got %s, %v", show(record), err)
			}
		}
	}
}

func TestManyRelationsDoNotChangeTheOutcome(t *testing.T) {
	r := newRouter(t, defaults())
	want := show(mustRoute(t, defaults(), orderCreated()))
	for i := range 2000 {
		name := "outbox"
		if i%3 == 0 {
			name = fmt.Sprintf("other_%d", i)
		}
		record, err := r.Route(commitTime, rowOfTable("public", name, orderCreated()))
		if err != nil || show(record) != want {
			t.Fatalf("relation %d gives %s, %v", i, show(record), err)
		}
	}
}
