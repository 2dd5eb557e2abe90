package check

import (
	"time"

	"github.com/cdcpub/cdcpub/router"
	"github.com/cdcpub/cdcpub/slotmon"
)

func pointer[T any](value T) *T { return &value }

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// ready are the facts of servers that are as they must be.
func ready() *Facts {
	f := &Facts{
		Setup: Setup{
			File: "shop.yaml", Slot: "shop", Publication: "shop", Tables: []slotmon.Table{{Schema: "public", Name: "outbox"}},
			Route: router.Defaults(), AggregateVersion: "aggregate_version",
			Brokers: []string{"kafka-1.internal:9092", "kafka-2.internal:9092"}, KafkaUser: "cdcpub",
			BatchBytes: 512 << 10, Compressed: true,
		},
		Postgres: Postgres{
			Server: "db.internal:5432/shop", User: "publisher", Database: "shop",
			Replication: Replication{SystemID: "7342", Timeline: 1, Session: map[string]string{}},
			Sample: &slotmon.Sample{
				Taken: now,
				Server: slotmon.Server{
					Version: "17.6", VersionNum: 170006, Database: "shop", WAL: 0x3000000, Now: now,
					MaxSlotWALKeepSize: 50 << 30, MaxSlots: 10, MaxWALSenders: 10,
				},
				Slots: []slotmon.Slot{{
					Name: "shop", Plugin: "pgoutput", Type: "logical", Database: "shop",
					RestartLSN: pointer(slotmon.LSN(0x2000000)), ConfirmedFlushLSN: pointer(slotmon.LSN(0x2F00000)),
					WALStatus: pointer("reserved"), CatalogXminAge: pointer(int64(10)), Failover: pointer(false),
					RetainedBytes: pointer(int64(16 << 20)), ConfirmedLagBytes: pointer(int64(1 << 20)),
					InactiveSince: pointer(now.Add(-time.Hour)),
				}},
				Publication: &slotmon.Publication{Name: "shop", Exists: true, Inserts: true},
			},
			About: &About{
				WALLevel: "logical", ServerEncoding: "UTF8", Senders: 2, Role: "publisher", Replication: true, Monitor: true,
				ClockOffset: 3 * time.Millisecond, ClockError: time.Millisecond,
			},
			Content: &Content{ViaRoot: true, XminAge: 11, SlotXminAge: pointer(int64(10))},
			Tables:  []Table{outboxTable("outbox")},
		},
		Kafka: Kafka{
			ClusterID: "Zk3", ProducerIDs: pointer(true), AutoCreate: pointer(false),
			Fencing: Fencing{ID: "cdcpub-cdcpub-7342", Allowed: pointer(true)},
			Brokers: []Broker{{ID: 1, Address: "kafka-1.internal:9092"}, {ID: 2, Address: "kafka-2.internal:9092"}, {ID: 3, Address: "kafka-3.internal:9092"}},
			Topics:  []Topic{topicNamed("outbox.event.order"), topicNamed("outbox.event.customer")},
		},
	}
	for _, s := range SessionSettings() {
		f.Postgres.Replication.Session[s[0]] = s[2]
	}
	return f
}

func outboxTable(name string) Table {
	column := func(name, kind, category string) Column {
		return Column{Name: name, Type: kind, TypeOID: 25, BaseType: kind, BaseOID: 25, Category: category, NotNull: true}
	}
	return Table{
		Name: slotmon.Table{Schema: "public", Name: name}, Exists: true, Line: []uint32{20001}, Readable: true,
		Columns: []Column{
			column("event_id", "uuid", "U"), column("aggregate_type", "text", "S"), column("aggregate_id", "text", "S"),
			column("aggregate_version", "bigint", "N"), column("event_type", "text", "S"), column("payload", "jsonb", "U"),
			column("headers", "jsonb", "U"), column("occurred_at", "timestamptz", "D"),
		},
		Unique: [][]string{{"event_id"}, {"aggregate_type", "aggregate_id", "aggregate_version"}},
		Types:  []string{"customer", "order"}, TypesAll: true, LargestPayload: 3 << 10, PayloadRows: 1000,
	}
}

func topicNamed(name string) Topic {
	return Topic{
		Name: name, Partitions: 12, Replicas: 3, Write: pointer(true), Create: pointer(true),
		Configs: map[string]string{
			"min.insync.replicas": "2", "max.message.bytes": "1048588", "cleanup.policy": "delete",
			"message.timestamp.type": "CreateTime", "message.timestamp.before.max.ms": "9223372036854775807",
			"message.timestamp.after.max.ms": "3600000", "retention.ms": "604800000", "retention.bytes": "-1",
			"unclean.leader.election.enable": "false",
		},
	}
}

func (f *Facts) ourSlot() *slotmon.Slot { return &f.Postgres.Sample.Slots[0] }

func (f *Facts) outbox() *Table { return &f.Postgres.Tables[0] }

// set changes a setting of the first topic.
func (f *Facts) set(name, value string) { f.Kafka.Topics[0].Configs[name] = value }

// withVersion makes the server one of another version.
func (f *Facts) withVersion(version string, number int) {
	f.Postgres.Sample.Server.Version, f.Postgres.Sample.Server.VersionNum = version, number
}
