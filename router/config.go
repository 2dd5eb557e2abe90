package router

import "github.com/cdcpub/cdcpub/wal"

// Config says how the columns of outbox tables become records. All tables share
// one convention. Start from Defaults.
type Config struct {
	// Columns are the columns with a meaning of their own.
	Columns Columns
	// Headers are the headers that columns fill, in wire order. One of them
	// must carry Columns.EventID, by which consumers recognise repeats.
	Headers []HeaderColumn
	// Topic is the template of the topic name: literal text and {column}
	// placeholders, with {{ and }} for the braces themselves. It may be empty
	// when Topics is set; then an aggregate type outside Topics is an Error.
	Topic string
	// Topics maps an aggregate type, compared exactly, to a topic. What is not
	// in it goes to Topic.
	Topics map[string]string
}

// Column names a column, spelled as in the catalog.
type Column struct {
	// Name is empty when the part is not used at all.
	Name string
	// Optional allows the table not to have the column. It is for names that
	// come from a convention: whoever names a column himself wants an error
	// when it is missing, so Named leaves it false.
	Optional bool
}

// Named is a column that was configured by name: the table must have it.
func Named(name string) Column { return Column{Name: name} }

// Columns are the columns of an outbox table. EventID, AggregateID and Payload
// must be set; they and AggregateType cannot be optional.
type Columns struct {
	EventID       Column // identifies the event; never NULL or empty
	AggregateType Column // looked up in Config.Topics; not needed without it
	AggregateID   Column // record key; never NULL or empty
	Payload       Column // record value; NULL is a tombstone
	Headers       Column // a JSON object whose members become headers
	Timestamp     Column // record timestamp; commit time when unset or NULL
	OccurredAt    Column // when the event happened: for metrics only, no part of the record on the wire
}

// HeaderColumn is a header and the column that fills it.
type HeaderColumn struct {
	// Header is the name of the header, unique among Config.Headers.
	Header string
	// Column is the column. When it is optional and the table lacks it, the
	// record has no such header.
	Column Column
	// OmitNull leaves the header out when the column is NULL. Otherwise the
	// header is there with a null value.
	OmitNull bool
}

// Defaults returns the configuration of the common outbox convention.
func Defaults() Config {
	return Config{
		Columns: Columns{
			EventID:       Named("event_id"),
			AggregateType: Named("aggregate_type"),
			AggregateID:   Named("aggregate_id"),
			Payload:       Named("payload"),
			Headers:       Column{Name: "headers", Optional: true},
			OccurredAt:    Column{Name: "occurred_at", Optional: true},
		},
		Headers: []HeaderColumn{
			{Header: "id", Column: Named("event_id")},
			{Header: "aggregateVersion", Column: Named("aggregate_version")},
			{Header: "eventType", Column: Named("event_type")},
			{Header: "schemaVersion", Column: Column{Name: "schema_version", Optional: true}, OmitNull: true},
		},
		Topic: "outbox.event.{aggregate_type}",
	}
}

// RequiredColumns are the columns that every outbox table must have and publish
// for its rows to be routed by this configuration, which must be valid: those
// of the parts, headers and topic placeholders that are in use and not optional.
// Columns.OccurredAt is one of them although rows are routed without it: who
// names it should hear at the start that it is not there.
func (c Config) RequiredColumns() []string {
	template, _ := parseTopic(c.Topic) // Validate reports what is wrong with it
	b := &planner{config: &c, rel: &wal.Relation{}}
	b.plan(template)
	b.index(c.Columns.OccurredAt)
	return b.missing
}
