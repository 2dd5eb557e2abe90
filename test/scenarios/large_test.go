package scenarios

import (
	"fmt"
	"testing"

	"github.com/cdcpub/cdcpub/internal/verify"
)

// large is the size of a payload in bytes.
const large = 5 << 20

// largePayloads are expressions of that size, by the type of the column.
var largePayloads = map[string][]string{
	"bytea": {"noise(%d)", "convert_to(repeat('x', %d), 'UTF8')", "convert_to(repeat('ü', %d / 2), 'UTF8')"},
	"text":  {"left(encode(noise(%d), 'base64'), %[1]d)", "repeat('x', %d)", "repeat('é€', %d / 5)"},
	"jsonb": {"to_jsonb(encode(noise(%d / 2), 'hex'))", "jsonb_build_object('a', repeat('é', %d / 2))"},
}

// Random bytes do not compress.
const noiseFunction = `CREATE FUNCTION noise(n int) RETURNS bytea LANGUAGE sql AS $$
	SELECT substr(string_agg(decode(md5(random()::text), 'hex'), ''), 1, n) FROM generate_series(1, n / 16 + 1) $$`

// storages are the ways in which PostgreSQL stores what does not fit into a
// page: compressed, or out of line as it is.
var storages = []string{"EXTENDED", "EXTERNAL", "MAIN"}

func TestPayloadsOfFiveMegabytes(t *testing.T) {
	for kind, payloads := range largePayloads {
		t.Run(kind, func(t *testing.T) {
			o := options{topic: map[string]string{"max.message.bytes": fmt.Sprint(large + large/5)}, sections: map[string]string{"kafka": "  compression: none\n"}}
			parallel(t)
			largeRows(newStand(t, o), kind, payloads)
		})
	}
}

// largeRows: byte for byte, between small neighbours of the same aggregate, and
// also if the row is gone before it is read.
func largeRows(s *stand, kind string, payloads []string) {
	s.exec(noiseFunction)
	s.exec("ALTER TABLE outbox ALTER payload TYPE " + kind + " USING NULL")
	p := s.run()
	version := 0
	add := func(payload string) {
		s.exec("INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type, payload) VALUES ('order', 'one', $1, 'T', "+payload+")", version)
		version++
	}
	for i, storage := range storages {
		s.exec("ALTER TABLE outbox ALTER payload SET STORAGE " + storage)
		s.exec("BEGIN")
		add("NULL")
		add(fmt.Sprintf(payloads[i%len(payloads)], large))
		add("NULL")
		s.exec("DELETE FROM outbox")
		s.exec("COMMIT")
	}
	s.delivered()
	s.stop(p)
	report := s.check(func(o *verify.Options) {
		if kind == "bytea" {
			o.Expect.Value = unhex
		}
	})
	sizes := 0
	for _, row := range s.rows {
		if len(row.Payload) >= large {
			sizes++
		}
	}
	if report.Events != version || sizes != len(storages) {
		s.t.Errorf("%d events, %d of them large; want %d and %d", report.Events, sizes, version, len(storages))
	}
}

// The brokers' default limit is 1 MiB. What is larger stands still, with the
// name of the setting, and goes on by itself once that is raised.
func TestAPayloadAboveTheDefaultLimitNamesTheSetting(t *testing.T) {
	parallel(t)
	s := newStand(t, options{patience: 2 * patience}) // it is tried again once a minute
	s.exec(noiseFunction)
	s.exec("ALTER TABLE outbox ALTER payload TYPE bytea USING NULL")
	p := s.run()
	s.exec(`INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type, payload)
		SELECT 'order', 'one', n, 'T', CASE n WHEN 1 THEN noise($1) END FROM generate_series(0, 2) n`, large)
	line := s.awaitLog(p, "rejected")
	s.says(fmt.Sprint(line["error"], line["msg"]), s.topic, "the topic's limit is 1048588", "raise max.message.bytes of the topic to 529")
	value := fmt.Sprint(large + large/5)
	s.no(s.kafka.AlterTopicConfig(s.ctx, s.topic, "max.message.bytes", &value))
	s.delivered()
	s.stop(p)
	if report := s.check(func(o *verify.Options) { o.Expect.Value = unhex }); report.Events != 3 || s.sessions() != 1 {
		t.Errorf("%d events, %d sessions; want 3 and 1", report.Events, s.sessions())
	}
}
