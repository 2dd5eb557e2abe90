package scenarios

import (
	"fmt"
	"testing"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

// Two schemas, quoted names, two shapes of table, three topics, one slot.
func TestTablesOfSeveralSchemasOnOneSlot(t *testing.T) {
	parallel(t)
	s := newStand(t, options{
		unprepared: true,
		tables:     []string{`"Sales"."Out Box"`, `billing."OutboxEvents"`},
		types:      []string{"invoice", "special"},
		oracle:     harness.OracleOptions{AllColumns: true},
	})
	s.options.sections = map[string]string{"kafka": fmt.Sprintf("  topics: {refund: %s}\n", s.topicOf("special"))}
	s.sql = s.connect()
	s.exec(`CREATE SCHEMA "Sales"`)
	s.exec(`CREATE SCHEMA billing`)
	// The second table has raw bytes and none of the optional columns.
	s.exec(`CREATE TABLE billing."OutboxEvents" (event_id uuid PRIMARY KEY DEFAULT gen_random_uuid(), aggregate_type text,
		aggregate_id text, aggregate_version bigint, event_type text, payload bytea)`)
	s.prepare()
	p := s.run()
	for i := range 50 {
		s.exec("BEGIN")
		s.exec(`INSERT INTO "Sales"."Out Box" (aggregate_type, aggregate_id, aggregate_version, event_type, payload, schema_version, headers) VALUES
			('order',   'a', $1, 'Opened', '{"z": 1.00, "ä": ["€", null]}', 3, '{"traceparent": "00-ab\"c", "n": 1.50, "none": null, "deep": {"a": [1, 2]}, "": "", "yes": true}'),
			('invoice', 'ü/b', $1, 'Sent', NULL, NULL, '{}'),
			('refund',  'c', $1, '', '""', 4, NULL)`, i)
		s.exec(`INSERT INTO billing."OutboxEvents" (aggregate_type, aggregate_id, aggregate_version, event_type, payload) VALUES
			('invoice', 'ü/b', $1, 'Paid', '\x00ff0a5c22'), ('order', 'd', $1, 'Empty', ''), ('refund', 'c', $1, 'Gone', NULL)`, 1000+i)
		s.exec(`INSERT INTO "Sales"."Out Box" (aggregate_type, aggregate_id, aggregate_version, event_type) VALUES ('order', 'd', $1, 'Last')`, 2000+i)
		s.exec("COMMIT")
	}
	s.delivered()
	s.stop(p)
	topics := map[string]string{"order": s.topic, "invoice": s.topicOf("invoice"), "refund": s.topicOf("special")}
	report := s.check(func(o *verify.Options) {
		o.Expect.Topic = func(r verify.Row) string { return topics[r.AggregateType] }
		o.Expect.Value = func(r verify.Row) []byte {
			if _, isJSON := r.Columns["headers"]; isJSON {
				return r.Payload
			}
			return unhex(r)
		}
		o.Expect.Headers = verify.DefaultHeaders
	})
	if report.Events != 350 || report.Altered != 0 || report.Repeated != 0 {
		t.Errorf("%d events, %d altered, %d repeated", report.Events, report.Altered, report.Repeated)
	}
	empty := 0
	for _, row := range s.rows {
		if row.EventType == "Empty" && row.Payload != nil && len(unhex(row)) == 0 {
			empty++
		}
	}
	if empty != 50 {
		t.Errorf("the history has %d empty payloads, the scenario wants 50", empty)
	}
}

// A partitioned outbox arrives under the names of its leaves, unless the
// publication publishes via the root. A partition is attached while cdcpub
// runs.
func TestPartitionedOutbox(t *testing.T) {
	for _, viaRoot := range []bool{false, true} {
		t.Run(fmt.Sprintf("publish_via_partition_root=%v", viaRoot), func(t *testing.T) {
			parallel(t)
			partitioned(newStand(t, options{
				unprepared: true,
				oracle:     harness.OracleOptions{Tables: []string{"public.outbox_0", "public.outbox_1", `archive."Leaf 2"`}},
			}), viaRoot)
		})
	}
}

func partitioned(s *stand, viaRoot bool) {
	s.sql = s.connect()
	s.exec("CREATE SCHEMA archive")
	s.exec(`CREATE TABLE outbox (event_id uuid DEFAULT gen_random_uuid(), aggregate_type text, aggregate_id text,
		aggregate_version bigint, event_type text, payload jsonb, PRIMARY KEY (event_id, aggregate_version)) PARTITION BY RANGE (aggregate_version)`)
	s.exec("CREATE TABLE outbox_0 PARTITION OF outbox FOR VALUES FROM (0) TO (4)")
	s.exec("CREATE TABLE outbox_1 PARTITION OF outbox FOR VALUES FROM (4) TO (8)")
	s.exec(fmt.Sprintf("CREATE PUBLICATION %s FOR TABLE outbox WITH (publish = 'insert', publish_via_partition_root = %v)", s.slot, viaRoot))
	s.prepare()
	p := s.run()
	s.load(20, 20) // versions 0 to 7, in both partitions
	s.delivered()
	// Another order of columns than the parent's, as a table attached later has.
	s.exec(`CREATE TABLE archive."Leaf 2" (payload jsonb, event_type text, aggregate_version bigint NOT NULL, aggregate_id text,
		aggregate_type text, event_id uuid NOT NULL DEFAULT gen_random_uuid())`)
	s.exec(`ALTER TABLE outbox ATTACH PARTITION archive."Leaf 2" FOR VALUES FROM (8) TO (1000)`)
	s.load(20, 20) // versions 8 to 15, in the new one
	s.delivered()
	s.stop(p)
	p = s.run()
	s.load(1, 20)
	s.delivered()
	s.stop(p)
	if report := s.check(nil); report.Events != 820 {
		s.t.Errorf("%d events, want 820", report.Events)
	}
}
