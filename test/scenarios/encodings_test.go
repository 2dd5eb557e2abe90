package scenarios

import (
	"context"
	"fmt"
	"net/url"
	"testing"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

// encoded gives the stand a database of another encoding than UTF8.
func (s *stand) encoded(encoding string) {
	s.t.Helper()
	name := s.slot + "_encoded"
	admin, err := pgx.Connect(s.ctx, s.pg.URL("postgres"))
	s.no(err)
	s.t.Cleanup(func() {
		ctx := context.Background()
		defer admin.Close(ctx)
		for _, sql := range []string{
			`SELECT pg_terminate_backend(active_pid, 10000) FROM pg_replication_slots WHERE active AND database = '` + name + `'`,
			`SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = '` + name + `'`,
			`DROP DATABASE ` + name + ` WITH (FORCE)`,
		} {
			if _, err := admin.Exec(ctx, sql); err != nil {
				s.t.Logf("the database %s stays: %v", name, err)
			}
		}
	})
	_, err = admin.Exec(s.ctx, fmt.Sprintf("CREATE DATABASE %s ENCODING '%s' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0", name, encoding))
	s.no(err)
	// A client gets the encoding of the database unless it asks for another.
	s.options.login = s.pg.URL(name)
	url, err := url.Parse(s.options.login)
	s.no(err)
	query := url.Query()
	query.Set("client_encoding", "UTF8")
	url.RawQuery = query.Encode()
	s.url = url.String()
	s.prepare()
}

// encodings is a stand whose table has a name of its own.
func encodings(table string) options {
	sections := monitored("1s")
	return options{unprepared: true, http: true, sections: sections, tables: []string{"public." + table}, oracle: harness.OracleOptions{AllColumns: true}}
}

// write writes a row of the one table. Its last arguments are nil or JSON.
func (s *stand) write(id string, version int, kind string, payload, headers any) {
	s.t.Helper()
	s.exec("INSERT INTO "+s.options.tables[0]+" (aggregate_type, aggregate_id, aggregate_version, event_type, payload, headers) VALUES ('order', $1, $2, $3, $4, $5)",
		id, version, kind, payload, headers)
}

// What is published is UTF-8, whatever the database stores.
func TestDatabasesOfOtherEncodings(t *testing.T) {
	for encoding, text := range map[string]string{"LATIN1": "Grüße é ÿ", "EUC_JP": "東京 カナ ｶﾅ", "WIN1251": "Привет", "SQL_ASCII": "Grüße 東京 😀"} {
		t.Run(encoding, func(t *testing.T) {
			parallel(t)
			s := newStand(t, encodings(`"`+text+`"`))
			s.encoded(encoding)
			p := s.run()
			for i := range 10 {
				s.write(text, i, text, `{"`+text+`": "`+text+`"}`, `{"`+text+`": "`+text+`", "a": 1}`)
			}
			s.delivered()
			s.stop(p)
			report := s.check(nil)
			if report.Events != 10 || s.rows[9].AggregateID != text {
				t.Errorf("%d events, the last of %q, want 10 of %q", report.Events, s.rows[9].AggregateID, text)
			}
		})
	}
}

// A text that is no UTF-8 is never published, and never skipped: the stream
// stands still, says what it is, and goes on when the row is given up. In a
// database with the encoding SQL_ASCII the row is known; elsewhere PostgreSQL
// itself cannot decode it.
func TestTextThatIsNotUTF8StandsStill(t *testing.T) {
	for encoding, c := range map[string]struct {
		bytes string
		says  []string
	}{
		"SQL_ASCII": {`\x4772fc6e`, []string{"row 1 of the transaction", `table public.outbox`, "column payload is not UTF-8: byte 0xfc at offset 2", "make the column bytea"}},
		"EUC_JP":    {`\x8fa1a1`, []string{"PostgreSQL cannot convert a text in the transaction committed at LSN", "SQLSTATE 22P05", "move the database to UTF8"}},
	} {
		t.Run(encoding, func(t *testing.T) {
			parallel(t)
			notUTF8(newStand(t, encodings("outbox")), encoding, c.bytes, c.says)
		})
	}
}

// PostgreSQL reads ahead, and reports the row that it cannot convert within
// milliseconds, before any of the good ones in front of it was published. They
// are published and confirmed all the same, and once: without that the README's
// procedure would have no end.
func TestGoodRowsInFrontOfTextThatCannotBeConverted(t *testing.T) {
	parallel(t)
	s := newStand(t, encodings("outbox"))
	s.encoded("EUC_JP")
	s.exec(`ALTER TABLE outbox ALTER payload TYPE text`)
	for i := range 5 {
		s.write("one", i, "T", "before", nil)
	}
	good := s.history()
	faulty := verify.Row{}
	s.no(s.sql.QueryRow(s.ctx, `INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type, payload)
		VALUES ('order', 'one', 5, 'T', convert_from('\x8fa1a1', 'EUC_JP')) RETURNING event_id::text`).Scan(&faulty.EventID))
	faulty.CommitEnd = s.skipInOracle()
	s.write("one", 6, "T", "behind", nil)

	// After every start, the state is the same. Nothing is sent again.
	var text string
	for range 2 {
		p := s.launch()
		text = fmt.Sprint(s.blockedProcess(p)["error"])
		s.says(text, "what was committed before is delivered and confirmed")
		if lsn := s.confirmed(); lsn < good[4].CommitEnd || lsn >= faulty.CommitEnd {
			s.t.Errorf("%s is confirmed; the rows before end at %s, the faulty transaction at %s", lsn, good[4].CommitEnd, faulty.CommitEnd)
		}
		report := s.judge(func(o *verify.Options) { o.Incomplete = true })
		if !report.OK() || report.Records != 5 || report.Pending != 1 {
			s.t.Fatalf("while the stream is blocked:\n%s", report.Table())
		}
		s.stopBlocked(p)
		s.betweenRuns()
	}
	s.exec("SET client_encoding = 'SQL_ASCII'")
	s.giveUp(submatch(text, `committed at LSN ([0-9A-F]+/[0-9A-F]+)`), faulty)
	s.exec("SET client_encoding = 'UTF8'")
	p := s.run()
	s.write("one", 7, "T", "after", nil)
	s.delivered()
	s.stop(p)
	if report := s.check(nil); report.Events != 7 || report.Records != 7 {
		s.t.Errorf("%d events and %d records, want 7 of each", report.Events, report.Records)
	}
}

func notUTF8(s *stand, encoding, bytes string, says []string) {
	s.encoded(encoding)
	s.exec(`ALTER TABLE outbox ALTER payload TYPE text`)
	p := s.run()
	s.write("one", 1, "T", "before", nil)
	s.delivered()
	before := s.history()
	faulty := verify.Row{}
	s.no(s.sql.QueryRow(s.ctx, fmt.Sprintf(`INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type, payload)
		VALUES ('order', 'one', 2, 'T', convert_from('%s', '%s')) RETURNING event_id::text`, bytes, encoding)).Scan(&faulty.EventID))
	faulty.CommitEnd = s.skipInOracle()
	s.write("one", 3, "T", "behind", nil)

	line := s.blockedProcess(p)
	text := fmt.Sprint(line["error"])
	s.says(text, append(says, "A row that cannot be published", "client_encoding = SQL_ASCII")...)
	if line["slot"] != s.slot {
		s.t.Errorf("the line names slot %v, not %s", line["slot"], s.slot)
	}
	if lsn := s.confirmed(); lsn < before[0].CommitEnd || lsn >= faulty.CommitEnd {
		s.t.Errorf("%s is confirmed; the row before ends at %s, the faulty one at %s", lsn, before[0].CommitEnd, faulty.CommitEnd)
	}
	report := s.judge(func(o *verify.Options) { o.Incomplete = true })
	if !report.OK() || report.Pending != 1 {
		s.t.Fatalf("while the stream is blocked:\n%s", report.Table())
	}
	s.stopBlocked(p)
	s.exec("SET client_encoding = 'SQL_ASCII'")
	s.giveUp(submatch(text, `committed at LSN ([0-9A-F]+/[0-9A-F]+)`), faulty)
	s.exec("SET client_encoding = 'UTF8'")
	p = s.run()
	s.write("one", 4, "T", "after", nil)
	s.delivered()
	s.stop(p)
	if report := s.check(nil); report.Events != 3 || report.Records-report.Repeated != 3 {
		s.t.Errorf("%d events and %d records, want 3", report.Events, report.Records)
	}
}

// skipInOracle moves the oracle past the transactions that it has not shown,
// which it could not show as UTF-8 either, and returns the end of the last.
func (s *stand) skipInOracle() (end pglogrepl.LSN) {
	s.t.Helper()
	s.no(s.sql.QueryRow(s.ctx, `SELECT max(c.lsn)::text, max(pg_replication_slot_advance(s.slot_name, c.lsn)::text) FROM pg_replication_slots s,
		LATERAL (SELECT max(lsn) AS lsn FROM pg_logical_slot_peek_changes(s.slot_name, NULL, NULL)) c
		WHERE s.plugin = 'test_decoding' AND s.database = current_database()`).Scan(&end, new(string)))
	return end
}
