package router_test

import (
	"strings"
	"testing"

	"github.com/cdcpub/cdcpub/router"
)

func TestAllProblemsOfAConfigurationAreReportedAtOnce(t *testing.T) {
	_, err := router.New(router.Config{
		Columns: router.Columns{
			Payload:       router.Column{Name: "payload", Optional: true},
			AggregateType: router.Column{Optional: true},
		},
		Headers: []router.HeaderColumn{{Header: "id", Column: router.Named("x")}, {Header: "id", Column: router.Named("x")},
			{Header: "h", Column: router.Named("x")}, {Header: "h", Column: router.Named("y")}, {Header: "z"}, {Column: router.Named("y")}},
		Topic:  "a b",
		Topics: map[string]string{"": "ok", "Order": "..", "Cart": "a/b"},
	})
	if err == nil {
		t.Fatal("no error")
	}
	got := strings.Split(err.Error(), "\n")
	want := []string{
		"columns: event_id needs a column name",
		"columns: aggregate_id needs a column name",
		"columns: payload cannot be optional",
		"columns: aggregate_type cannot be optional; leave it empty if the topic does not depend on it",
		`headers[1]: header "id" is already filled by headers[0]`,
		`headers[3]: header "h" is already filled by headers[2]`,
		`headers[4]: header "z" of column "" needs both names`,
		`headers[5]: header "" of column "y" needs both names`,
		`topic "a b": has " " at offset 1; only letters, digits, '.', '_' and '-' are legal in a topic name`,
		"topics: columns.aggregate_type must be set, since topics are looked up by it",
		"topics: the empty aggregate type cannot be mapped",
		`topics: "a/b" of aggregate type "Cart" has "/" at offset 1; only letters, digits, '.', '_' and '-' are legal in a topic name`,
		`topics: ".." of aggregate type "Order" is a name that Kafka forbids`,
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("problem %d differs:\ngot\n%s\nwant\n%s", i, err, strings.Join(want, "\n"))
		}
	}
}

func TestTopicTemplatesThatCannotWorkAreRefused(t *testing.T) {
	for template, word := range map[string]string{
		"":                               "topic template is needed",
		"a.{b":                           "not closed",
		"a.{}":                           "does not name a column",
		"a.{b{c}":                        "does not name a column",
		"a}":                             "closing brace",
		"a}.{b}":                         "closing brace",
		"a.{{b}}":                        `has "{"`,
		"ü.{b}":                          "has ",
		".":                              "forbids",
		strings.Repeat("x", 250):         "longer",
		strings.Repeat("x", 249) + "{b}": "longer",
	} {
		_, err := router.New(defaults(func(c *router.Config) { c.Topic = template }))
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("template %q gives %v, want %q", template, err, word)
		}
	}
}

func TestAHeaderMustCarryTheEventID(t *testing.T) {
	const problem = "headers: none has the event id (column event_id), so consumers could not recognise repeats; add one, for example id: event_id"
	for name, headers := range map[string][]router.HeaderColumn{
		"no headers":   nil,
		"other column": {{Header: "id", Column: router.Named("aggregate_id")}, {Header: "event_id", Column: router.Named("event_type")}},
	} {
		_, err := router.New(defaults(func(c *router.Config) { c.Headers = headers }))
		if err == nil || err.Error() != problem {
			t.Errorf("%s: got %v, want %s", name, err, problem)
		}
	}
	newRouter(t, defaults(func(c *router.Config) {
		c.Headers = []router.HeaderColumn{{Header: "ce_id", Column: router.Named("event_id")}}
	}))
}

func TestRouterDoesNotFollowLaterChangesOfTheConfig(t *testing.T) {
	config := defaults(func(c *router.Config) {
		c.Topics = map[string]string{"Order": "orders"}
	}, withHeader("kind", "event_type"))
	r := newRouter(t, config)
	config.Topics["Order"] = "changed"
	config.Headers[4].Header = "changed"
	record, err := r.Route(commitTime, rowOf(with(orderCreated(), text("event_id", "e1"))))
	if err != nil || record.Topic != "orders" || record.Headers[3].Key != "kind" {
		t.Errorf("got %s, %v", show(record), err)
	}
}
