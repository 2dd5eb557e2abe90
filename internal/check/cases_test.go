package check

import (
	"time"

	"github.com/cdcpub/cdcpub/router"
	"github.com/cdcpub/cdcpub/slotmon"
)

// faults are what can be wrong, each with what Judge says of it besides OK, and
// words that the results must have.
var faults = map[string]struct {
	make func(*Facts)
	want []string
	says []string
}{
	"nothing": {func(*Facts) {}, nil, nil},

	// PostgreSQL
	"wrong password": {func(f *Facts) {
		f.unreachable("28P01", `password authentication failed for user "publisher" (SQLSTATE 28P01)`)
	}, []string{"fail postgres.reachable", "skip"}, []string{"PGPASSWORD"}},
	"no pg_hba.conf line": {func(f *Facts) { f.unreachable("28000", "no pg_hba.conf entry (SQLSTATE 28000)") },
		[]string{"fail postgres.reachable", "skip"}, []string{`hostssl  "shop"  "publisher"`, "pg_hba.conf"}},
	"no such database": {func(f *Facts) { f.unreachable("3D000", `database "shop" does not exist (SQLSTATE 3D000)`) },
		[]string{"fail postgres.reachable", "skip"}, []string{"correct the database in postgres.url"}},
	"no CONNECT": {func(f *Facts) { f.unreachable("42501", "permission denied for database (SQLSTATE 42501)") },
		[]string{"fail postgres.reachable", "skip"}, []string{`GRANT CONNECT ON DATABASE "shop" TO "publisher";`}},
	"nobody listens": {func(f *Facts) { f.unreachable("", "connection refused") },
		[]string{"fail postgres.reachable", "skip"}, []string{"connection refused", "listen_addresses"}},
	"too old": {func(f *Facts) { f.withVersion("13.22", 130022) }, []string{"fail postgres.version"}, []string{"upgrade to one of 14 to 18"}},
	"too new": {func(f *Facts) { f.withVersion("19.0", 190000) }, []string{"warn postgres.version"}, nil},
	"minor version with both defects": {func(f *Facts) { f.withVersion("15.12", 150012) },
		[]string{"warn postgres.version"}, []string{"rows can be lost", "fixed in 15.13", "move backwards", "fixed in 15.14", "15.14 or later"}},
	"minor version with one defect":  {func(f *Facts) { f.withVersion("17.5", 170005) }, []string{"warn postgres.version"}, []string{"fixed in 17.6"}},
	"minor version without a defect": {func(f *Facts) { f.withVersion("14.19", 140019) }, nil, nil},
	"standby before 16": {func(f *Facts) { f.withVersion("15.14", 150014); f.Postgres.Sample.Server.InRecovery = true },
		[]string{"fail postgres.primary"}, []string{"target_session_attrs=read-write"}},
	"standby":   {func(f *Facts) { f.Postgres.Sample.Server.InRecovery = true }, []string{"warn postgres.primary"}, nil},
	"wal_level": {func(f *Facts) { f.Postgres.About.WALLevel = "replica" }, []string{"fail postgres.wal_level"}, []string{"restart PostgreSQL", "ALTER SYSTEM SET wal_level = 'logical';"}},
	"wal_level of a cloud": {func(f *Facts) {
		f.Postgres.About.WALLevel, f.Postgres.About.CloudRoles = "replica", []string{"rds_superuser"}
	}, []string{"fail postgres.wal_level"}, []string{"rds.logical_replication = 1"}},
	"no slot left for ours":              {func(f *Facts) { f.ourSlot().Name = "other"; f.Postgres.Sample.Server.MaxSlots = 1 }, []string{"fail postgres.slots", "fail slot.exists", "skip"}, []string{"`cdcpub slot list -c shop.yaml`", "max_replication_slots = 11"}},
	"all slots in use, one of them ours": {func(f *Facts) { f.Postgres.Sample.Server.MaxSlots = 1 }, nil, nil},
	"no walsender left":                  {func(f *Facts) { f.Postgres.About.Senders = 10 }, []string{"fail postgres.wal_senders"}, []string{"max_wal_senders = 20"}},
	"no walsender left, and ours runs": {func(f *Facts) {
		f.Postgres.About.Senders, f.ourSlot().Active = 10, true
	}, nil, nil},
	"few connections": {func(f *Facts) { f.Postgres.About.ConnectionLimit = pointer(3) },
		[]string{"warn postgres.role"}, []string{"may have 3 connections", `ALTER ROLE "publisher" CONNECTION LIMIT 8;`}},
	"enough connections":                     {func(f *Facts) { f.Postgres.About.ConnectionLimit = pointer(8) }, nil, nil},
	"few connections do not bind superusers": {func(f *Facts) { f.Postgres.About.ConnectionLimit, f.Postgres.About.Superuser = pointer(1), true }, nil, nil},
	"no REPLICATION": {func(f *Facts) {
		f.Postgres.About.Replication = false
		f.Postgres.Replication = Replication{Refused: &Failure{"permission denied to start WAL sender", "42501"}}
	}, []string{"skip postgres.replication", "fail postgres.role", "skip postgres.session"}, []string{`ALTER ROLE "publisher" REPLICATION;`}},
	"no rds_replication": {func(f *Facts) {
		f.Postgres.About.Replication, f.Postgres.About.CloudRoles = false, []string{"rds_replication"}
		f.Postgres.Replication = Replication{Refused: &Failure{"permission denied", "42501"}}
	}, []string{"skip postgres.replication", "fail postgres.role", "skip postgres.session"}, []string{`GRANT rds_replication TO "publisher";`}},
	"member of rds_replication": {func(f *Facts) {
		f.Postgres.About.Replication, f.Postgres.About.MemberOf = false, []string{"rds_replication"}
	}, nil, nil},
	"pg_hba.conf lets only SQL in": {func(f *Facts) {
		f.Postgres.Replication = Replication{Refused: &Failure{"no pg_hba.conf entry", "28000"}}
	},
		[]string{"fail postgres.replication", "skip postgres.session"}, []string{"physical replication only"}},
	"walsenders used up by others": {func(f *Facts) { f.Postgres.Replication = Replication{Refused: &Failure{"too many", "53300"}} },
		[]string{"fail postgres.replication", "skip postgres.session"}, []string{"max_wal_senders"}},
	"no pg_monitor":   {func(f *Facts) { f.Postgres.About.Monitor = false }, []string{"warn postgres.monitor"}, []string{`GRANT pg_monitor TO "publisher";`}},
	"session differs": {func(f *Facts) { f.Postgres.Replication.Session["datestyle"] = "German, DMY" }, []string{"fail postgres.session"}, []string{`datestyle is "German, DMY"`}},
	"SQL_ASCII":       {func(f *Facts) { f.Postgres.About.ServerEncoding = "SQL_ASCII" }, []string{"warn postgres.session"}, nil},
	"a pooler":        {func(f *Facts) { f.Postgres.About.Pooled = true }, []string{"warn postgres.direct"}, []string{"PostgreSQL itself"}},
	"clock ahead":     {func(f *Facts) { f.Postgres.About.ClockOffset = 90 * time.Second }, []string{"warn postgres.clock"}, []string{"1m30s ahead of"}},
	"clock behind":    {func(f *Facts) { f.Postgres.About.ClockOffset = -90 * time.Second }, []string{"warn postgres.clock"}, []string{"1m30s behind"}},
	"clock perhaps off, by a slow connection": {func(f *Facts) {
		f.Postgres.About.ClockOffset, f.Postgres.About.ClockError = 1500*time.Millisecond, 2*time.Second
	}, nil, nil},
	"no limit of WAL": {func(f *Facts) { f.Postgres.Sample.Server.MaxSlotWALKeepSize = -1 }, []string{"warn postgres.slot_wal_limit"}, []string{"ALTER SYSTEM SET max_slot_wal_keep_size"}},
	"idle timeout":    {func(f *Facts) { f.Postgres.Sample.Server.IdleSlotTimeout = time.Hour }, []string{"warn postgres.idle_slot_timeout"}, []string{"1 h"}},
	"nothing can be read": {func(f *Facts) {
		pg := &f.Postgres
		pg.Sample, pg.SampleUnread, pg.About, pg.AboutUnread, pg.Content, pg.ContentUnread = nil, "timeout", nil, "timeout", nil, "timeout"
		f.outbox().Unread = "timeout"
	}, []string{"skip"}, []string{"could not be read: timeout"}},

	// Publication
	"no publication": {func(f *Facts) {
		f.Postgres.Sample.Publication, f.Postgres.Content = &slotmon.Publication{Name: "shop"}, nil
	},
		[]string{"fail publication.exists", "skip"}, []string{"`cdcpub init -c shop.yaml --admin-url postgres://OWNER@HOST/shop`", "A slot older than its publication", `CREATE PUBLICATION "shop" FOR TABLE "public"."outbox" WITH (publish = 'insert', publish_via_partition_root = true);`}},
	"no inserts": {func(f *Facts) { f.Postgres.Sample.Publication.Inserts = false }, []string{"fail publication.inserts"}, []string{"publish = 'insert'"}},
	"table not published": {func(f *Facts) { f.Postgres.Sample.Publication.Missing = []string{"public.outbox"} },
		[]string{"fail publication.tables"}, []string{`ALTER PUBLICATION "shop" ADD TABLE "public"."outbox";`}},
	"unlogged, and so not published": {func(f *Facts) {
		f.outbox().Unlogged, f.Postgres.Sample.Publication.Missing = []string{"public.outbox"}, []string{"public.outbox"}
	}, []string{"fail publication.tables", "fail outbox.logged"}, []string{"first see outbox.logged"}},
	"partition not published": {func(f *Facts) {
		f.outbox().Partitioned, f.Postgres.Sample.Publication.Missing = true, []string{"public.outbox_2026"}
	}, []string{"fail publication.tables"}, []string{"public.outbox_2026"}},
	"partitions listed one by one": {func(f *Facts) {
		f.outbox().Partitioned, f.outbox().Line = true, []uint32{20001, 20002}
		f.Postgres.Sample.Publication.ByPartition = []string{"public.outbox"}
		f.Postgres.Content.Members = []Member{{OID: 20002, Name: "public.outbox_2026"}, {OID: 30001, Name: "public.other"}}
	}, []string{"warn publication.tables"}, []string{`BEGIN; ALTER PUBLICATION "shop" ADD TABLE "public"."outbox"; ALTER PUBLICATION "shop" DROP TABLE public.outbox_2026; ALTER PUBLICATION "shop" SET (publish_via_partition_root = true); COMMIT;`}},
	"row filter": {func(f *Facts) {
		f.Postgres.Content.Members = []Member{{OID: 20001, Name: "public.outbox", Filter: "(a > 1)"}}
	},
		[]string{"fail publication.filters"}, []string{"only its rows with (a > 1)", "DROP TABLE public.outbox; ALTER PUBLICATION"}},
	"column list without a needed column": {func(f *Facts) {
		f.Postgres.Content.Members = []Member{{OID: 20001, Name: "public.outbox", Columns: []string{"event_id"}}}
	}, []string{"fail publication.filters"}, []string{"not its columns aggregate_id"}},
	"column list with all": {func(f *Facts) {
		f.Postgres.Content.Members = []Member{{OID: 20001, Name: "public.outbox", Columns: []string{"event_id", "aggregate_type", "aggregate_id", "aggregate_version", "event_type", "payload"}}}
	}, nil, nil},
	"not via root": {func(f *Facts) { f.outbox().Partitioned, f.Postgres.Content.ViaRoot = true, false },
		[]string{"warn publication.via_root"}, []string{"publish_via_partition_root = true"}},

	// Slot
	"no slot":          {func(f *Facts) { f.ourSlot().Name = "other" }, []string{"fail slot.exists", "skip"}, []string{"cdcpub init -c shop.yaml"}},
	"physical slot":    {func(f *Facts) { f.ourSlot().Type = "physical" }, []string{"fail slot.plugin", "skip"}, nil},
	"another plugin":   {func(f *Facts) { f.ourSlot().Plugin = "wal2json" }, []string{"fail slot.plugin", "skip"}, []string{"wal2json"}},
	"another database": {func(f *Facts) { f.ourSlot().Database = "bank" }, []string{"fail slot.database", "skip"}, []string{"bank"}},
	"two-phase":        {func(f *Facts) { f.ourSlot().TwoPhase = true }, []string{"fail slot.two_phase"}, []string{"cdcpub slot create shop -c shop.yaml"}},
	"lost": {func(f *Facts) {
		f.ourSlot().WALStatus, f.ourSlot().InvalidationReason = pointer("lost"), pointer("wal_removed")
	},
		[]string{"fail slot.lost", "skip slot.position"}, []string{"lost, wal_removed"}},
	"unreserved": {func(f *Facts) { f.ourSlot().WALStatus = pointer("unreserved") }, []string{"fail slot.lost"}, []string{"next checkpoint"}},
	"impossible position": {func(f *Facts) { f.ourSlot().ConfirmedLagBytes = pointer(int64(-1)) },
		[]string{"fail slot.position"}, []string{"beyond the end of WAL"}},
	"being created": {func(f *Facts) { f.ourSlot().ConfirmedFlushLSN, f.ourSlot().ConfirmedLagBytes = nil, nil }, []string{"warn slot.position"}, nil},
	"held by a cdcpub": {func(f *Facts) {
		f.ourSlot().Active, f.ourSlot().Holder = true, &slotmon.Holder{PID: 7, ApplicationName: "cdcpub"}
	}, nil, []string{"waits as standby"}},
	"held by another": {func(f *Facts) {
		f.ourSlot().Active, f.ourSlot().Holder = true, &slotmon.Holder{PID: 7, ApplicationName: "Debezium Streaming", Address: "10.0.0.9"}
	}, []string{"warn slot.holder"}, []string{`"Debezium Streaming" (pid 7) from 10.0.0.9`}},
	"standby without failover slot": {func(f *Facts) {
		f.Postgres.Sample.Slots = append(f.Postgres.Sample.Slots, slotmon.Slot{Name: "standby1", Type: "physical"})
	}, []string{"warn slot.failover"}, []string{"cdcpub slot create shop --failover -c shop.yaml"}},
	"failover slot, nobody waited for":        {func(f *Facts) { f.ourSlot().Failover = pointer(true) }, []string{"warn slot.failover"}, []string{"synchronized_standby_slots"}},
	"slot perhaps older than the publication": {func(f *Facts) { f.Postgres.Content.XminAge = 10 }, []string{"warn slot.publication_age"}, []string{"42704", "first stop cdcpub and save the rows", "A slot older than its publication"}},
	"the age says nothing beside an older slot": {func(f *Facts) {
		f.Postgres.Content.XminAge = 10
		f.Postgres.Sample.Slots = append(f.Postgres.Sample.Slots, slotmon.Slot{Name: "old", Type: "logical", CatalogXminAge: pointer(int64(10))})
	}, nil, nil},

	// Outbox tables
	"no table": {func(f *Facts) {
		f.Postgres.Tables[0] = Table{Name: f.Setup.Tables[0]}
		f.Postgres.Sample.Publication.Missing = []string{"public.outbox"}
	}, []string{"skip publication.tables", "fail outbox.exists", "skip"}, []string{"cdcpub init -c shop.yaml --admin-url postgres://OWNER@HOST/shop\n"}},
	"no table, and a superuser": {func(f *Facts) {
		f.Postgres.Tables[0], f.Postgres.About.Superuser = Table{Name: f.Setup.Tables[0]}, true
	}, []string{"skip publication.tables", "fail outbox.exists", "skip"}, []string{"cdcpub init -c shop.yaml\n"}},
	"a view": {func(f *Facts) { f.Postgres.Tables[0] = Table{Name: f.Setup.Tables[0], Kind: "view"} },
		[]string{"skip publication.tables", "fail outbox.exists", "skip"}, []string{"is a view"}},
	"debezium's columns": {func(f *Facts) {
		f.outbox().Columns = []Column{{Name: "id"}, {Name: "aggregatetype"}, {Name: "aggregateid"}, {Name: "type"}, {Name: "payload"}}
	}, []string{"fail outbox.columns", "skip"}, []string{"outbox.preset: debezium"}},
	"column of the wrong name": {func(f *Facts) { f.outbox().Columns[4].Name = "kind" },
		[]string{"fail outbox.columns", "skip outbox.types"}, []string{"lacks event_type", "kind"}},
	"generated column":                   {func(f *Facts) { f.outbox().Columns[4].Generated = "s" }, []string{"fail outbox.columns"}, []string{"event_type", "generated"}},
	"generated column that 18 publishes": {func(f *Facts) { f.outbox().Columns[4].Generated, f.Postgres.Content.Generated = "s", "s" }, nil, nil},
	"virtual column":                     {func(f *Facts) { f.outbox().Columns[4].Generated, f.Postgres.Content.Generated = "v", "s" }, []string{"fail outbox.columns"}, nil},
	"timestamp is text": {func(f *Facts) { f.Setup.Route.Columns.Timestamp = router.Named("event_type") },
		[]string{"fail outbox.types"}, []string{"outbox.columns.timestamp"}},
	"timestamp is a domain over text": {func(f *Facts) {
		f.Setup.Route.Columns.Timestamp, f.outbox().Columns[4].TypeOID = router.Named("event_type"), 70000
	}, []string{"fail outbox.types"}, []string{"timestamptz"}},
	"occurred_at is text":            {func(f *Facts) { f.outbox().Columns[7].BaseType = "text" }, []string{"warn outbox.types"}, []string{"occurred_at"}},
	"headers are text":               {func(f *Facts) { f.outbox().Columns[6].BaseType, f.outbox().Columns[6].Category = "text", "S" }, []string{"warn outbox.types"}, []string{"not a JSON object"}},
	"headers are numbers":            {func(f *Facts) { f.outbox().Columns[6].BaseType, f.outbox().Columns[6].Category = "int4", "N" }, []string{"fail outbox.types"}, nil},
	"key is char(n)":                 {func(f *Facts) { f.outbox().Columns[2].BaseType = "bpchar" }, []string{"warn outbox.types"}, []string{`ALTER COLUMN "aggregate_id" TYPE text;`, "blanks"}},
	"key is an array":                {func(f *Facts) { f.outbox().Columns[2].Category = "A" }, []string{"warn outbox.types"}, nil},
	"payload is a domain over bytea": {func(f *Facts) { f.outbox().Columns[5].BaseType, f.outbox().Columns[5].Type = "bytea", "blob" }, nil, nil},
	"key may be NULL":                {func(f *Facts) { f.outbox().Columns[2].NotNull = false }, []string{"warn outbox.not_null"}, []string{`ALTER COLUMN "aggregate_id" SET NOT NULL;`}},
	"version not unique": {func(f *Facts) {
		f.outbox().Unique = [][]string{{"event_id"}, {"aggregate_id", "aggregate_version", "event_type"}}
	},
		[]string{"warn outbox.unique"}, []string{`CREATE UNIQUE INDEX CONCURRENTLY ON "public"."outbox" ("aggregate_type", "aggregate_id", "aggregate_version");`}},
	"version not unique, partitioned by what is in the key": {func(f *Facts) {
		f.outbox().Unique, f.outbox().Partitioned, f.outbox().PartitionKey = nil, true, []string{"aggregate_id"}
	}, []string{"warn outbox.unique"}, []string{`ALTER TABLE "public"."outbox" ADD UNIQUE ("aggregate_type", "aggregate_id", "aggregate_version");`}},
	"version not unique, partitioned by something else": {func(f *Facts) {
		f.outbox().Unique, f.outbox().Partitioned, f.outbox().PartitionKey = nil, true, []string{"aggregate_id", "created_at"}
	}, []string{"warn outbox.unique"}, []string{"PostgreSQL cannot keep that while the partition key has created_at"}},
	"version not unique, partitioned by an expression": {func(f *Facts) {
		f.outbox().Unique, f.outbox().Partitioned, f.outbox().PartitionedByExpression = nil, true, true
	}, []string{"warn outbox.unique"}, []string{"where the partition key has an expression"}},
	"a narrower key is unique": {func(f *Facts) { f.outbox().Unique = [][]string{{"aggregate_version", "aggregate_id"}} }, nil, nil},
	"no version":               {func(f *Facts) { f.Setup.AggregateVersion, f.outbox().Unique = "", nil }, nil, nil},
	"unlogged":                 {func(f *Facts) { f.outbox().Unlogged = []string{"public.outbox"} }, []string{"fail outbox.logged"}, []string{"ALTER TABLE public.outbox SET LOGGED;"}},

	// Kafka
	"no broker": {func(f *Facts) {
		f.Kafka = Kafka{Failed: "no broker can be reached", Refused: map[string]string{"kafka-1.internal:9092": "the name kafka-1.internal does not resolve here"}}
	}, []string{"fail kafka.reachable", "skip"}, []string{"does not resolve here"}},
	"wrong client certificate": {func(f *Facts) { f.Kafka = Kafka{Failed: "kafka.tls.ca_file: no such file"} },
		[]string{"fail kafka.reachable", "skip"}, []string{"no such file"}},
	"one address is wrong": {func(f *Facts) { f.Kafka.Refused = map[string]string{"kafka-2.internal:9092": "refuses"} }, []string{"warn kafka.reachable"}, []string{"1 of 2"}},
	"advertises localhost": {func(f *Facts) {
		f.Kafka.Brokers[0] = Broker{ID: 1, Address: "localhost:9092", Unreachable: "localhost:9092 refuses the connection"}
	}, []string{"fail kafka.brokers"}, []string{"where each client itself stands", "advertised.listeners=PLAINTEXT://NAME-AS-SEEN-FROM-HERE:9092"}},
	"advertises another port on localhost": {func(f *Facts) {
		f.Setup.Brokers = []string{"127.0.0.1:19092"}
		f.Kafka.Brokers[0] = Broker{ID: 1, Address: "localhost:9092", Unreachable: "localhost:9092 refuses the connection"}
	}, []string{"fail kafka.brokers"}, []string{"publish this very port"}},
	"advertises a container's name": {func(f *Facts) {
		f.Kafka.Brokers[0] = Broker{ID: 1, Address: "kafka:9092", Unreachable: "the name kafka does not resolve here"}
	}, []string{"fail kafka.brokers"}, []string{"one container network only"}},
	"broker is down": {func(f *Facts) { f.Kafka.Brokers[0] = Broker{ID: 1, Unreachable: "it is down"} }, []string{"fail kafka.brokers"}, []string{"start it"}},
	"no producer id": {func(f *Facts) { f.Kafka.ProducerIDs = pointer(false) }, []string{"fail kafka.producer_id"}, []string{"IdempotentWrite --cluster", "User:cdcpub"}},
	"no transactional id": {func(f *Facts) { f.Kafka.Fencing.Allowed = pointer(false) }, []string{"warn kafka.fencing"},
		[]string{"--transactional-id cdcpub-cdcpub-7342", "User:cdcpub", "unfenced"}},
	"fencing is off": {func(f *Facts) { f.Kafka.Fencing = Fencing{} }, nil, []string{"kafka.fencing is off"}},
	"auto creation":  {func(f *Facts) { f.Kafka.AutoCreate = pointer(true) }, nil, []string{"auto.create.topics.enable is on"}},
	"older brokers tell less": {func(f *Facts) {
		f.Kafka.ProducerIDs, f.Kafka.AutoCreate = nil, nil
		f.Kafka.Fencing.Allowed, f.Kafka.Fencing.Unseen = nil, "nobody coordinates"
		f.Kafka.Topics[0].Write, f.Kafka.Topics[0].Configs, f.Kafka.Topics[0].ConfigsUnseen = nil, nil, "DescribeConfigs is not granted"
	}, []string{"skip"}, []string{"DescribeConfigs is not granted"}},

	// Topics
	"topic missing": {func(f *Facts) { f.Kafka.Topics[1] = Topic{Name: "outbox.event.customer", Missing: true} },
		[]string{"fail topic.exists", "skip"}, []string{"kafka-topics.sh --bootstrap-server kafka-1.internal:9092,kafka-2.internal:9092 --create --topic outbox.event.customer"}},
	"topic missing in a small cluster": {func(f *Facts) {
		f.Kafka.Topics[1] = Topic{Name: "outbox.event.customer", Missing: true}
		f.Kafka.Brokers = f.Kafka.Brokers[:1]
	}, []string{"fail topic.exists", "skip"}, []string{"--replication-factor 1 --config min.insync.replicas=1"}},
	"topic missing, init creates it": {func(f *Facts) {
		f.Setup.CreateTopics, f.Setup.Types = true, []string{"order", "customer"}
		f.Kafka.Topics[1] = Topic{Name: "outbox.event.customer", Missing: true}
	}, []string{"fail topic.exists", "skip"}, []string{"cdcpub init -c shop.yaml --types customer,order"}},
	"topic missing, init may not create it": {func(f *Facts) {
		f.Setup.CreateTopics = true
		f.Kafka.Topics[1] = Topic{Name: "outbox.event.customer", Missing: true, Create: pointer(false)}
	}, []string{"fail topic.exists", "skip"}, []string{"--operation Create"}},
	"topic may not be seen": {func(f *Facts) {
		f.Kafka.Topics[1] = Topic{Name: "outbox.event.customer", Failed: "cdcpub may not describe it"}
	},
		[]string{"fail topic.exists", "skip"}, []string{"--operation Write --operation Describe"}},
	"no WRITE":                         {func(f *Facts) { f.Kafka.Topics[0].Write = pointer(false) }, []string{"fail topic.write"}, []string{"--allow-principal User:cdcpub --operation Write"}},
	"single replica":                   {func(f *Facts) { f.Kafka.Topics[0].Replicas = 1; f.set("min.insync.replicas", "1") }, []string{"warn topic.replication"}, nil},
	"no leader":                        {func(f *Facts) { f.Kafka.Topics[0].Offline = []int32{3} }, []string{"fail topic.in_sync"}, []string{"1 partition without a leader (3)"}},
	"under min ISR":                    {func(f *Facts) { f.Kafka.Topics[0].UnderMin = []int32{1, 2} }, []string{"fail topic.in_sync"}, []string{"2 partitions"}},
	"min ISR 1":                        {func(f *Facts) { f.set("min.insync.replicas", "1") }, []string{"warn topic.min_insync"}, []string{"which may be the leader alone", "min.insync.replicas=2"}},
	"min ISR all":                      {func(f *Facts) { f.set("min.insync.replicas", "3") }, []string{"warn topic.min_insync"}, nil},
	"min ISR too big before Kafka 3.7": {func(f *Facts) { f.set("min.insync.replicas", "4") }, []string{"fail topic.min_insync"}, []string{"before Kafka 3.7 refuse every write", "min.insync.replicas=2"}},
	"min ISR too big":                  {func(f *Facts) { f.set("min.insync.replicas", "4"); f.Kafka.Topics[0].MinInSyncCapped = true }, []string{"warn topic.min_insync"}, []string{"all of them are needed", "min.insync.replicas=2"}},
	"min ISR 2 of 1": {func(f *Facts) {
		f.Kafka.Topics[0].Replicas, f.Kafka.Topics[0].MinInSyncCapped = 1, true
	}, []string{"warn topic.replication"}, []string{"2; with a single replica it changes nothing"}},
	"min ISR 2 of 1 before Kafka 3.7": {func(f *Facts) { f.Kafka.Topics[0].Replicas = 1 },
		[]string{"warn topic.replication", "fail topic.min_insync"}, []string{"min.insync.replicas is 2 with 1 replica", "min.insync.replicas=1"}},
	"unclean election":  {func(f *Facts) { f.set("unclean.leader.election.enable", "true") }, []string{"warn topic.unclean_election"}, nil},
	"batches too large": {func(f *Facts) { f.set("max.message.bytes", "100000") }, []string{"warn topic.message_size"}, []string{"kafka.batch_bytes to 98976"}},
	"no payload read, and a tiny limit": {func(f *Facts) {
		f.outbox().LargestPayload, f.outbox().PayloadRows, f.Setup.Compressed = 0, 0, false
		f.set("max.message.bytes", "1000")
	}, []string{"warn topic.message_size"}, []string{"kafka.batch_bytes is 512 KiB", "max.message.bytes=525312"}},
	"payload too large":               {func(f *Facts) { f.outbox().LargestPayload = 5 << 20 }, []string{"warn topic.message_size"}, []string{"5 MiB"}},
	"payload too large, uncompressed": {func(f *Facts) { f.outbox().LargestPayload, f.Setup.Compressed = 5<<20, false }, []string{"fail topic.message_size"}, nil},
	"compacted":                       {func(f *Facts) { f.set("cleanup.policy", "compact") }, []string{"warn topic.cleanup"}, []string{"tombstone"}},
	"LogAppendTime":                   {func(f *Facts) { f.set("message.timestamp.type", "LogAppendTime") }, nil, []string{"put their own time in place of the commit time"}},
	"old records refused":             {func(f *Facts) { f.set("message.timestamp.before.max.ms", "86400000") }, []string{"warn topic.timestamps"}, []string{"1 d"}},
	"old records refused by an older setting": {func(f *Facts) {
		delete(f.Kafka.Topics[0].Configs, "message.timestamp.before.max.ms")
		f.set("message.timestamp.difference.max.ms", "86400000")
	}, []string{"warn topic.timestamps"}, nil},
	"the backlog is refused": {func(f *Facts) {
		f.set("message.timestamp.before.max.ms", "60000")
	}, []string{"fail topic.timestamps"}, []string{"inactive for 1 h"}},
	"the backlog is deleted at once": {func(f *Facts) { f.set("retention.ms", "60000") }, []string{"warn topic.retention"}, []string{"inactive for 1 h", "retention.ms=7200000"}},
	"short retention without a backlog": {func(f *Facts) {
		f.set("retention.ms", "60000")
		f.ourSlot().ConfirmedLagBytes = pointer(int64(0))
	}, []string{"warn topic.retention"}, []string{"a consumer that is away for longer never sees them", "retention.ms=604800000"}},
	"short retention by the broker's time": {func(f *Facts) {
		f.set("retention.ms", "86399999")
		f.set("message.timestamp.type", "LogAppendTime")
	}, []string{"warn topic.retention"}, []string{"after the broker has them"}},
	"a day of retention": {func(f *Facts) { f.set("retention.ms", "86400000") }, nil, nil},
	"age of the backlog unknown": {func(f *Facts) {
		f.withVersion("16.10", 160010)
		f.ourSlot().InactiveSince = nil
	}, nil, []string{"16.10 does not know since when slot shop has been inactive"}},
	"kept for ever": {func(f *Facts) { f.set("retention.ms", "-1") }, nil, []string{"for ever"}},

	// This machine
	"address taken": {func(f *Facts) {
		f.Listen = Listen{Address: "127.0.0.1:9477", Refused: "another process listens at 127.0.0.1:9477"}
	}, []string{"warn http.listen"}, []string{"would not start on this machine: another process listens at 127.0.0.1:9477"}},
	"address taken by our publisher": {func(f *Facts) {
		f.Listen = Listen{Address: "127.0.0.1:9477", Refused: "another process listens at 127.0.0.1:9477", Ours: true}
	}, nil, []string{"the publisher of this slot answers at 127.0.0.1:9477"}},
	"address free": {func(f *Facts) { f.Listen = Listen{Address: "127.0.0.1:9477"} }, nil, []string{"nothing listens at 127.0.0.1:9477 yet"}},

	// Which topics
	"types may not be read":    {func(f *Facts) { f.outbox().Readable, f.outbox().Types = false, nil }, []string{"skip"}, []string{"publisher may not SELECT from public.outbox", "--types a,b"}},
	"not all types read":       {func(f *Facts) { f.outbox().TypesAll = false }, []string{"skip topic.names"}, []string{"only some rows"}},
	"empty outbox":             {func(f *Facts) { f.outbox().Types = nil }, []string{"skip"}, []string{"are empty"}},
	"types are given":          {func(f *Facts) { f.outbox().Readable, f.Setup.Types = false, []string{"order", "customer"} }, nil, []string{"in --types"}},
	"type that makes no topic": {func(f *Facts) { f.outbox().Types = []string{"order", "customer", "a b"} }, []string{"fail topic.names"}, []string{`"a b"`}},
	"template with another column": {func(f *Facts) {
		f.Setup.Route.Topic = "t.{event_type}"
		f.Kafka.Topics = nil
	}, []string{"skip"}, []string{"depends on column event_type"}},
	"one fixed topic": {func(f *Facts) {
		f.Setup.Route.Topic, f.Kafka.Topics = "events", []Topic{topicNamed("events")}
		f.outbox().Readable = false
	}, nil, []string{"as configured"}},
}

func (f *Facts) unreachable(code, text string) {
	pg := &f.Postgres
	failure := &Failure{Text: text, SQLState: code}
	*pg = Postgres{Server: pg.Server, User: pg.User, Database: pg.Database, Unreachable: failure, Replication: Replication{Refused: failure}}
	f.Setup.Types = []string{"customer", "order"}
}
