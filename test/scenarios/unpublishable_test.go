package scenarios

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/verify"
)

func TestUnpublishableRowStandsStillUntilItIsGivenUp(t *testing.T) {
	for name, c := range map[string]struct{ kind, id, column string }{
		"NULL aggregate id":  {"'order'", "NULL", "aggregate_id"},
		"empty aggregate id": {"'order'", "''", "aggregate_id"},
		"illegal topic name": {"'no/topic'", "'one'", "aggregate_type"},
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			unpublishable(newStand(t, options{http: true}), c.kind, c.id, c.column)
		})
	}
}

// unpublishable: what lies before the row is delivered and confirmed, nothing
// behind it, and the error names all that the operator needs. Then the
// operator follows the README.
func unpublishable(s *stand, kind, id, column string) {
	s.exec("ALTER TABLE outbox ALTER aggregate_id DROP NOT NULL")
	p := s.run()
	s.load(10, 10)
	s.exec("BEGIN")
	const insert = "INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type) VALUES (%s, %s, 1, 'T')"
	for _, values := range [][2]string{{"'order'", "'before'"}, {kind, id}, {"'order'", "'behind'"}} {
		s.exec(fmt.Sprintf(insert, values[0], values[1]))
	}
	s.exec("COMMIT")
	s.load(5, 10)
	rows := s.history()
	if len(rows) != 153 {
		s.t.Fatalf("%d rows in the history, want 153", len(rows))
	}
	last, before, faulty, behind := rows[99], rows[100], rows[101], rows[102]

	line := s.blockedProcess(p)
	text := fmt.Sprint(line["error"])
	s.says(text, "row 2 of the transaction", "table public.outbox", faulty.EventID, "column "+column, "A row that cannot be published")
	if line["slot"] != s.slot {
		s.t.Errorf("the line names slot %v, not %s", line["slot"], s.slot)
	}
	commit := submatch(text, `committed at LSN ([0-9A-F]+/[0-9A-F]+)`)
	s.until("what lies before the row is confirmed", func() bool { return s.confirmed() >= last.CommitEnd })
	if lsn := s.confirmed(); lsn >= faulty.CommitEnd {
		s.t.Errorf("%s is confirmed; the transaction of the row ends at %s", lsn, faulty.CommitEnd)
	}
	given := map[string]bool{faulty.EventID: true}
	givenUp := func(o *verify.Options) { o.Quarantined = given }
	report := s.judge(func(o *verify.Options) { givenUp(o); o.Incomplete = true })
	if !report.OK() || report.Records-report.Repeated != 101 || report.Pending != 51 {
		s.t.Fatalf("while the stream is blocked:\n%s", report.Table())
	}

	s.stopBlocked(p)
	s.giveUp(commit, faulty, before)
	given[behind.EventID] = true // the unit is the transaction
	p = s.run()
	s.load(5, 10)
	s.delivered()
	s.stop(p)
	if report := s.check(givenUp); report.Events != 203 || report.Quarantined != 2 {
		s.t.Errorf("%d events, %d given up, want 203 and 2", report.Events, report.Quarantined)
	}
}

// giveUp does what the README says, with the statements that stand there.
func (s *stand) giveUp(commit string, rows ...verify.Row) {
	s.t.Helper()
	statements := s.readme("## A row that cannot be published")
	if len(statements) != 3 {
		s.t.Fatalf("the README has %d statements for it, the scenario knows 3", len(statements))
	}
	var found, end string
	var count int
	listed, err := s.sql.Query(s.ctx, statements[0])
	s.no(err)
	_, err = pgx.ForEachRow(listed, []any{&found, &end, &count}, func() error {
		if count > 0 {
			return errFirst
		}
		return nil
	})
	if err != errFirst || found != commit {
		s.t.Fatalf("the first transaction with rows has commit LSN %s (%v), the message says %s", found, err, commit)
	}
	if want := rows[0].CommitEnd.String(); end != want {
		s.t.Errorf("the README finds end LSN %s, test_decoding says %s", end, want)
	}
	saved, err := s.sql.Query(s.ctx, strings.ReplaceAll(statements[1], "<end LSN>", end))
	s.no(err)
	var lsn, data, all string
	_, err = pgx.ForEachRow(saved, []any{&lsn, &data}, func() error { all += data + "\n"; return nil })
	s.no(err)
	for _, row := range rows {
		s.says(all, row.EventID)
	}
	s.exec(strings.ReplaceAll(statements[2], "<end LSN>", end))
}

var errFirst = fmt.Errorf("found")

// readme returns the SQL statements of a section, with the scenario's slot and
// publication.
func (s *stand) readme(section string) []string {
	s.t.Helper()
	content, err := os.ReadFile("../../README.md")
	s.no(err)
	_, rest, found := strings.Cut(string(content), section+"\n")
	if !found {
		s.t.Fatalf("the README has no section %q", section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	var statements []string
	var open strings.Builder
	for line := range strings.Lines(rest + "\n") {
		if code, indented := strings.CutPrefix(line, "       "); indented {
			open.WriteString(code)
			continue
		}
		if open.Len() > 0 {
			statements = append(statements, strings.ReplaceAll(open.String(), "'cdcpub'", "'"+s.slot+"'"))
			open.Reset()
		}
	}
	return statements
}

func submatch(text, pattern string) string {
	if found := regexp.MustCompile(pattern).FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}
