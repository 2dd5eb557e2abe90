package provision

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// found is what the server has of a plan.
type found struct {
	server      server
	roles       []role  // as Plan.Roles
	tables      []table // as Plan.Tables
	publication *publication
	slot        *slot
}

type server struct {
	Database   string
	Version    string
	VersionNum int
	WALLevel   string
	InRecovery bool
	RDS        bool // has the role rds_replication
}

type role struct {
	Exists, Login, Right, Connect bool
}

type table struct {
	SchemaExists, Exists bool
	OID                  uint32
	Kind                 string
	Unlogged             []string // itself or partitions
	Columns              []string
	// Published tells if the publication contains it, itself or through all
	// its leaves.
	Published bool
	Filter    *string
	// Withheld are columns that a column list leaves out.
	Withheld []string
}

type publication struct {
	Insert, Update, Delete, Truncate, ViaRoot bool
}

type slot struct {
	Creating, Unusable, Failover bool
}

// look reads the catalogs and changes nothing.
func (p *Plan) look(ctx context.Context, conn *pgx.Conn) (*found, error) {
	at, err := lookAtServer(ctx, conn)
	if err != nil {
		return nil, err
	}
	f := &found{server: at}
	for _, wanted := range p.Roles {
		r, err := wanted.look(ctx, conn, f.server.RDS)
		if err != nil {
			return nil, fmt.Errorf("look at role %s: %w", wanted.Name, err)
		}
		f.roles = append(f.roles, r)
	}
	if f.publication, err = p.lookAtPublication(ctx, conn); err != nil {
		return nil, fmt.Errorf("look at publication %s: %w", p.Publication, err)
	}
	for _, wanted := range p.Tables {
		t, err := p.lookAtTable(ctx, conn, wanted)
		if err != nil {
			return nil, fmt.Errorf("look at table %s: %w", wanted, err)
		}
		f.tables = append(f.tables, t)
	}
	if f.slot, err = p.lookAtSlot(ctx, conn, f.server.VersionNum); err != nil {
		return nil, fmt.Errorf("look at slot %s: %w", p.Slot, err)
	}
	return f, nil
}

func lookAtServer(ctx context.Context, conn *pgx.Conn) (at server, err error) {
	err = conn.QueryRow(ctx, `SELECT current_database()::text, split_part(current_setting('server_version'), ' ', 1),
		current_setting('server_version_num')::int, current_setting('wal_level'), pg_is_in_recovery(), to_regrole($1) IS NOT NULL`, rdsReplication).
		Scan(&at.Database, &at.Version, &at.VersionNum, &at.WALLevel, &at.InRecovery, &at.RDS)
	if err != nil {
		return server{}, fmt.Errorf("look at the server: %w", err)
	}
	return at, nil
}

// look finds what the role may do already. A superuser may do everything.
func (r Role) look(ctx context.Context, conn *pgx.Conn, rds bool) (role, error) {
	right := "rolreplication"
	switch {
	case r.Right == Monitor:
		right = "pg_has_role(oid, 'pg_monitor', 'MEMBER')"
	case rds:
		right = "rolreplication OR pg_has_role(oid, '" + rdsReplication + "', 'MEMBER')"
	}
	found := role{Exists: true}
	err := conn.QueryRow(ctx, `SELECT rolcanlogin, rolsuper OR `+right+`, has_database_privilege(oid, current_database(), 'CONNECT')
		FROM pg_roles WHERE rolname = $1`, r.Name).Scan(&found.Login, &found.Right, &found.Connect)
	if errors.Is(err, pgx.ErrNoRows) {
		return role{}, nil
	}
	return found, err
}

func (p *Plan) lookAtPublication(ctx context.Context, conn *pgx.Conn) (*publication, error) {
	var found publication
	err := conn.QueryRow(ctx, "SELECT pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot FROM pg_publication WHERE pubname = $1", p.Publication).
		Scan(&found.Insert, &found.Update, &found.Delete, &found.Truncate, &found.ViaRoot)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return &found, err
}

func (p *Plan) lookAtTable(ctx context.Context, conn *pgx.Conn, wanted Table) (table, error) {
	const look = `SELECT c.oid IS NOT NULL, coalesce(c.oid, 0), coalesce(c.relkind::text, ''),
		ARRAY(SELECT l.oid::regclass::text FROM pg_class l WHERE l.relpersistence = 'u'
			AND l.oid IN (SELECT c.oid UNION SELECT relid FROM pg_partition_tree(c.oid)) ORDER BY 1),
		ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped)
		FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = $2 WHERE n.nspname = $1`
	found := table{SchemaExists: true}
	err := conn.QueryRow(ctx, look, wanted.Schema, wanted.Name).Scan(&found.Exists, &found.OID, &found.Kind, &found.Unlogged, &found.Columns)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return table{}, nil
	case err != nil || !found.Exists:
		return found, err
	}
	return found, p.lookAtPublished(ctx, conn, &found)
}

// lookAtPublished finds how the publication contains an existing table.
// pg_publication_tables has row filters and column lists since PostgreSQL 15;
// the columns are listed even if there is no list.
func (p *Plan) lookAtPublished(ctx context.Context, conn *pgx.Conn, found *table) error {
	const contains = `WITH published AS (
			SELECT to_regclass(format('%I.%I', schemaname, tablename))::oid AS oid FROM pg_publication_tables WHERE pubname = $1
		), leaves AS (
			SELECT oid FROM pg_class WHERE relkind <> 'p' AND oid IN (SELECT $2::oid UNION SELECT relid FROM pg_partition_tree($2::oid))
		)
		SELECT EXISTS (SELECT FROM pg_publication p WHERE pubname = $1
				AND (puballtables OR EXISTS (SELECT FROM pg_publication_rel WHERE prpubid = p.oid AND prrelid = $2::oid)))
			OR EXISTS (SELECT FROM leaves) AND NOT EXISTS (SELECT FROM leaves l WHERE NOT EXISTS (
				SELECT FROM published WHERE oid = l.oid OR oid IN (SELECT relid FROM pg_partition_ancestors(l.oid))))`
	if err := conn.QueryRow(ctx, contains, p.Publication, found.OID).Scan(&found.Published); err != nil {
		return err
	}
	const limits = `WITH published AS (SELECT to_jsonb(t) AS t FROM pg_publication_tables t WHERE pubname = $1
			AND to_regclass(format('%I.%I', schemaname, tablename)) IN (SELECT $2::oid UNION SELECT relid FROM pg_partition_tree($2::oid)))
		SELECT (SELECT min(t ->> 'rowfilter') FROM published),
			ARRAY(SELECT name FROM unnest($3::text[]) name WHERE EXISTS (SELECT FROM published WHERE NOT (t -> 'attnames' ? name)))`
	return conn.QueryRow(ctx, limits, p.Publication, found.OID, p.Required).Scan(&found.Filter, &found.Withheld)
}

func (p *Plan) lookAtSlot(ctx context.Context, conn *pgx.Conn, version int) (*slot, error) {
	failover := "false"
	if version >= 170000 {
		failover = "failover"
	}
	var found slot
	err := conn.QueryRow(ctx, `SELECT coalesce(slot_type = 'logical' AND active AND confirmed_flush_lsn IS NULL, false),
		coalesce(plugin IS DISTINCT FROM 'pgoutput' OR database <> current_database() OR two_phase OR wal_status = 'lost' OR restart_lsn IS NULL, true), `+
		failover+` FROM pg_replication_slots WHERE slot_name = $1`, p.Slot).Scan(&found.Creating, &found.Unusable, &found.Failover)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return &found, err
}
