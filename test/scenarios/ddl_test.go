package scenarios

import (
	"fmt"
	"testing"
)

// harmless DDL leaves every column that is in use, in some type that its text
// makes sense in.
var harmlessDDL = []string{
	"ALTER TABLE outbox ADD note text",
	"ALTER TABLE outbox ADD n integer NOT NULL DEFAULT 7",
	"ALTER TABLE outbox RENAME note TO remark",
	"ALTER TABLE outbox ALTER n TYPE bigint",
	"ALTER TABLE outbox ALTER remark TYPE varchar(10), DROP n",
	"ALTER TABLE outbox DROP schema_version", // may be missing
	"ALTER TABLE outbox ADD schema_version text DEFAULT 'v3'",
	"ALTER TABLE outbox DROP headers, DROP remark, DROP created_at",
	`ALTER TABLE outbox ADD headers jsonb DEFAULT '{"added": "later"}'`,
	"ALTER TABLE outbox ALTER aggregate_version TYPE numeric, ALTER event_id TYPE text, ALTER event_type TYPE varchar",
	"ALTER TABLE outbox ALTER payload TYPE json",
	"ALTER TABLE outbox ALTER payload TYPE text",
	"ALTER TABLE outbox RENAME CONSTRAINT outbox_pkey TO pk",
	"ALTER TABLE outbox REPLICA IDENTITY FULL",
	"CREATE INDEX ON outbox (event_type)",
	"COMMENT ON TABLE outbox IS 'x'",
}

func TestDDLOnTheOutbox(t *testing.T) {
	parallel(t)
	ddlOnTheOutbox(newStand(t, everyColumn()))
}

// ddlOnTheOutbox: each row has the shape that the table had when it was written,
// also within one transaction, and what is rolled back never was.
func ddlOnTheOutbox(s *stand) {
	p := s.run()
	events := 0
	load := func(rows int) {
		s.load(1, rows)
		events += rows
	}
	for i, ddl := range harmlessDDL {
		s.inTransaction("ROLLBACK", 3, ddl) // not counted: it never was
		s.exec("BEGIN")
		s.insert(3)
		s.exec("SAVEPOINT s")
		s.exec(ddl)
		s.insert(3)
		s.exec("ROLLBACK TO s")
		s.insert(3)
		s.exec("COMMIT")
		events += 6
		if i%2 == 0 {
			s.inTransaction("COMMIT", 3, ddl)
			events += 6
		} else {
			load(3)
			s.exec(ddl)
			load(3)
		}
		if i == len(harmlessDDL)/2 {
			// The next one finds rows of shapes that the catalogs have forgotten.
			s.delivered()
			s.stop(p)
			s.betweenRuns()
			p = nil
		}
	}
	p = s.run()
	load(3)
	s.delivered()
	s.stop(p)
	if report := s.check(nil); report.Events != events || report.Repeated != 0 {
		s.t.Errorf("%d events and %d repeated, want %d and none", report.Events, report.Repeated, events)
	}
	shapes := map[string]bool{}
	for _, row := range s.rows {
		shapes[fmt.Sprint(len(row.Columns), row.Columns["schema_version"] != nil, row.Columns["headers"] != nil)] = true
	}
	if len(shapes) < 6 {
		s.t.Errorf("the history has %d shapes of rows: %v", len(shapes), shapes)
	}
}

// insert is load as one statement, for transactions of the scenario's own.
func (s *stand) insert(rows int) {
	s.t.Helper()
	s.exec(fmt.Sprintf(`INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type, payload)
		SELECT 'order', '%s-' || i %% %d, i / %d, 'OrderChanged', jsonb_build_object('number', i) FROM generate_series(%d, %d) i`,
		s.prefix, aggregates, aggregates, s.next, s.next+rows-1))
	s.next += rows
}

// inTransaction writes rows before and after a statement.
func (s *stand) inTransaction(end string, rows int, statement string) {
	s.t.Helper()
	s.exec("BEGIN")
	s.insert(rows)
	s.exec(statement)
	s.insert(rows)
	s.exec(end)
}

func TestEveryOperationIsPublishedAndOnlyInsertsCount(t *testing.T) {
	parallel(t)
	everyOperation(newStand(t, options{unprepared: true}))
}

// everyOperation: UPDATE, DELETE and TRUNCATE are in the stream and are no
// events, whatever the replica identity is.
func everyOperation(s *stand) {
	s.sql = s.connect()
	s.exec(`CREATE TABLE outbox (event_id uuid PRIMARY KEY DEFAULT gen_random_uuid(), aggregate_type text, aggregate_id text,
		aggregate_version bigint, event_type text, payload jsonb, note text)`)
	s.exec("CREATE TABLE orders (id int PRIMARY KEY, payload text)")
	s.exec("CREATE PUBLICATION " + s.slot + " FOR ALL TABLES WITH (publish = 'insert, update, delete, truncate')")
	s.prepare()
	p := s.run()
	large := "repeat(md5(random()::text), 4000)" // TOASTed, and not sent with an UPDATE that leaves it alone
	for _, identity := range []string{"DEFAULT", "FULL", "NOTHING"} {
		s.exec("ALTER TABLE outbox REPLICA IDENTITY " + identity)
		s.inTransaction("COMMIT", 5, "INSERT INTO orders VALUES (1, "+large+")")
		s.exec("BEGIN")
		s.insert(5)
		s.exec("UPDATE orders SET payload = " + large)
		if identity != "NOTHING" { // else PostgreSQL refuses
			s.exec("UPDATE outbox SET note = " + large)
			s.exec("UPDATE outbox SET aggregate_version = aggregate_version + 1000000")
			s.exec("UPDATE outbox SET event_id = gen_random_uuid()")
			s.exec("DELETE FROM outbox WHERE aggregate_id LIKE '%1'")
		}
		s.exec("TRUNCATE outbox, orders RESTART IDENTITY CASCADE")
		s.insert(5)
		s.exec("COMMIT")
		s.exec("TRUNCATE outbox")
		s.insert(5)
		s.delivered()
	}
	s.stop(p)
	if report := s.check(nil); report.Events != 75 || report.Records != 75 || s.sessions() != 1 {
		s.t.Errorf("%d events, %d records, %d sessions; want 75, 75 and 1", report.Events, report.Records, s.sessions())
	}
}
