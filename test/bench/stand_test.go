package bench

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/test/harness"
)

// stand is the servers and programs that all loads share.
type stand struct {
	server *pgserver.Server
	kafka  *harness.Cluster
	offsets
	binary string
}

func newStand(b *testing.B) *stand {
	s := &stand{
		server: harness.PostgresWith(b, pgserver.Options{Durable: true, Settings: map[string]string{
			"max_wal_size": "16GB", "max_replication_slots": "40", "shared_buffers": "512MB", "max_connections": "60",
		}}),
		kafka:  harness.Kafka(b, harness.KafkaOptions{Optimized: true}),
		binary: *program,
	}
	if s.binary == "" {
		s.binary = harness.Build(b, harness.BuildOptions{Tags: "release"})
	}
	s.offsets = newOffsets(b, s.kafka.Brokers()[0])
	s.warm(b, s.kafka.Brokers()[0])
	return s
}

// backlog is a database that holds the rows of a load, and slots that wait in
// front of them.
type backlog struct {
	load load
	url  string
	sql  *pgx.Conn
	end  pglogrepl.LSN // of the WAL when the last row was written
}

// newBacklog makes the database, the slots, and then the rows.
func (s *stand) newBacklog(b *testing.B, l load, slots []string) *backlog {
	k := &backlog{load: l, url: s.server.URL(harness.Database(b, s.server))}
	var err error
	if k.sql, err = pgx.Connect(b.Context(), k.url); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = k.sql.Close(context.Background()) })
	k.exec(b, `CREATE TABLE outbox (
		event_id uuid PRIMARY KEY DEFAULT gen_random_uuid(), aggregate_type text NOT NULL, aggregate_id text NOT NULL,
		aggregate_version bigint NOT NULL, event_type text NOT NULL, payload jsonb,
		created_at timestamptz NOT NULL DEFAULT now())`)
	k.exec(b, "CREATE PUBLICATION cdcpub FOR TABLE outbox WITH (publish = 'insert')")
	for _, slot := range slots {
		k.exec(b, "SELECT pg_create_logical_replication_slot($1, 'pgoutput')", slot)
	}
	if l.Rate == 0 {
		k.fill(b)
	}
	return k
}

// fill writes the rows. Their values depend on their numbers alone.
func (k *backlog) fill(b *testing.B) {
	l := k.load
	b.Logf("%s: writing %d rows", l.Name, l.rows())
	k.exec(b, "SET synchronous_commit = off") // a backlog need not wait for its disk
	k.exec(b, fmt.Sprintf(`DO $$ BEGIN FOR t IN 0..%d LOOP
		INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type, payload)
		SELECT 'type' || i %% %d, 'order-' || i %% %d, i / %d, 'OrderChanged', jsonb_build_object('number', i, 'note', repeat('x', %d))
		FROM generate_series(t * %d, (t + 1) * %d - 1) i;
		COMMIT; END LOOP; END $$`, l.Transactions-1, l.Topics, l.Aggregates, l.Aggregates, l.Payload, l.Rows, l.Rows))
	if err := k.sql.QueryRow(b.Context(), "SELECT pg_current_wal_lsn()").Scan(&k.end); err != nil {
		b.Fatal(err)
	}
	k.exec(b, "CHECKPOINT")
}

func (k *backlog) exec(b *testing.B, sql string, args ...any) {
	b.Helper()
	if _, err := k.sql.Exec(b.Context(), sql, args...); err != nil {
		b.Fatal(err)
	}
}

// release drops what the load leaves, so that the next one has the WAL and the
// disk to itself.
func (k *backlog) release(b *testing.B) {
	k.exec(b, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()")
	k.exec(b, "DROP TABLE outbox")
	k.exec(b, "CHECKPOINT")
}
