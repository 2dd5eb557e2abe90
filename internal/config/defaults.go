package config

import "time"

// Default returns a Config in which every field has its default. It is not yet
// valid: some fields are required.
func Default() *Config {
	c := &Config{}
	c.setDefaults()
	c.deriveDefaults()
	return c
}

// setDefaults sets the defaults that depend on nothing.
func (c *Config) setDefaults() {
	c.Postgres.WALSenderTimeout = seconds(12)
	c.Outbox.Columns = Columns{
		EventID:          "event_id",
		AggregateType:    "aggregate_type",
		AggregateID:      "aggregate_id",
		AggregateVersion: "aggregate_version",
		EventType:        "event_type",
		Payload:          "payload",
		SchemaVersion:    "schema_version",
		Headers:          "headers",
		OccurredAt:       "occurred_at",
	}
	c.Kafka.Compression = CompressionLZ4
	c.Kafka.BatchBytes = 512 * KiB
	c.Kafka.RequestTimeout = seconds(8)
	c.Kafka.ClientID = "cdcpub"
	c.Kafka.Fencing = true
	c.Kafka.CreateTopics.ReplicationFactor = BrokerDefault
	c.Window.Records = 65536
	c.Window.Bytes = 4 * MiB
	c.OnPoison = OnPoisonStop
	c.OnStop = OnStopStay
	c.ShutdownTimeout = seconds(10)
	c.HTTP.Listen = "127.0.0.1:9477"
	c.SlotMonitor = defaultSlotMonitor()
	c.Log.Level = LevelInfo
	c.Log.Format = FormatJSON
}

func seconds(n int) Duration { return Duration(time.Duration(n) * time.Second) }

// deriveDefaults sets the defaults that depend on other fields, where nothing
// else was stated.
func (c *Config) deriveDefaults() {
	if !c.Stated("postgres.status_interval") {
		third := time.Duration(c.Postgres.WALSenderTimeout) / 3
		c.Postgres.StatusInterval = Duration(third.Truncate(time.Millisecond))
	}
	if !c.Stated("kafka.batch_bytes") {
		c.Kafka.BatchBytes = min(c.Kafka.BatchBytes, c.Window.Bytes)
	}
	if c.HTTP.Listen == "off" {
		c.HTTP.Listen = ""
	}
	if !c.Stated("http.advertise") {
		c.HTTP.Advertise = advertised(c.HTTP.Listen)
	}
	c.completeSlots()
	if c.Outbox.Preset == PresetDebezium {
		c.debeziumColumns()
	}
	columns := &c.Outbox.Columns
	columns.debezium = c.Outbox.Preset == PresetDebezium
	if !c.Stated("outbox.headers") {
		c.Outbox.Headers = columns.defaultHeaders()
	}
	if !c.Stated("kafka.topic") && columns.AggregateType != "" {
		c.Kafka.Topic = "outbox.event.{" + columns.AggregateType + "}"
	}
}

// debeziumType is a column that Debezium's outbox event router has a name for
// and makes no use of unless it is told to, so that not every table has it.
const debeziumType = "type"

// debeziumColumns sets the column names that Debezium's outbox event router
// expects (its options table.field.event.id, route.by.field and so on).
func (c *Config) debeziumColumns() {
	stated, columns := c.Outbox.Columns, &c.Outbox.Columns
	*columns = Columns{
		EventID:       "id",
		AggregateType: "aggregatetype",
		AggregateID:   "aggregateid",
		EventType:     debeziumType,
		Payload:       "payload",
	}
	from := leaves(&stated, "outbox.columns")
	for i, to := range leaves(columns, "outbox.columns") {
		if c.Stated(to.path) {
			to.value.Set(from[i].value)
		}
	}
}

// defaultHeaders are the headers of the columns that there are.
func (c Columns) defaultHeaders() Headers {
	var headers Headers
	for _, h := range []Header{
		{"id", c.EventID},
		{"aggregateVersion", c.AggregateVersion},
		{"eventType", c.EventType},
		{"schemaVersion", c.SchemaVersion},
	} {
		if h.Column != "" {
			headers = append(headers, h)
		}
	}
	return headers
}

// Optional tells if the outbox tables may lack the column: SchemaVersion,
// Headers and OccurredAt when they have their default names, and EventType when
// it has that of the debezium preset. Any other column was asked for.
func (c Columns) Optional(column string) bool {
	defaults := Default().Outbox.Columns
	return column != "" && (column == c.SchemaVersion && column == defaults.SchemaVersion ||
		column == c.Headers && column == defaults.Headers ||
		column == c.OccurredAt && column == defaults.OccurredAt ||
		column == c.EventType && column == debeziumType && c.debezium)
}
