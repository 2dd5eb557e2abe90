// Package router turns an outbox row into a Kafka record. The record depends on
// the row, the commit time of its transaction and the configuration, on nothing
// else: to route a row again after a crash gives the same bytes.
//
//	column (default name)        part of the record (default name)
//	event_id                     Record.EventID; header id
//	aggregate_type               topic, by Config.Topics and Config.Topic
//	aggregate_id                 key, and so the partition
//	aggregate_version            header aggregateVersion
//	event_type                   header eventType
//	payload                      value; NULL is a tombstone
//	schema_version (optional)    header schemaVersion, left out when NULL
//	headers (optional)           one header per member of the JSON object
//	(only when configured)       timestamp; else it is the commit time
//	occurred_at (optional)       no part: Record.OccurredAt, for metrics
//
// Which tables are outboxes is decided before a row comes here, by the stream,
// which knows partitions by oid. The router takes any row that has the columns.
//
// # Bytes
//
// Values go out as PostgreSQL prints them, without quotes or conversion: jsonb
// in its canonical form, json and text to the letter, numbers in decimal,
// boolean as t or f. The one exception is bytea: it arrives as hex text and is
// decoded, whether in the key, the value or a header, so Avro, Protobuf and
// framed formats pass untouched. A domain is read as what it is over: the stream
// tells it (wal.Column.Base).
//
// Text in a record is UTF-8. PostgreSQL makes it so for every database but those
// with the encoding SQL_ASCII, which store any bytes; what is not UTF-8 there is
// an Error, since a consumer could only guess what it means.
//
// # Topic
//
// Config.Topics is asked first, with the exact aggregate type. What it does not
// hold goes to the template Config.Topic, whose {column} placeholders take the
// value of the column as it is. A NULL or empty value there is an Error, and so
// is a name that Kafka forbids: nothing is replaced or cut.
//
// # Headers
//
// The order is Config.Headers as listed, then the members of the headers object
// as PostgreSQL prints them (jsonb: by length of the name, then by bytes). A NULL
// column gives a header with a null value, as Debezium writes it, or none with
// HeaderColumn.OmitNull, by default that of schema_version. Any header may have
// any name, but one must carry the event id: without it consumers could not
// recognise repeats.
//
// Of a member, a string is written without quotes and escapes, null as a null
// value, anything else as the JSON text that stands there. NULL and JSON null
// mean no headers; anything else that is not an object is an Error.
//
// Consumers take the last header of a name. So a member with the name of a
// header that a column filled is an Error if its value differs, and is left out
// if it is the same. A name that occurs twice in the object itself, which json
// allows and jsonb does not, is written twice.
//
// # Timestamp
//
// The commit time, or the column Columns.Timestamp (timestamptz, or timestamp
// taken as UTC), cut to milliseconds. Instants before 1970 and infinity cannot
// be stored by Kafka and are an Error. Kafka deletes by record timestamp: old
// values of a column vanish with the next retention check.
//
// # When the event happened
//
// Columns.OccurredAt is read in the same way, into Record.OccurredAt, so that the
// time from the event to Kafka can be measured. It changes nothing of what is
// published: a value that is no instant after 1970, a column of another type and a
// table without the column all give 0, never an Error.
//
// # Errors
//
// An Error is about one row and says what to do. Config problems are reported by
// New, all at once. Missing columns show only when the table is seen (Check) and
// are an Error of each of its rows, all of them in one message. What a table must
// have can be asked before (Config.RequiredColumns).
//
// # Design
//
// For each wal.Relation the configured names are resolved once to column indexes
// (plan). Topic names and header names are interned, and header slices are cut
// from small shared chunks, so that a row normally costs no allocation. All
// caches are bounded, and none of them changes what is returned.
package router
