package config

// Config is the whole configuration of cdcpub. Every field names its unit, its
// default and what it interacts with; cdcpub.example.yaml shows all of them.
// A Config from Load is valid and is not written to afterwards, so it may be
// read from any goroutine.
type Config struct {
	// Postgres is the server that is read and the slot that is consumed.
	Postgres Postgres `yaml:"postgres"`
	// Outbox says which tables are published and what their columns mean.
	Outbox Outbox `yaml:"outbox"`
	// Kafka is the cluster that is written to.
	Kafka Kafka `yaml:"kafka"`
	// Window bounds what is in memory and not yet acknowledged.
	Window Window `yaml:"window"`
	// OnPoison is what happens to a row that can never be published: one that
	// breaks the outbox convention, or one that the broker refuses for what it
	// is. The only value is "stop" (default): the stream stands still with an
	// error that names the row, and nothing behind it is lost or overtakes it.
	OnPoison OnPoison `yaml:"on_poison"`
	// OnStop is what happens when a human must act, once streaming has begun:
	// "stay" (default) keeps the process up, not ready, and tries again once a
	// minute; "exit" ends it and leaves the restart to the supervisor.
	OnStop OnStop `yaml:"on_stop"`
	// ShutdownTimeout is how long a shutdown may take to drain what was sent
	// and to confirm it, default 10s. Keep it below the supervisor's own grace
	// period (30s in Kubernetes). What is not drained is sent again next time.
	ShutdownTimeout Duration `yaml:"shutdown_timeout"`
	// HTTP serves health, readiness and status.
	HTTP HTTP `yaml:"http"`
	// SlotMonitor watches slots and tells about them.
	SlotMonitor SlotMonitor `yaml:"slot_monitor"`
	// Log is written to standard error.
	Log Log `yaml:"log"`

	// origins says where each value that is not a default was stated. It is nil
	// in a Config that was not loaded.
	origins map[string]Origin
	// file is the configuration file, empty when there is none.
	file string
	// need is what the configuration was loaded for.
	need Need
}

// Postgres configures the connections to PostgreSQL.
type Postgres struct {
	// URL is a connection string as libpq knows it, as a URL or in
	// keyword/value form; required. What it leaves out comes from the PG*
	// environment, the service file and the password file. An unstated sslmode
	// means verify-full, except where every host is loopback or a Unix socket.
	// See Postgres.ConnConfig. The host must lead to the server itself, since
	// a pooler may hide that it is gone.
	URL ConnString `yaml:"url"`
	// PasswordFile is a file with the password, read again for each new
	// connection so that a rotated password is picked up; none by default. It
	// wins over PGPASSWORD and excludes a password within URL.
	PasswordFile string `yaml:"password_file"`
	// PasswordCommand is a command with its arguments, run without a shell for
	// each new connection, for passwords that expire, such as the tokens of a
	// cloud; none by default. The first line that it prints is the password. It
	// may take 10s. One that fails is tried again as a server is that cannot be
	// reached, since it often asks a service that comes back; only a program
	// that is not there is refused at the start. It wins over PGPASSWORD and
	// excludes PasswordFile and a password within URL. See
	// Postgres.ConnConfigContext.
	PasswordCommand []string `yaml:"password_command"`
	// Slot is the logical replication slot, required. One slot is one stream
	// in commit order: whoever holds it publishes, others wait.
	Slot string `yaml:"slot"`
	// Publication is the publication that contains Outbox.Tables, required.
	// The exact name, case-sensitive, without quotes.
	Publication string `yaml:"publication"`
	// WALSenderTimeout is set as wal_sender_timeout on the replication
	// connection, default 12s, from 1s to 1h. It bounds how long cdcpub goes on
	// sending without a sign of life from the server, and how long a takeover
	// waits for a publisher that is frozen or cut off: so long, and two seconds
	// at most until the standby looks. With the default that is within 15s.
	WALSenderTimeout Duration `yaml:"wal_sender_timeout"`
	// StatusInterval is the longest time between two standby status updates,
	// default a third of WALSenderTimeout and at most half of it, because the
	// server asks for a reply after that.
	StatusInterval Duration `yaml:"status_interval"`
}

