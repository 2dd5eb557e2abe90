package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// minimal states exactly the required fields.
const minimal = `postgres:
  url: postgres://cdcpub@db.internal:5432/shop?sslmode=verify-full
  slot: cdcpub
  publication: cdcpub
outbox:
  tables: [public.outbox]
kafka:
  brokers: [kafka-1:9092, kafka-2:9092]
`

func mustParse(t *testing.T, text string, env ...string) *Config {
	t.Helper()
	c, err := parse("c.yaml", []byte(text), env, NeedStream)
	if err != nil {
		t.Fatalf("parse:\n%v", err)
	}
	return c
}

func TestRequiredFieldsAloneLeaveEverythingElseAtItsDefault(t *testing.T) {
	got := mustParse(t, minimal)
	want := Default()
	want.Postgres.URL = "postgres://cdcpub@db.internal:5432/shop?sslmode=verify-full"
	want.Postgres.Slot = "cdcpub"
	want.Postgres.Publication = "cdcpub"
	want.Outbox.Tables = []Table{{Schema: "public", Name: "outbox"}}
	want.Kafka.Brokers = []string{"kafka-1:9092", "kafka-2:9092"}
	assertSameValues(t, got, want)

	if got, want := got.Postgres.StatusInterval, Duration(4*time.Second); got != want {
		t.Errorf("status_interval = %s, want %s", got, want)
	}
	if got, want := got.Kafka.Topic, "outbox.event.{aggregate_type}"; got != want {
		t.Errorf("topic = %s, want %s", got, want)
	}
}

// assertSameValues compares all fields and none of the origins.
func assertSameValues(t rapid.TB, got, want *Config) {
	t.Helper()
	wants := leaves(want, "")
	for i, f := range leaves(got, "") {
		g, w := f.value.Interface(), wants[i].value.Interface()
		if !reflect.DeepEqual(g, w) && (f.value.Kind() != reflect.Slice && f.value.Kind() != reflect.Map ||
			f.value.Len()+wants[i].value.Len() > 0) {
			t.Errorf("%s = %#v, want %#v", f.path, g, w)
		}
	}
}

func TestLoadReadsTheNamedFileOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cdcpub.yaml")
	if _, err := Load(path, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v does not wrap fs.ErrNotExist", err)
	}
	if err := os.WriteFile(path, []byte(minimal), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path, []string{"PATH=/bin", "CDCPUB_POSTGRES_SLOT=other"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Postgres.Slot != "other" {
		t.Errorf("slot = %q", c.Postgres.Slot)
	}
}

func TestEnvironmentAloneIsEnough(t *testing.T) {
	c, err := Load("", []string{
		"CDCPUB_POSTGRES_URL=host=/run/postgresql dbname=shop",
		"CDCPUB_POSTGRES_SLOT=s",
		"CDCPUB_POSTGRES_PUBLICATION=p",
		`CDCPUB_OUTBOX_TABLES=public.outbox, "A, b"."C"`,
		"CDCPUB_KAFKA_BROKERS=k1:9092,k2:9092",
		"CDCPUB_OUTBOX_HEADERS=b=event_id, a=event_type",
		"CDCPUB_KAFKA_TOPICS=order=orders",
		"CDCPUB_KAFKA_TLS_ENABLED=true",
		"CDCPUB_WINDOW_RECORDS=10",
		"CDCPUB_WINDOW_BYTES=1.5MiB",
		"CDCPUB_ON_STOP=exit",
		"CDCPUB_SHUTDOWN_TIMEOUT=1m",
		"CDCPUB_LOG_LEVEL=",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Postgres.URL = "host=/run/postgresql dbname=shop"
	want.Postgres.Slot, want.Postgres.Publication = "s", "p"
	want.Outbox.Tables = []Table{{"public", "outbox"}, {"A, b", "C"}}
	want.Outbox.Headers = Headers{{"b", "event_id"}, {"a", "event_type"}}
	want.Kafka.Brokers = []string{"k1:9092", "k2:9092"}
	want.Kafka.Topics = Topics{"order": "orders"}
	want.Kafka.TLS.Enabled = true
	want.Window = Window{Records: 10, Bytes: 1536 * KiB}
	want.OnStop = OnStopExit
	want.ShutdownTimeout = Duration(time.Minute)
	assertSameValues(t, c, want)
}

func TestEnvironmentWinsOverTheFileAndReplacesLists(t *testing.T) {
	c := mustParse(t, minimal, "CDCPUB_KAFKA_BROKERS=other:1", "CDCPUB_POSTGRES_SLOT=other")
	if got := c.Kafka.Brokers; len(got) != 1 || got[0] != "other:1" {
		t.Errorf("brokers = %q", got)
	}
	if got := c.Origin("kafka.brokers").String(); got != "CDCPUB_KAFKA_BROKERS" {
		t.Errorf("origin of brokers = %s", got)
	}
	if got := c.Origin("postgres.publication").String(); got != "c.yaml:4" {
		t.Errorf("origin of publication = %s", got)
	}
	if got := c.Origin("kafka.linger").String(); got != "default" {
		t.Errorf("origin of linger = %s", got)
	}
}

func TestEveryFieldHasItsOwnVariable(t *testing.T) {
	seen := map[string]string{}
	for _, f := range leaves(Default(), "") {
		name := envName(f.path)
		if seen[name] != "" {
			t.Errorf("%s and %s share %s", seen[name], f.path, name)
		}
		if foreign(name) {
			t.Errorf("%s is ignored as %s", f.path, name)
		}
		seen[name] = f.path
	}
}

func TestVariablesOfOthersAreIgnored(t *testing.T) {
	mustParse(t, minimal,
		"CDCPUB_CONFIG=x.yaml",
		"CDCPUB_SERVICE_HOST=10.0.0.1", "CDCPUB_SERVICE_PORT=9477", "CDCPUB_SERVICE_PORT_HTTP=9477",
		"CDCPUB_PORT=tcp://10.0.0.1:9477", "CDCPUB_PORT_9477_TCP_ADDR=10.0.0.1",
		"CDCPUB_METRICS_PORT_9477_TCP=tcp://10.0.0.1:9477",
		"CDCPUBX=1", "NOISE")
}

func TestDerivedDefaultsFollowWhatTheyDependOn(t *testing.T) {
	c := mustParse(t, minimal, "CDCPUB_OUTBOX_PRESET=debezium", "CDCPUB_OUTBOX_COLUMNS_EVENT_TYPE=kind",
		"CDCPUB_POSTGRES_WAL_SENDER_TIMEOUT=10s", "CDCPUB_WINDOW_BYTES=64KiB", "CDCPUB_HTTP_LISTEN=off")
	want := Columns{EventID: "id", AggregateType: "aggregatetype", AggregateID: "aggregateid",
		EventType: "kind", Payload: "payload", debezium: true}
	if c.Outbox.Columns != want {
		t.Errorf("columns = %+v", c.Outbox.Columns)
	}
	if got := c.Kafka.Topic; got != "outbox.event.{aggregatetype}" {
		t.Errorf("topic = %s", got)
	}
	if got := c.Postgres.StatusInterval.String(); got != "3.333s" {
		t.Errorf("status_interval = %s", got)
	}
	if got := c.Kafka.BatchBytes; got != 64*KiB {
		t.Errorf("batch_bytes = %s", got)
	}
	if got := c.HTTP.Listen; got != "" {
		t.Errorf("listen = %q", got)
	}
}

func TestStatedHeadersReplaceTheDefaultsInTheOrderAsWritten(t *testing.T) {
	c := mustParse(t, strings.Replace(minimal, "outbox:\n", "outbox:\n  headers: {z: a, a: event_id, m: c}\n", 1))
	want := Headers{{"z", "a"}, {"a", "event_id"}, {"m", "c"}}
	if !reflect.DeepEqual(c.Outbox.Headers, want) {
		t.Errorf("headers = %v, want %v", c.Outbox.Headers, want)
	}
}

func TestUnstatedHeadersAreThoseOfTheColumns(t *testing.T) {
	for name, test := range map[string]struct {
		env  []string
		want Headers
	}{
		"defaults": {nil, Headers{{"id", "event_id"}, {"aggregateVersion", "aggregate_version"},
			{"eventType", "event_type"}, {"schemaVersion", "schema_version"}}},
		"other columns": {[]string{"CDCPUB_OUTBOX_COLUMNS_EVENT_ID=uid", "CDCPUB_OUTBOX_COLUMNS_SCHEMA_VERSION=v"},
			Headers{{"id", "uid"}, {"aggregateVersion", "aggregate_version"}, {"eventType", "event_type"}, {"schemaVersion", "v"}}},
		"debezium": {[]string{"CDCPUB_OUTBOX_PRESET=debezium"}, Headers{{"id", "id"}, {"eventType", "type"}}},
		"debezium with a column": {[]string{"CDCPUB_OUTBOX_PRESET=debezium", "CDCPUB_OUTBOX_COLUMNS_AGGREGATE_VERSION=version"},
			Headers{{"id", "id"}, {"aggregateVersion", "version"}, {"eventType", "type"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mustParse(t, minimal, test.env...).Outbox.Headers; !reflect.DeepEqual(got, test.want) {
				t.Errorf("headers = %v, want %v", got, test.want)
			}
		})
	}
	c := mustParse(t, strings.Replace(minimal, "outbox:\n",
		"outbox:\n  columns: {aggregate_version: '', event_type: '', schema_version: ''}\n", 1))
	if got, want := c.Outbox.Headers, (Headers{{"id", "event_id"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("without these columns headers = %v, want %v", got, want)
	}
}

func TestHeadersWithoutAValueStateNothing(t *testing.T) {
	c := mustParse(t, strings.Replace(minimal, "outbox:\n", "outbox:\n  headers:\n", 1))
	if want := Default().Outbox.Headers; c.Stated("outbox.headers") || !reflect.DeepEqual(c.Outbox.Headers, want) {
		t.Errorf("headers = %v, want %v", c.Outbox.Headers, want)
	}
}

func TestOnlyColumnsWithDefaultNamesAreOptional(t *testing.T) {
	c := mustParse(t, minimal, "CDCPUB_OUTBOX_COLUMNS_HEADERS=meta").Outbox.Columns
	for column, want := range map[string]bool{"schema_version": true, "meta": false, "headers": false,
		"event_id": false, "": false} {
		if got := c.Optional(column); got != want {
			t.Errorf("Optional(%q) = %t, want %t", column, got, want)
		}
	}
	if !mustParse(t, minimal, "CDCPUB_OUTBOX_PRESET=debezium").Outbox.Columns.Optional("type") {
		t.Error("type is not optional with the debezium preset")
	}
	if mustParse(t, minimal, "CDCPUB_OUTBOX_COLUMNS_EVENT_TYPE=type").Outbox.Columns.Optional("type") {
		t.Error("type is optional without the preset")
	}
}

func TestTopicMayBeEmptyBesideTopics(t *testing.T) {
	c := mustParse(t, minimal+"  topic: \"\"\n  topics: {order: orders}\n")
	if c.Kafka.Topic != "" {
		t.Errorf("topic = %q", c.Kafka.Topic)
	}
}

func TestYAMLFormsThatAreFine(t *testing.T) {
	for name, text := range map[string]string{
		"anchors": strings.Replace(strings.Replace(minimal, "slot: cdcpub", "slot: &name cdcpub", 1),
			"publication: cdcpub", "publication: *name", 1),
		"empty groups and lists": minimal + "  topics:\nwindow:\nlog: {}\n",
		"comments and a marker":  "# c\n---\n" + minimal + "...\n",
		"JSON": `{"postgres": {"url": "postgres://cdcpub@db.internal:5432/shop?sslmode=verify-full", "slot": "cdcpub",
			"publication": "cdcpub"}, "outbox": {"tables": ["public.outbox"]}, "kafka": {"brokers": ["kafka-1:9092", "kafka-2:9092"]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			assertSameValues(t, mustParse(t, text), mustParse(t, minimal))
		})
	}
}

func TestDefaultsBreakNoRuleButTheRequiredOnes(t *testing.T) {
	var problems *Problems
	if err := Default().Validate(); !errors.As(err, &problems) {
		t.Fatalf("Validate() = %v", err)
	}
	for _, p := range problems.List {
		if !strings.HasPrefix(p.Message, "is required") {
			t.Errorf("default of %s: %s", p.Path, p.Message)
		}
	}
}
