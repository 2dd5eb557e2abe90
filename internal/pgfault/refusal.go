package pgfault

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/internal/human"
)

// SQLSTATEs of a refused connection (PostgreSQL documentation, appendix A).
const (
	invalidPassword      = "28P01"
	invalidAuthorization = "28000"
	noSuchDatabase       = "3D000"
	noPrivilege          = "42501"
	tooManyConnections   = "53300"
	cannotConnectNow     = "57P03"
	notInThisState       = "55000"
	protocolViolation    = "08P01"
	badParameter         = "22023"
)

// The server's functions that tell the causes of one SQLSTATE apart
// (src/backend/utils/init/postinit.c).
const (
	checksDatabase = "CheckMyDatabase"
	startsBackend  = "InitPostgres"
)

// refusal is a server's own answer, with its cure. The SQLSTATE is part of the
// text: it is what the server's log and its documentation are searched for.
func (t Target) refusal(refused *pgconn.PgError) *Fault {
	f := &Fault{Text: fmt.Sprintf("%s (SQLSTATE %s)", human.OneLine(refused.Message), refused.Code), SQLState: refused.Code, Refused: true}
	role, database := identifier(t.User), identifier(t.Database)
	switch refused.Code {
	case invalidPassword:
		f.Cure = fmt.Sprintf("correct the user in %s, or its password (%s)", t.Stated, t.passwords())
	case invalidAuthorization:
		f.Cure = fmt.Sprintf("it takes a role that may log in, and a line in pg_hba.conf of the server, for example `hostssl %s %s ADDRESS/32 scram-sha-256`, then SELECT pg_reload_conf()", database, role)
	case noSuchDatabase:
		f.Cure = "correct the database in " + t.Stated
	case noPrivilege:
		f.Cure = "as a superuser: " + strings.Join(t.rights(refused.Routine), "; ")
	case tooManyConnections:
		f.Refused, f.Cure = false, t.fewerConnections()
	case cannotConnectNow:
		f.Refused, f.Cure = false, "wait until PostgreSQL has started"
	case notInThisState:
		f.Cure = fmt.Sprintf("as a superuser in another database: ALTER DATABASE %s ALLOW_CONNECTIONS true; or correct the database in %s", database, t.Stated)
	case protocolViolation, badParameter:
		f.Cure = "a connection pooler may be between: state the address of PostgreSQL itself in " + t.Stated
	default:
		f.Refused, f.Cure = false, "see the log of PostgreSQL"
	}
	return f
}

// passwords are the places where a password may come from.
func (t Target) passwords() string {
	if t.Stated != "postgres.url" && !strings.HasPrefix(t.Stated, "slot_monitor.standbys") {
		return "in the string itself, PGPASSWORD, ~/.pgpass"
	}
	return "postgres.password_file, postgres.password_command, PGPASSWORD, ~/.pgpass"
}

// rights are the statements that give what is missing; both if nobody can tell.
func (t Target) rights(routine string) []string {
	replication := "ALTER ROLE " + identifier(t.User) + " REPLICATION"
	connect := fmt.Sprintf("GRANT CONNECT ON DATABASE %s TO %s", identifier(t.Database), identifier(t.User))
	switch {
	case routine == checksDatabase || !t.Replication:
		return []string{connect}
	case routine == startsBackend:
		return []string{replication + " (on RDS: GRANT rds_replication TO " + identifier(t.User) + ")"}
	}
	return []string{replication, connect}
}

// fewerConnections: a walsender takes none of max_connections.
func (t Target) fewerConnections() string {
	if t.Replication {
		return "end a walsender that nobody needs (pg_stat_replication), or raise max_wal_senders and restart PostgreSQL"
	}
	return "end connections that nobody needs (pg_stat_activity), or raise the limit (max_connections with a restart, or CONNECTION LIMIT of the role or the database)"
}

func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