// Outbox configures the tables that are read.
type Outbox struct {
	// Tables are the outbox tables, schema-qualified, required. SQL rules:
	// names fold to lower case unless in double quotes. Several tables share
	// the slot and one convention for their columns.
	Tables []Table `yaml:"tables"`
	// Preset chooses the defaults of Columns: none, or "debezium" for the
	// column names of its outbox event router: id, aggregatetype, aggregateid,
	// type and payload, and no others. Columns that are stated win.
	Preset Preset `yaml:"preset"`
	// Columns names the column for each part of an event.
	Columns Columns `yaml:"columns"`
	// Headers are the record headers that columns fill: name to column, in the
	// order of the record. The default is id, aggregateVersion, eventType and
	// schemaVersion, each with its column in Columns, where there is one.
	// Stating it replaces all of them. One must carry Columns.EventID. The
	// tables must have these columns, but for those that Columns says they may
	// lack. A NULL gives a null header, one in Columns.SchemaVersion gives none.
	Headers Headers `yaml:"headers"`
}

// Columns names the outbox column of each part of an event. It is the exact
// name, case-sensitive, without quotes; empty means that there is none.
type Columns struct {
	// EventID identifies the event for ever, default event_id. Required, never
	// NULL. Consumers recognise repeats by it.
	EventID string `yaml:"event_id"`
	// AggregateType is the kind of the aggregate, default aggregate_type. It
	// is what Kafka.Topics looks at.
	AggregateType string `yaml:"aggregate_type"`
	// AggregateID is the record key, default aggregate_id; required, never
	// NULL. Events with the same key keep their order.
	AggregateID string `yaml:"aggregate_id"`
	// AggregateVersion counts the events of an aggregate, default
	// aggregate_version.
	AggregateVersion string `yaml:"aggregate_version"`
	// EventType is the kind of the event, default event_type.
	EventType string `yaml:"event_type"`
	// Payload is the record value, default payload; required. NULL is a
	// tombstone.
	Payload string `yaml:"payload"`
	// SchemaVersion is the version of the payload's schema, default
	// schema_version. The table may lack a column of this default name.
	SchemaVersion string `yaml:"schema_version"`
	// Headers is a jsonb object whose members become further record headers,
	// default headers. The table may lack a column of this default name.
	Headers string `yaml:"headers"`
	// Timestamp is the column for the record timestamp. None by default: the
	// commit time is taken. Kafka deletes by this timestamp, so old values
	// vanish at the next retention check.
	Timestamp string `yaml:"timestamp"`
	// OccurredAt is a timestamptz column with the time at which the event
	// happened, default occurred_at. It is measured only: the metric
	// cdcpub_occurred_to_ack_seconds. The table may lack a column of this
	// default name.
	OccurredAt string `yaml:"occurred_at"`

	// debezium says that the columns are those of the preset.
	debezium bool
}

