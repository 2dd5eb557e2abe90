package scenarios

import (
	"fmt"
	"testing"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

// Names that need quotes, in every place that takes one. A slot's name may not.
func TestNamesThatNeedQuotes(t *testing.T) {
	columns := map[string]string{"event_id": "Event ID", "aggregate_type": "tü'pe x", "aggregate_id": "名前", "aggregate_version": "vér.sion's",
		"event_type": "SELECT", "payload": "päy:load"}
	o := options{
		unprepared: true, publication: `Pub "ä" o'clock`, types: []string{"special"},
		tables: []string{`"Sché ma"."Out ""Bøx"" 外"`},
		oracle: harness.OracleOptions{AllColumns: true, Columns: columns},
	}
	parallel(t)
	quoted(newStand(t, o), columns)
}

func quoted(s *stand, columns map[string]string) {
	outbox := "  columns:\n"
	for part, name := range columns {
		outbox += fmt.Sprintf("    %s: %q\n", part, name)
	}
	outbox += "    schema_version: ''\n    headers: 'Köpfe'\n"
	s.options.sections = map[string]string{
		"outbox": outbox + "  headers: {id: 'Event ID', 'é v': \"vér.sion's\", 'イ': SELECT}\n",
		"kafka":  fmt.Sprintf("  topics: {'ördér 注文': %s}\n", s.topicOf("special")),
	}
	s.sql = s.connect()
	s.exec(`CREATE SCHEMA "Sché ma"`)
	s.prepare()
	const table = `"Sché ma"."Out ""Bøx"" 外"`
	insert := "INSERT INTO " + table + ` ("tü'pe x", "名前", "vér.sion's", "SELECT", "päy:load", "Köpfe") VALUES `
	p := s.run()
	for i := range 10 {
		s.exec("BEGIN")
		s.exec(insert+`('order', 'ключ ' || chr(128512), $1, 'création', '{"ß": "€😀"}', '{"заголовок": "значение", "n\u00e9": "\u20ac"}')`, i)
		s.exec(insert+`('ördér 注文', 'a"b''c\d', $1, '', '"😀"', NULL)`, i)
		s.exec(fmt.Sprintf(`ALTER TABLE %s ADD "Neue Spalte %d" text DEFAULT 'ü'`, table, i))
		s.exec(insert+`('order', ' ', $1, 'x', NULL, NULL)`, i)
		s.exec("COMMIT")
	}
	s.delivered()
	s.stop(p)
	report := s.check(func(o *verify.Options) {
		o.Expect.Topic = func(r verify.Row) string {
			if r.AggregateType == "order" {
				return s.topic
			}
			return s.topicOf("special")
		}
		o.Expect.Headers = func(r verify.Row) []verify.Header {
			headers := []verify.Header{{Key: "id", Value: []byte(r.EventID)}, {Key: "é v", Value: fmt.Append(nil, r.Version)}, {Key: "イ", Value: []byte(r.EventType)}}
			if r.Columns["Köpfe"] != nil {
				headers = append(headers, verify.Header{Key: "né", Value: []byte("€")}, verify.Header{Key: "заголовок", Value: []byte("значение")})
			}
			return headers
		}
	})
	if report.Events != 30 {
		s.t.Errorf("%d events, want 30", report.Events)
	}
	// A row that cannot be published is named in the same letters, quoted.
	s.exec(insert + `('unknown 種', 'x', 1, 'x', NULL, NULL)`)
	p = s.run()
	line := s.awaitLog(p, "blocked")
	s.says(fmt.Sprint(line["error"]), `"Sché ma.Out \"Bøx\" 外"`, "unknown 種", "tü'pe x")
	s.stopBlocked(p)
}
