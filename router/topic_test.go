package router_test

import (
	"strings"
	"testing"

	"github.com/cdcpub/cdcpub/router"
)

func TestTopicOfTemplateAndMap(t *testing.T) {
	topic := func(template string, topics map[string]string) func(*router.Config) {
		return func(c *router.Config) { c.Topic, c.Topics = template, topics }
	}
	for name, test := range map[string]struct {
		config func(*router.Config)
		cells  []cell
		want   string
	}{
		"default keeps case":        {func(*router.Config) {}, orderCreated(), "outbox.event.Order"},
		"constant":                  {topic("orders", nil), orderCreated(), "orders"},
		"two placeholders":          {topic("{event_type}-{aggregate_type}.v1", nil), orderCreated(), "OrderCreated-Order.v1"},
		"value alone":               {topic("{aggregate_type}", nil), orderCreated(), "Order"},
		"map before template":       {topic("rest.{aggregate_type}", map[string]string{"Order": "orders"}), orderCreated(), "orders"},
		"map compares exactly":      {topic("rest.{aggregate_type}", map[string]string{"order": "orders"}), orderCreated(), "rest.Order"},
		"map without template":      {topic("", map[string]string{"Order": "orders"}), orderCreated(), "orders"},
		"map makes any type usable": {topic("{aggregate_type}", map[string]string{"Bestellung für": "orders"}), with(orderCreated(), text("aggregate_type", "Bestellung für")), "orders"},
		"NULL type goes to a constant template": {
			topic("rest", map[string]string{"Order": "orders"}), with(orderCreated(), null("aggregate_type")), "rest"},
		"NULL type is no concern of a constant": {topic("orders", nil), with(orderCreated(), null("aggregate_type")), "orders"},
		"249 characters":                        {topic("{aggregate_type}", nil), with(orderCreated(), text("aggregate_type", strings.Repeat("x", 249))), strings.Repeat("x", 249)},
	} {
		r := newRouter(t, defaults(test.config))
		row := rowOf(test.cells)
		for range 2 {
			if record, err := r.Route(commitTime, row); err != nil || record.Topic != test.want {
				t.Errorf("%s: got %q, %v; want %q", name, record.Topic, err, test.want)
			}
		}
	}
}

func TestNullOrEmptyTypeIsAnErrorWhenTheTopicDependsOnIt(t *testing.T) {
	onlyMap := func(c *router.Config) { c.Topic, c.Topics = "", map[string]string{"Order": "orders"} }
	for _, config := range []router.Config{defaults(), defaults(onlyMap)} {
		wantError(t, config, with(orderCreated(), null("aggregate_type")), "aggregate_type", "NULL", "topic depends")
		wantError(t, config, with(orderCreated(), text("aggregate_type", "")), "aggregate_type", "empty", "topic depends")
	}
}

func TestTypeOutsideTheMapIsAnErrorWithoutATemplate(t *testing.T) {
	config := defaults(func(c *router.Config) { c.Topic, c.Topics = "", map[string]string{"order": "orders"} })
	wantError(t, config, orderCreated(), "aggregate_type", `"Order"`, "not in the map")
}

func TestIllegalTopicNameIsAnErrorThatShowsIt(t *testing.T) {
	both := defaults(func(c *router.Config) { c.Topic = "{event_type}.{aggregate_type}" })
	bare := defaults(func(c *router.Config) { c.Topic = "{aggregate_type}" })
	for _, test := range []struct {
		config router.Config
		value  string
		topic  string
		word   string
	}{
		{defaults(), "Order Item", "outbox.event.Order Item", `has " "`},
		{both, "Bestell/ung", "OrderCreated.Bestell/ung", `has "/"`},
		{both, "Größe", "OrderCreated.Größe", `has "\xc3"`},
		{bare, ".", ".", "forbids"},
		{bare, "..", "..", "forbids"},
		{bare, strings.Repeat("x", 250), strings.Repeat("x", 250), "longer than 249"},
		{defaults(), strings.Repeat("x", 249-len("outbox.event.")+1), "outbox.event." + strings.Repeat("x", 249-len("outbox.event.")+1), "longer than 249"},
	} {
		e := wantError(t, test.config, with(orderCreated(), text("aggregate_type", test.value)), "aggregate_type", test.word)
		if e.Topic != test.topic {
			t.Errorf("topic is %q, want %q", e.Topic, test.topic)
		}
	}
}

func TestLaterFaultsNameTheTopic(t *testing.T) {
	if e := wantError(t, defaults(), with(orderCreated(), text("headers", "[]")), "headers"); e.Topic != "outbox.event.Order" {
		t.Errorf("topic is %q", e.Topic)
	}
}

func TestCheckTopicName(t *testing.T) {
	for _, legal := range []string{"a", "orders", "outbox.event.Order_1-x", strings.Repeat("x", 249), "..."} {
		if err := router.CheckTopicName(legal); err != nil {
			t.Errorf("%q: %v", legal, err)
		}
	}
	for _, illegal := range []string{"", ".", "..", "Order Created", "größe", strings.Repeat("x", 250)} {
		if err := router.CheckTopicName(illegal); err == nil || len(err.Error()) > 200 {
			t.Errorf("%.40q: %v", illegal, err)
		}
	}
}
