package check

import (
	"time"

	"github.com/cdcpub/cdcpub/router"
	"github.com/cdcpub/cdcpub/slotmon"
)

// Facts are everything that Judge looks at.
type Facts struct {
	Setup    Setup
	Postgres Postgres
	Kafka    Kafka
	Listen   Listen
}

// Listen is what was found at http.listen of this machine.
type Listen struct {
	// Address is empty if http.listen is off.
	Address string
	// Refused says why nothing can listen there; empty if something can.
	Refused string
	// Ours tells if the publisher of this slot is what listens there.
	Ours bool
}

// Setup is what the configuration says. Names are as the catalogs have them.
type Setup struct {
	// File is the configuration file, for the commands that name it.
	File              string
	Slot, Publication string
	Tables            []slotmon.Table
	// Route says how rows become records.
	Route router.Config
	// AggregateVersion is the column of the version, empty if there is none.
	AggregateVersion string
	Brokers          []string
	// KafkaUser is who we are to Kafka, empty if unknown.
	KafkaUser string
	// Tools tells if Kafka's command-line tools need a file with the client's
	// security settings.
	Tools bool
	// BatchBytes is the largest batch before compression.
	BatchBytes int64
	// Compressed is false if batches go uncompressed.
	Compressed bool
	// CreateTopics tells if `cdcpub init` creates missing topics.
	CreateTopics bool
	// Types are the aggregate types that the command line names.
	Types []string
}

// Failure is why something could not be had.
type Failure struct {
	// Text is one line, without secrets.
	Text string
	// SQLState is PostgreSQL's code; empty if it did not come to that.
	SQLState string
}

// Postgres is what was found at the server.
type Postgres struct {
	// Server is host:port/database as the configuration has it, User the role.
	Server, User, Database string
	// Unreachable says why there is no connection; then only Replication may
	// hold anything.
	Unreachable *Failure
	Replication Replication
	// Sample is nil when it could not be taken, and SampleUnread says why.
	Sample       *slotmon.Sample
	SampleUnread string
	// About is nil when it could not be read, and AboutUnread says why.
	About       *About
	AboutUnread string
	// Content is nil when the publication does not exist, or could not be read,
	// and then ContentUnread says why.
	Content       *Content
	ContentUnread string
	// Tables has an entry for each of Setup.Tables, in its order.
	Tables []Table
}

// Replication is a connection with replication=database.
type Replication struct {
	Refused *Failure
	// SystemID and Timeline are those of IDENTIFY_SYSTEM.
	SystemID string
	Timeline int32
	// Session are settings of that connection, by name as in pg_settings.
	Session map[string]string
}

// About is what the server says of itself and of the role.
type About struct {
	WALLevel       string `json:"wal_level"`
	ServerEncoding string `json:"server_encoding"`
	// Senders counts the walsenders, ours left out.
	Senders     int    `json:"senders"`
	Role        string `json:"role"`
	Superuser   bool   `json:"superuser"`
	Replication bool   `json:"replication"`
	Monitor     bool   `json:"monitor"`
	// ConnectionLimit is the role's CONNECTION LIMIT, nil for none.
	ConnectionLimit *int `json:"connection_limit"`
	// CloudRoles are those roles of managed services that exist on the server;
	// MemberOf those of them that the role belongs to.
	CloudRoles []string `json:"cloud_roles"`
	MemberOf   []string `json:"member_of"`
	BackendPID uint32   `json:"backend_pid"`
	// Pooled: the server process is another than the one that answered the
	// connection, so something in between answered it.
	Pooled bool `json:"-"`
	// ClockOffset is the server's clock less ours, ClockError how far off that
	// may be.
	ClockOffset time.Duration `json:"-"`
	ClockError  time.Duration `json:"-"`
}

