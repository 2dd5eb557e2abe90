package scenarios

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

// shape is an outbox table whose columns have other types than those of init.
type shape struct {
	types [9]string // of event_id, aggregate_type, aggregate_id, aggregate_version, event_type, payload, schema_version, headers, at
	rows  []string  // VALUES of these; %[1]d is a number that no other row has
}

// uuidOf is an event id that no other table has.
const uuidOf = "lpad('%[1]d', 32, '0')::uuid"

var shapes = map[string]shape{
	"uuids": {
		types: [9]string{"uuid", "text", "uuid", "integer", "varchar(20)", "json", "smallint", "json", "timestamptz"},
		rows: []string{
			uuidOf + `, 'order', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', %[1]d, 'É', '{"b":  1.00, "a": [1,2 ], "b": null}', 3, '{"z":  "1", "a": {"x":  1}}', '2026-02-03 04:05:06.789012+05:30'`,
			uuidOf + `, 'order', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', %[1]d, '', '  "text"  ', NULL, 'null', NULL`,
		},
	},
	"numbers": {
		types: [9]string{"bigint", "varchar(10)", "bigint", "bigint", "text", "jsonb", "numeric(4,2)", "jsonb", "timestamp"},
		rows: []string{
			`1000000000000000000 + %[1]d, 'order', 9223372036854775807, %[1]d, 'T', '{"b":  1.00, "a": [1,2 ]}', 1.5, '{"long name": 1.10, "a": "x"}', '2026-02-03 04:05:06.7'`,
			`1000000000000000000 + %[1]d, 'order', -1, %[1]d, 'T', NULL, 12, NULL, NULL`,
		},
	},
	"numerics": {
		types: [9]string{"numeric", "text", "numeric(20,4)", "numeric", "\"char\"", "text", "real", "jsonb", "timestamptz"},
		rows: []string{
			`1e30 + %[1]d, 'order', 42.5, %[1]d.50, 'x', E'tab\t line\n quote '' back\\slash', 0.1, '{}', '2026-02-03 04:05:06+00'`,
			`1e30 + %[1]d, 'order', 42, %[1]d, 'y', '', 'NaN', NULL, NULL`,
		},
	},
	"chars": {
		types: [9]string{"char(40)", "citext", "char(10)", "bigint", "citext", "varchar", "varchar(3)", "text", "timestamptz"},
		rows: []string{
			`'event-%[1]d', 'order', 'a', %[1]d, 'Grüße', 'é', 'v1', '{"a": "b"}', NULL`,
			`'event-%[1]d', 'order', '漢字', %[1]d, 'T', NULL, NULL, NULL, NULL`,
		},
	},
	"domains": {
		types: [9]string{"event_key", "kind", "subject", "counter", "mood", "twice_blob", "counter", "object", "instant"},
		rows: []string{
			uuidOf + `, 'order', 'ä', %[1]d, 'so so', '\x00ff0a5c22', 7, '{"a": 1}', '2026-02-03 04:05:06.5+00'`,
			uuidOf + `, 'order', 'ä', %[1]d, 'fine', '', NULL, NULL, NULL`,
			uuidOf + `, 'order', 'ä', %[1]d, 'fine', NULL, 8, '{}', NULL`,
		},
	},
	"bytes": {
		types: [9]string{"text", "mood_kind", "blob", "bigint", "blob", "bytea", "bytea", "object", "timestamptz"},
		rows: []string{
			`'bytes-%[1]d', 'order', '\x00ff', %[1]d, '\xc3', '\x0001', '\xfe', '{"b": "x"}', NULL`,
			`'bytes-%[1]d', 'order', 'key', %[1]d, '', '', NULL, NULL, NULL`,
		},
	},
}

// binary are the columns of a table that hold bytea, in whatever disguise.
var binary = map[string][]string{
	"domains": {"payload"},
	"bytes":   {"aggregate_id", "event_type", "payload", "schema_version"},
}

