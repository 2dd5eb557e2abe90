package scenarios

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cdcpub/cdcpub/slotmon"
	"github.com/cdcpub/cdcpub/test/harness"
)

// A publication that lists the partitions of the outbox does not publish one
// that is attached later. check says so beforehand; the running publisher stops
// when there is one, and says from where on rows may be missing.
func TestPublicationThatListsPartitionsMissesALaterOne(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			parallel(t)
			w := harness.NewWebhook(t)
			partitionsListed(newStand(t, options{
				postgres: shared.Postgres(t, version, "max_prepared_transactions=10"), unprepared: true, http: true, sections: alerting(w),
				oracle: harness.OracleOptions{Tables: []string{"public.outbox_0", "public.outbox_1", "public.outbox_2"}},
			}), w)
		})
	}
}

func partitionsListed(s *stand, w *harness.Webhook) {
	s.sql = s.connect()
	s.exec(`CREATE TABLE outbox (event_id uuid DEFAULT gen_random_uuid(), aggregate_type text, aggregate_id text,
		aggregate_version bigint, event_type text, payload jsonb, PRIMARY KEY (event_id, aggregate_version)) PARTITION BY RANGE (aggregate_version)`)
	s.exec("CREATE TABLE outbox_0 PARTITION OF outbox FOR VALUES FROM (0) TO (4)")
	s.exec(fmt.Sprintf("CREATE PUBLICATION %s FOR TABLE outbox_0 WITH (publish = 'insert')", s.slot))
	s.prepare()
	checked := s.command("check", "-c", "{config}", "--types", "order")
	s.exit(checked)
	cure := fmt.Sprintf(`BEGIN; ALTER PUBLICATION "%[1]s" ADD TABLE "public"."outbox"; ALTER PUBLICATION "%[1]s" DROP TABLE `, s.slot)
	s.says(words(checked.Stdout()), "lists its partitions and not the table itself", cure)

	p := s.run()
	s.load(10, 20) // versions 0 to 3
	s.delivered()
	s.watched()
	before := s.written()
	s.exec("CREATE TABLE outbox_1 PARTITION OF outbox FOR VALUES FROM (4) TO (8)")
	s.load(10, 20) // versions 4 to 7, in the new one
	text := fmt.Sprint(s.blockedProcess(p)["error"])
	s.says(text, "does not contain outbox table public.outbox", "outbox_1")
	from := s.lsnIn(text, `rows written after LSN ([0-9A-F]+/[0-9A-F]+) may be missing in the topics`)
	if from > before {
		s.t.Errorf("the publisher says that nothing before %s is missing; the partition was attached after %s", from, before)
	}
	s.alert(w, 0, slotmon.PublicationTables, "raised", slotmon.Critical, "public.outbox_1", "ADD TABLE public.outbox")
	s.stopBlocked(p)

	// What check told, and what the alert told.
	s.exec(cure + "outbox_0; ALTER PUBLICATION " + s.slot + " SET (publish_via_partition_root = true); COMMIT")
	checked = s.command("check", "-c", "{config}", "--types", "order")
	s.exit(checked)
	s.says(words(checked.Stdout()), "is published by "+s.slot)
	cured := s.written()
	p = s.run()
	s.exec("CREATE TABLE outbox_2 PARTITION OF outbox FOR VALUES FROM (8) TO (1000)")
	s.load(10, 20) // versions 8 to 11, in a partition that the root brings along
	s.delivered()
	s.watched()
	s.until("nothing is wrong with the publication", func() bool { return s.status().at("stall") == nil })
	s.stop(p)
	s.lostBetween(200, from.String(), cured.String())
}

// words joins the lines of a report.
func words(report string) string { return strings.Join(strings.Fields(report), " ") }