// Content is what the publication holds, beyond what a slotmon.Sample has.
type Content struct {
	ViaRoot bool `json:"via_root"`
	// Generated tells if stored generated columns are published (18).
	Generated string `json:"generated"`
	// XminAge is the age of the transaction that wrote the publication's
	// catalog row last, SlotXminAge that of the slot's catalog_xmin. Ages grow,
	// so only those of one statement can be compared.
	XminAge     int64  `json:"xmin_age"`
	SlotXminAge *int64 `json:"slot_xmin_age"`
	// Members are the entries for outbox tables, their partitions and what they
	// are partitions of.
	Members []Member `json:"members"`
}

// Member is a table within a publication.
type Member struct {
	OID     uint32   `json:"oid"`
	Name    string   `json:"name"` // quoted where necessary
	Filter  string   `json:"filter"`
	Columns []string `json:"columns"` // nil: all
}

// Table is an outbox table. What belongs to one that does not exist is empty.
type Table struct {
	Name   slotmon.Table
	Exists bool
	// Kind is what is there instead of a table: "view".
	Kind string
	// Unread says why it could not be looked at.
	Unread string
	// Line are the oids of the table, its partitions, and what it is one of.
	Line        []uint32
	Partitioned bool
	Partitions  int
	// PartitionKey are the columns that it and its partitions are partitioned
	// by; PartitionedByExpression tells if there are expressions too.
	PartitionKey            []string
	PartitionedByExpression bool
	// Unlogged are the tables whose rows are not in the WAL, quoted.
	Unlogged []string
	Columns  []Column
	// Unique are the sets of columns of which no two rows have the same.
	Unique [][]string
	// Readable tells if the role may SELECT. Types and LargestPayload are known
	// only then; RowsUnread says why else.
	Readable   bool
	RowsUnread string
	// Types are aggregate types of rows in the table; TypesAll tells if they
	// are all that there are.
	Types    []string
	TypesAll bool
	// LargestPayload is in bytes, of PayloadRows rows.
	LargestPayload int64
	PayloadRows    int64
}

// Column is a column of a table.
type Column struct {
	Name      string `json:"name"`
	Type      string `json:"type"` // as SQL has it
	TypeOID   uint32 `json:"type_oid"`
	BaseType  string `json:"base_type"` // typname, of a domain that of what it is over
	BaseOID   uint32 `json:"base_oid"`
	Category  string `json:"category"` // typcategory of the base type
	NotNull   bool   `json:"not_null"`
	Generated string `json:"generated"` // "s" stored, "v" virtual (18)
}

// Kafka is what was found at the cluster.
type Kafka struct {
	// Refused are the bootstrap addresses that could not be used, each with a
	// sentence that says why.
	Refused map[string]string
	// Failed says why nothing is known of the cluster; empty if something is.
	Failed    string
	ClusterID string
	Brokers   []Broker
	Topics    []Topic
	// ProducerIDs tells if we may have a producer id; nil if it is not known.
	ProducerIDs *bool
	Fencing     Fencing
	// AutoCreate is auto.create.topics.enable; nil if it is not known, and then
	// AutoCreateUnseen says why.
	AutoCreate       *bool
	AutoCreateUnseen string
}

// Fencing is the right to a transactional id.
type Fencing struct {
	// ID is empty when fencing is off.
	ID string
	// Allowed is nil if it is not known, and then Unseen says why.
	Allowed *bool
	Unseen  string
}

// Broker is one of the cluster.
type Broker struct {
	ID      int32
	Address string // as advertised; empty if it is down
	// Unreachable is a sentence that says why the address could not be used.
	Unreachable string
}

// Topic is a topic that records go to.
type Topic struct {
	Name    string
	Missing bool
	// Failed says why nothing is known of it.
	Failed     string
	Partitions int32
	Replicas   int // the smallest number of any partition
	Offline    []int32
	UnderMin   []int32 // fewer in-sync replicas than min.insync.replicas
	// MinInSyncCapped: the brokers never ask for more in-sync replicas than a
	// partition has (KAFKA-15583, Kafka 3.7).
	MinInSyncCapped bool
	// Configs are settings by name; empty if they may not be seen, and then
	// ConfigsUnseen says why.
	Configs       map[string]string
	ConfigsUnseen string
	// Write and Create tell if we may; nil if it is not known.
	Write, Create *bool
}
