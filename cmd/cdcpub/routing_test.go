package main

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/router"
	"github.com/cdcpub/cdcpub/wal"
)

// configured loads a file that has further lines in outbox and kafka.
func configured(t *testing.T, outbox, kafka string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cdcpub.yaml")
	text := "postgres: {url: 'postgres://cdcpub@localhost/shop', slot: cdcpub, publication: cdcpub}\n" +
		"outbox:\n  tables: [public.outbox]\n" + outbox +
		"kafka:\n  brokers: [localhost:9092]\n" + kafka
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// routed makes the record of a row whose cells are name, value pairs.
func routed(t *testing.T, c *config.Config, cells ...string) router.Record {
	t.Helper()
	r, err := router.New(routing(c))
	if err != nil {
		t.Fatal(err)
	}
	row := wal.Row{Relation: &wal.Relation{Schema: "public", Name: "outbox"}}
	for pair := range slices.Chunk(cells, 2) {
		row.Relation.Columns = append(row.Relation.Columns, wal.Column{Name: pair[0]})
		row.Values = append(row.Values, []byte(pair[1]))
	}
	record, err := r.Route(time.UnixMilli(1), row)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

func TestUnstatedRoutingIsTheRoutersDefault(t *testing.T) {
	if got, want := routing(configured(t, "", "")), router.Defaults(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestStatedHeadersReplaceTheDefaultsInTheirOrder(t *testing.T) {
	c := configured(t, "  headers: {v: schema_version, ce_id: event_id, tenant: tenant, extra: headers}\n", "")
	want := []router.HeaderColumn{
		{Header: "v", Column: router.Column{Name: "schema_version", Optional: true}, OmitNull: true},
		{Header: "ce_id", Column: router.Named("event_id")},
		{Header: "tenant", Column: router.Named("tenant")},
		{Header: "extra", Column: router.Column{Name: "headers", Optional: true}},
	}
	if got := routing(c).Headers; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	required := []string{"event_id", "aggregate_id", "payload", "aggregate_type", "tenant"}
	if got := requiredColumns(c); !reflect.DeepEqual(got, required) {
		t.Errorf("required columns are %q, want %q", got, required)
	}
	record := routed(t, c, "event_id", "e1", "aggregate_type", "order", "aggregate_id", "42", "payload", "{}", "tenant", "acme")
	headers := []router.Header{{Key: "ce_id", Value: []byte("e1")}, {Key: "tenant", Value: []byte("acme")}}
	if !reflect.DeepEqual(record.Headers, headers) {
		t.Errorf("a record has the headers %q, want %q", record.Headers, headers)
	}
}

func TestDebeziumPresetReadsItsColumns(t *testing.T) {
	c := configured(t, "  preset: debezium\n", "")
	want := router.Config{
		Columns: router.Columns{
			EventID: router.Named("id"), AggregateType: router.Named("aggregatetype"),
			AggregateID: router.Named("aggregateid"), Payload: router.Named("payload"),
		},
		Headers: []router.HeaderColumn{
			{Header: "id", Column: router.Named("id")},
			{Header: "eventType", Column: router.Column{Name: "type", Optional: true}},
		},
		Topic: "outbox.event.{aggregatetype}",
	}
	if got := routing(c); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	cells := []string{"id", "e1", "aggregatetype", "order", "aggregateid", "42", "payload", "{}"}
	id, eventType := router.Header{Key: "id", Value: []byte("e1")}, router.Header{Key: "eventType", Value: []byte("Created")}
	for name, test := range map[string]struct {
		cells   []string
		headers []router.Header
	}{
		"with a type column": {append(slices.Clone(cells), "type", "Created"), []router.Header{id, eventType}},
		"without one":        {cells, []router.Header{id}},
	} {
		record := routed(t, c, test.cells...)
		if !reflect.DeepEqual(record.Headers, test.headers) || record.Topic != "outbox.event.order" || string(record.Key) != "42" {
			t.Errorf("%s: topic %s, key %s, headers %q", name, record.Topic, record.Key, record.Headers)
		}
	}
}

func TestTablesMayLackColumnsOfAConventionAndNoneThatWasNamed(t *testing.T) {
	for name, test := range map[string]struct {
		outbox, kafka string
		want          []string
	}{
		"defaults": {"", "",
			[]string{"aggregate_id", "aggregate_type", "aggregate_version", "event_id", "event_type", "payload"}},
		"columns of other names": {"  columns: {schema_version: version, headers: meta, timestamp: at}\n", "",
			[]string{"aggregate_id", "aggregate_type", "aggregate_version", "at", "event_id", "event_type", "meta", "payload", "version"}},
		"no columns that may be none": {"  columns: {aggregate_version: '', event_type: '', schema_version: '', headers: ''}\n", "",
			[]string{"aggregate_id", "aggregate_type", "event_id", "payload"}},
		"a column of debezium under another name": {"  preset: debezium\n  columns: {event_type: kind}\n", "",
			[]string{"aggregateid", "aggregatetype", "id", "kind", "payload"}},
		"columns of the topic": {"  columns: {aggregate_type: ''}\n  headers: {id: event_id}\n", "  topic: '{region}.v{schema_version}'\n",
			[]string{"aggregate_id", "event_id", "payload", "region", "schema_version"}},
	} {
		c := configured(t, test.outbox, test.kafka)
		if _, err := router.New(routing(c)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := slices.Sorted(slices.Values(requiredColumns(c))); !slices.Equal(got, test.want) {
			t.Errorf("%s: required columns are %q, want %q", name, got, test.want)
		}
	}
}

func TestTopicsComeFromTheMapFirst(t *testing.T) {
	c := configured(t, "", "  topic: 'events.{aggregate_type}'\n  topics: {Order: orders}\n")
	for aggregateType, want := range map[string]string{"Order": "orders", "order": "events.order"} {
		record := routed(t, c, "event_id", "e1", "aggregate_type", aggregateType, "aggregate_id", "42",
			"aggregate_version", "1", "event_type", "Created", "payload", "{}")
		if record.Topic != want {
			t.Errorf("%s goes to %s, want %s", aggregateType, record.Topic, want)
		}
	}
}
