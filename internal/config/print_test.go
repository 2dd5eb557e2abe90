package config

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func printed(t rapid.TB, c *Config) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.Print(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPrintShowsEveryFieldWithItsOrigin(t *testing.T) {
	c := mustParse(t, minimal+"  topics: {order: orders}\n", "CDCPUB_LOG_LEVEL=debug",
		"CDCPUB_POSTGRES_URL=postgres://u:hunter2@h/db")
	text := printed(t, c)
	for _, line := range []string{
		"  url: postgres://u:xxxxx@h/db # CDCPUB_POSTGRES_URL",
		"  slot: cdcpub # c.yaml:3",
		"  brokers: # c.yaml:8",
		"  topics: # c.yaml:9",
		"    order: orders",
		"  linger: 0s # default",
		"  headers: # default\n    id: event_id\n    aggregateVersion: aggregate_version",
		"  level: debug # CDCPUB_LOG_LEVEL",
		"  batch_bytes: 512KiB # default",
		`  password_file: "" # default`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("lacks the line %q:\n%s", line, text)
		}
	}
	for _, f := range leaves(c, "") {
		if !strings.Contains(text, "  "+f.key()+":") && !strings.Contains(text, "\n"+f.key()+":") {
			t.Errorf("lacks %s", f.path)
		}
	}
}

func TestPrintLoadsAgainAsTheSameConfiguration(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Default()
		c.Postgres.URL = "postgres://u@h/db"
		c.Postgres.Slot = rapid.StringMatching(`[a-z0-9_]{1,63}`).Draw(t, "slot")
		c.Postgres.Publication = identifiers().Draw(t, "publication")
		c.Outbox.Tables = []Table{{identifiers().Draw(t, "schema"), identifiers().Draw(t, "name")}}
		c.Outbox.Headers = nil
		for _, name := range rapid.SliceOfDistinct(identifiers(), rapid.ID).Draw(t, "headers") {
			c.Outbox.Headers.put(name, "c "+name)
		}
		if n := len(c.Outbox.Headers); n > 0 {
			c.Outbox.Headers[rapid.IntRange(0, n-1).Draw(t, "header of the event id")].Column = "event_id"
		}
		c.Kafka.Brokers = rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9.-]{1,9}:[1-9][0-9]{0,3}`),
			1, 5, rapid.ID).Draw(t, "brokers")
		c.Kafka.Topics = rapid.MapOf(identifiers(), rapid.StringMatching(`[a-z0-9-]{1,9}`)).Draw(t, "topics")
		c.Kafka.TLS.Enabled = rapid.Bool().Draw(t, "tls")
		c.Kafka.ClientID = identifiers().Draw(t, "client id")
		c.Kafka.SASL.Mechanism = rapid.SampledFrom([]SASLMechanism{SASLNone, SASLScramSHA512}).Draw(t, "mechanism")
		if c.Kafka.SASL.Mechanism != SASLNone {
			c.Kafka.SASL.User, c.Kafka.SASL.PasswordFile = identifiers().Draw(t, "user"), identifiers().Draw(t, "file")
		}
		c.Kafka.CreateTopics.Partitions = rapid.IntRange(0, 10_000).Draw(t, "topic partitions")
		if c.Kafka.CreateTopics.Partitions > 0 {
			c.Kafka.CreateTopics.ReplicationFactor = rapid.SampledFrom([]int{BrokerDefault, 1, 3}).Draw(t, "replicas")
			c.Kafka.CreateTopics.Configs = rapid.MapOf(identifiers(), identifiers()).Draw(t, "topic configs")
		}
		c.SlotMonitor.Limits.RetainedWALShare.Warning = Ratio(float64(rapid.IntRange(0, 90).Draw(t, "share")) / 100)
		c.SlotMonitor.Limits.CatalogXminAge.Warning = Count(rapid.Int64Range(0, 200_000_000).Draw(t, "age"))
		own := c.SlotMonitor.Limits
		own.RetainedWAL.Critical = 0
		c.SlotMonitor.Slots = map[string]MonitorLimits{}
		for _, name := range rapid.SliceOfN(rapid.StringMatching(`[a-z0-9_]{1,63}`), 0, 3).Draw(t, "slots") {
			c.SlotMonitor.Slots[name] = own
		}
		c.Window.Bytes = Size(rapid.Int64Range(int64(MiB), 1<<50).Draw(t, "window"))
		if c.Validate() != nil {
			t.Skip("not valid")
		}
		text := printed(t, c)
		again, err := parse("printed.yaml", []byte(text), nil, NeedStream)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		assertSameValues(t, again, c)
	})
}