// Kafka configures the producer.
type Kafka struct {
	// Brokers are the bootstrap addresses, host:port, required.
	Brokers []string `yaml:"brokers"`
	// Topic is the template of the topic's name: text and {column}, where
	// column is a column of the outbox table. The default is
	// outbox.event.{aggregate_type}, with the name of Columns.AggregateType.
	// It may be empty if there are Topics: then other types are poison.
	Topic string `yaml:"topic"`
	// Topics are exceptions to Topic: aggregate type to topic, as fixed names.
	// None by default.
	Topics Topics `yaml:"topics"`
	// Compression of record batches: none, gzip, snappy, lz4 (default), zstd.
	Compression Compression `yaml:"compression"`
	// Linger is how long a record waits for others before an idle partition is
	// sent to, default 0s, up to 1s. Batches form without it: what is queued
	// while a partition is busy goes together when it is free. A value buys
	// fewer and larger requests at a low rate, and costs up to that latency.
	Linger Duration `yaml:"linger"`
	// BatchBytes is the largest record batch before compression, default
	// 512KiB, from 1KiB to 8MiB and never more than Window.Bytes. A larger
	// record goes alone.
	BatchBytes Size `yaml:"batch_bytes"`
	// RequestTimeout is how long the broker may take to have a batch on all
	// in-sync replicas, default 8s, from 1s to 5m. The batch is then sent
	// again, without limit.
	RequestTimeout Duration `yaml:"request_timeout"`
	// ClientID names the client in the brokers' logs and quotas, default
	// cdcpub.
	ClientID string `yaml:"client_id"`
	// Fencing takes the producer id by the transactional id
	// cdcpub-SLOT-SYSTEM_IDENTIFIER, default true, so that brokers refuse what
	// an earlier publisher of the slot left on its way. No transaction is
	// begun. It needs Write on that transactional id; without it the publisher
	// says so and publishes unfenced.
	Fencing bool `yaml:"fencing"`
	// TLS encrypts the connections to the brokers.
	TLS TLS `yaml:"tls"`
	// SASL says who we are to the brokers.
	SASL SASL `yaml:"sasl"`
	// CreateTopics says how `cdcpub init` creates topics that are missing.
	CreateTopics CreateTopics `yaml:"create_topics"`
}

// CreateTopics configures the topics that `cdcpub init` creates. Topics that
// exist are never changed.
type CreateTopics struct {
	// Partitions of a topic, default 0: no topic is created. Up to 10000. More
	// partitions later move keys, so choose for years. The other fields need
	// it.
	Partitions int `yaml:"partitions"`
	// ReplicationFactor is the number of replicas, default -1: the brokers'
	// default.replication.factor (Kafka 2.4). Otherwise from 1 to 100.
	ReplicationFactor int `yaml:"replication_factor"`
	// Configs are settings of the topics, such as min.insync.replicas; none by
	// default: the brokers' defaults.
	Configs TopicConfigs `yaml:"configs"`
}

// TLS configures TLS to the brokers. See TLS.ClientConfig.
type TLS struct {
	// Enabled turns TLS on, default false. The other fields need it.
	Enabled bool `yaml:"enabled"`
	// CAFile has the trusted certificates in PEM form, read again for each
	// connection. None by default: the system's are trusted.
	CAFile string `yaml:"ca_file"`
	// CertFile is the client certificate (chain) in PEM form, none by default.
	// It needs KeyFile. Both are read again for each connection.
	CertFile string `yaml:"cert_file"`
	// KeyFile is the private key of CertFile, in PEM form, not encrypted.
	KeyFile string `yaml:"key_file"`
	// ServerName is the name that the brokers' certificates must have, when it
	// is not the host that is connected to. None by default.
	ServerName string `yaml:"server_name"`
}

// Window bounds what was read and is not yet acknowledged. When it is full the
// stream is not read any further. One record larger than the window passes
// alone.
type Window struct {
	// Records is the largest number of records, default 65536, at least 1.
	Records int `yaml:"records"`
	// Bytes is the largest sum of their sizes, every copy counted, default
	// 4MiB, at least 64KiB.
	Bytes Size `yaml:"bytes"`
}

// HTTP configures the admin server.
type HTTP struct {
	// Listen is its address, host:port, default 127.0.0.1:9477. Empty or "off"
	// (which is the same) disables it. It has no authentication.
	Listen string `yaml:"listen"`
	// Advertise is the base URL at which `cdcpub slot status` asks this
	// publisher for its state: http or https, without user, password, query.
	// The default is http:// and Listen, where a wildcard address becomes
	// 127.0.0.1; it is empty, and nothing is asked, if Listen is empty or has
	// port 0.
	Advertise string `yaml:"advertise"`
}

// Log configures the log.
type Log struct {
	// Level is the lowest level that is written: debug, info (default), warn,
	// error.
	Level Level `yaml:"level"`
	// Format is json (default) or console.
	Format Format `yaml:"format"`
}
