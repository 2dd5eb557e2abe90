package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/slotmon"
)

// Limits for each query that reads rows of an outbox table: of its time, and of
// the part of it that waits for a lock.
const (
	sampleTimeout = 5 * time.Second
	lockTimeout   = time.Second
)

// Read asks everything that one SQL connection can tell, and puts it into pg.
// Nothing is changed on the server. What fails is noted where it would be, and
// the rest is asked all the same.
//
// conn is an ordinary connection outside a transaction that nobody else uses.
// own is the process id of our replication connection, 0 if there was none: it
// may not have ended yet, and does not count.
func Read(ctx context.Context, conn *pgx.Conn, setup *Setup, own uint32, pg *Postgres) {
	r := reading{ctx, conn, setup}
	if err := r.safe(); err != nil {
		pg.SampleUnread, pg.AboutUnread, pg.ContentUnread = oneLine(err), oneLine(err), oneLine(err)
	}
	expected := &slotmon.Expected{
		Database: pg.Database, Publication: setup.Publication, Tables: setup.Tables, Columns: setup.Route.RequiredColumns(),
	}
	sample, err := slotmon.Read(ctx, conn, slotmon.Question{Expected: expected})
	if err != nil {
		pg.SampleUnread = oneLine(err)
	}
	pg.Sample = sample
	if pg.About, err = r.about(own); err != nil {
		pg.AboutUnread = oneLine(err)
	}
	line := make([]uint32, 0, len(setup.Tables))
	for _, name := range setup.Tables {
		table := r.table(name)
		line = append(line, table.Line...)
		pg.Tables = append(pg.Tables, table)
	}
	if pg.Content, err = r.content(line); err != nil {
		pg.ContentUnread = oneLine(err)
	}
}

// ReplicationFacts asks a connection with replication=database who the server
// is, and which settings the session has.
func ReplicationFacts(ctx context.Context, conn *pgconn.PgConn) (Replication, error) {
	var r Replication
	system, err := pglogrepl.IdentifySystem(ctx, conn)
	if err != nil {
		return r, fmt.Errorf("IDENTIFY_SYSTEM: %w", err)
	}
	r.SystemID, r.Timeline, r.Session = system.SystemID, system.Timeline, map[string]string{}
	var names []string
	for _, setting := range SessionSettings() {
		names = append(names, "'"+setting[0]+"'")
	}
	// A replication connection speaks the simple protocol only.
	results, err := conn.Exec(ctx, "SELECT lower(name), setting FROM pg_catalog.pg_settings WHERE lower(name) IN ("+strings.Join(names, ", ")+")").ReadAll()
	if err != nil {
		return r, fmt.Errorf("read the session's settings: %w", err)
	}
	for _, row := range results[0].Rows {
		r.Session[string(row[0])] = string(row[1])
	}
	return r, nil
}

type reading struct {
	ctx   context.Context
	conn  *pgx.Conn
	setup *Setup
}

// safe makes the session read-only and closes it to objects that somebody put
// in front of pg_catalog.
func (r *reading) safe() error {
	_, err := r.conn.Exec(r.ctx, "SELECT pg_catalog.set_config('default_transaction_read_only', 'on', false), pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false)")
	return err
}

// scan decodes the one JSON value that a statement gives; false if it gives
// none.
func (r *reading) scan(to any, sql string, args ...any) (bool, error) {
	var text []byte
	err := r.conn.QueryRow(r.ctx, sql, args...).Scan(&text)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, err
	case text == nil:
		return false, nil
	}
	return true, json.Unmarshal(text, to)
}