func TestColumnTypes(t *testing.T) {
	parallel(t)
	o := options{unprepared: true, sections: map[string]string{"outbox": "  columns: {timestamp: at}\n"}}
	for name := range shapes {
		o.tables = append(o.tables, "public."+name)
	}
	// Versions of other types than integers are no business of the oracle's.
	o.oracle = harness.OracleOptions{AllColumns: true, Columns: map[string]string{"aggregate_version": "number"}}
	columnTypes(newStand(t, o))
}

// columnTypes: each part of a record can come from any type whose text makes
// sense there. bytea goes out as its bytes, also as a domain over a domain.
func columnTypes(s *stand) {
	s.sql = s.connect()
	for _, sql := range []string{
		"CREATE EXTENSION citext",
		"CREATE TYPE mood AS ENUM ('fine', 'so so')", "CREATE TYPE mood_kind AS ENUM ('order', 'invoice')", "CREATE DOMAIN kind AS mood_kind",
		"CREATE DOMAIN event_key AS uuid NOT NULL", "CREATE DOMAIN subject AS text CHECK (value <> '')", "CREATE DOMAIN counter AS bigint",
		"CREATE DOMAIN blob AS bytea", "CREATE DOMAIN twice_blob AS blob", "CREATE DOMAIN object AS jsonb", "CREATE DOMAIN instant AS timestamptz",
	} {
		s.exec(sql)
	}
	for name, shape := range shapes {
		t := shape.types
		s.exec(fmt.Sprintf(`CREATE TABLE %[1]s (tags text[] DEFAULT '{a,"b c",NULL}', event_id %[2]s PRIMARY KEY, aggregate_type %[3]s, aggregate_id %[4]s,
			aggregate_version %[5]s, origin text DEFAULT '%[1]s', moods mood[] DEFAULT '{fine}', event_type %[6]s, payload %[7]s, schema_version %[8]s, headers %[9]s, at %[10]s, number bigint,
			twice bigint GENERATED ALWAYS AS (number * 2) STORED, spans int4range DEFAULT '[1,5)')`,
			name, t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], t[8]))
	}
	s.prepare()
	p := s.run()
	number := 0
	for range 5 {
		s.exec("BEGIN")
		for name, shape := range shapes {
			for _, row := range shape.rows {
				number++
				s.exec(fmt.Sprintf("INSERT INTO %s (event_id, aggregate_type, aggregate_id, aggregate_version, event_type, payload, schema_version, headers, at, number) VALUES (%s, %d)",
					name, fmt.Sprintf(row, number), number))
			}
		}
		s.exec("COMMIT")
	}
	s.delivered()
	s.stop(p)
	report := s.check(typed)
	if report.Events != number || report.Records != number {
		s.t.Errorf("%d events and %d records of %d rows", report.Events, report.Records, number)
	}
}

// typed expects what the tables of this scenario should give.
func typed(o *verify.Options) {
	raw := func(r verify.Row, column string) []byte {
		value := r.Columns[column]
		switch {
		case value == nil:
			return nil
		case !slices.Contains(binary[*r.Columns["origin"]], column):
			return []byte(*value)
		}
		decoded, err := hex.DecodeString(strings.TrimPrefix(*value, `\x`))
		if err != nil {
			panic(err) // the oracle shows bytea as hex
		}
		return decoded
	}
	o.Expect.Key = func(r verify.Row) []byte { return raw(r, "aggregate_id") }
	o.Expect.Value = func(r verify.Row) []byte { return raw(r, "payload") }
	o.Expect.Headers = func(r verify.Row) []verify.Header {
		headers := verify.DefaultHeaders(r)
		for i := range headers {
			switch headers[i].Key {
			case "eventType":
				headers[i].Value = raw(r, "event_type")
			case "schemaVersion":
				headers[i].Value = raw(r, "schema_version")
			}
		}
		return headers
	}
	o.Expect.Timestamp = func(r verify.Row) time.Time {
		if r.Columns["at"] == nil {
			return r.CommitTime
		}
		at, err := time.Parse("2006-01-02 15:04:05.999999-07", *r.Columns["at"])
		if err != nil {
			at, err = time.Parse("2006-01-02 15:04:05.999999", *r.Columns["at"])
		}
		if err != nil {
			panic(err) // the oracle shows ISO
		}
		return at
	}
}