// aboutSQL: the roles are those that managed services give to their users in
// place of superuser.
const aboutSQL = `SELECT row_to_json(x)::text FROM (SELECT
	current_setting('wal_level') AS wal_level,
	current_setting('server_encoding') AS server_encoding,
	(SELECT count(*) FROM pg_stat_replication WHERE pid <> $1) AS senders,
	r.rolname AS role, r.rolsuper AS superuser, r.rolreplication AS replication,
	NULLIF(r.rolconnlimit, -1) AS connection_limit,
	pg_has_role('pg_monitor', 'USAGE') AS monitor,
	ARRAY(SELECT rolname FROM pg_roles m WHERE rolname = ANY ($2) ORDER BY rolname) AS cloud_roles,
	ARRAY(SELECT rolname FROM pg_roles m WHERE rolname = ANY ($2) AND pg_has_role(r.oid, m.oid, 'MEMBER') ORDER BY rolname) AS member_of,
	pg_backend_pid() AS backend_pid
	FROM pg_roles r WHERE r.rolname = current_user) x`

var cloudRoles = []string{"rds_replication", "rds_superuser", "cloudsqlsuperuser", "azure_pg_admin", "alloydbsuperuser"}

func (r *reading) about(own uint32) (*About, error) {
	about := &About{}
	found, err := r.scan(about, aboutSQL, int32(own), cloudRoles)
	if err == nil && !found {
		err = errors.New("the role is not in pg_roles")
	}
	if err != nil {
		return nil, err
	}
	about.Pooled = about.BackendPID != r.conn.PgConn().PID()
	about.ClockOffset, about.ClockError, err = r.clock()
	return about, err
}

// clock compares the clocks: the server's time was taken between our two.
func (r *reading) clock() (offset, uncertain time.Duration, err error) {
	const tries = 3 // the quickest counts
	for i := range tries {
		var server time.Time
		before := time.Now()
		if err := r.conn.QueryRow(r.ctx, "SELECT clock_timestamp()").Scan(&server); err != nil {
			return 0, 0, err
		}
		half := time.Since(before) / 2
		if i == 0 || half < uncertain {
			offset, uncertain = server.Sub(before.Add(half)), half
		}
	}
	return offset, uncertain, nil
}

// contentSQL has the publication and, for oids, the entries of tables.
const contentSQL = `SELECT json_build_object(
	'via_root', p.pubviaroot,
	'generated', CASE WHEN to_jsonb(p) ? 'pubgencols' THEN CASE WHEN to_jsonb(p) ->> 'pubgencols' = 's' THEN 's' ELSE 'n' END ELSE '' END,
	'xmin_age', age(p.xmin),
	'slot_xmin_age', (SELECT age(catalog_xmin) FROM pg_replication_slots WHERE slot_name = $3),
	'members', (SELECT json_agg(json_build_object('oid', m.prrelid::int8, 'name', m.prrelid::regclass::text,
		'filter', %s,
		'columns', (SELECT json_agg(a.attname) FROM jsonb_array_elements_text(nullif(to_jsonb(m) -> 'prattrs', 'null')) k
			JOIN pg_attribute a ON a.attrelid = m.prrelid AND a.attnum = k::int2)) ORDER BY m.oid)
		FROM pg_publication_rel m WHERE m.prpubid = p.oid AND m.prrelid = ANY ($2::oid[])))::text
	FROM pg_publication p WHERE p.pubname = $1`

// content is nil if the publication does not exist.
func (r *reading) content(line []uint32) (*Content, error) {
	var filters bool // row filters came with 15
	err := r.conn.QueryRow(r.ctx, "SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'pg_publication_rel'::regclass AND attname = 'prqual')").Scan(&filters)
	if err != nil {
		return nil, err
	}
	filter := "''"
	if filters {
		filter = "coalesce(pg_get_expr(m.prqual, m.prrelid), '')"
	}
	content := &Content{}
	found, err := r.scan(content, fmt.Sprintf(contentSQL, filter), r.setup.Publication, line, r.setup.Slot)
	if err != nil || !found {
		return nil, err
	}
	return content, nil
}

func oneLine(err error) string {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return fmt.Sprintf("%s (SQLSTATE %s)", strings.Join(strings.Fields(refused.Message), " "), refused.Code)
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}
