package badinput

import "github.com/cdcpub/cdcpub/test/harness"

var initialise = []string{"init"}

// connection are mistakes on the way to PostgreSQL.
var connection = []mistake{
	{name: "nobody listens", config: with("@POSTGRES", "@CLOSED"), code: stays, names: []string{"127.0.0.1:", "refused"}},
	{name: "nobody listens, init", args: initialise, config: with("@POSTGRES", "@CLOSED"), code: 1, names: []string{"127.0.0.1:", "postgres.url"}},
	{name: "nobody listens, check", args: checking, config: with("@POSTGRES", "@CLOSED"), code: 3, names: []string{"postgres.reachable", "postgres.url"}},
	{name: "nobody listens, slot list", args: []string{"slot", "list", "--url", "postgres://monitor@CLOSED/shop"}, code: 1, names: []string{"--url"}},
	{name: "no such host", config: with("@POSTGRES", "@db.invalid:5432"), code: stays, names: []string{"db.invalid"}},
	{name: "no such host, init", args: initialise, config: with("@POSTGRES", "@db.invalid:5432"), code: 1, names: []string{"db.invalid", "postgres.url"}},
	{name: "not PostgreSQL at that port", code: stays, names: []string{"127.0.0.1:"}, first: sshThere},
	{name: "an SSH server at that port, init", args: initialise, code: 1, names: []string{"SSH", "postgres.url"}, first: sshThere},
	{name: "an HTTP server at that port, init", args: initialise, code: 1, names: []string{"HTTP", "postgres.url"}, first: httpThere},
	{name: "an HTTP server at that port, with TLS, init", args: initialise, config: with("sslmode=disable", "sslmode=require"), code: 1, names: []string{"HTTP", "postgres.url"}, first: httpThere},
	{name: "a Kafka broker at that port, init", args: initialise, config: with("@POSTGRES", "@KAFKA:9092"), code: 1, names: []string{"PostgreSQL", "postgres.url"}},
	{name: "a wrong password", config: with("SECRET", "guess"), code: 3, names: []string{"publisher", "password"}},
	{name: "a wrong password, init", args: initialise, config: with("SECRET", "guess"), code: 3, names: []string{"publisher", "postgres.password_file"}},
	{name: "a wrong password, check", args: checking, config: with("SECRET", "guess"), code: 3, names: []string{"publisher", "postgres.password_file"}},
	{name: "a wrong password, slot list", args: []string{"slot", "list", "--url", "postgres://publisher:guess@POSTGRES/DBNAME"}, code: 3, names: []string{"publisher", "PGPASSWORD"}},
	{name: "no password", config: with(":SECRET", ""), code: 3, names: []string{"publisher", "password"}},
	{name: "no such role", config: with("publisher:", "publsher:"), code: 3, names: []string{"publsher"}},
	{name: "no such database", config: with("/DBNAME?", "/shopp?"), code: 3, names: []string{"shopp"}},
	{name: "no such database, init", args: initialise, config: with("/DBNAME?", "/shopp?"), code: 3, names: []string{"shopp", "postgres.url"}},
	{name: "a database that takes no connections, init", args: initialise, elsewhere: "ALTER DATABASE DBNAME ALLOW_CONNECTIONS false", code: 3, names: []string{"ALLOW_CONNECTIONS"}},
	{name: "too many connections, init", args: initialise, elsewhere: "ALTER DATABASE DBNAME CONNECTION LIMIT 0", code: 1, names: []string{"too many connections", "pg_stat_activity"}},
	{name: "no primary among the hosts, init", args: initialise, config: with("@POSTGRES", "@POSTGRES,CLOSED", "sslmode=disable", "sslmode=disable&target_session_attrs=read-write"),
		elsewhere: "ALTER DATABASE DBNAME SET default_transaction_read_only = on", code: 1, names: []string{"target_session_attrs", "postgres.url"}},
	{name: "no standby among the hosts, init", args: initialise, config: with("sslmode=disable", "sslmode=disable&target_session_attrs=standby"), code: 1, names: []string{"target_session_attrs", "postgres.url"}},
	{name: "no REPLICATION", config: with("publisher:", "plain:"), code: 3, names: []string{"plain", "ALTER ROLE"}},
	{name: "no CONNECT", prepare: "REVOKE CONNECT ON DATABASE DBNAME FROM PUBLIC", code: 3, names: []string{"publisher", "GRANT CONNECT"}},
	{name: "no CONNECT, init", args: initialise, prepare: "REVOKE CONNECT ON DATABASE DBNAME FROM PUBLIC", code: 3, names: []string{"publisher", "GRANT CONNECT"}},
	{name: "refused by pg_hba.conf", config: with("publisher:", "unwelcome:"), code: 3, names: []string{"unwelcome", "pg_hba.conf"}},
	{name: "refused by pg_hba.conf, init", args: initialise, config: with("publisher:", "unwelcome:"), code: 3, names: []string{"unwelcome", "pg_hba.conf"}},
	{name: "pg_hba.conf has the keyword replication alone", config: with("publisher:", "physical:"), code: 3, names: []string{"physical", "pg_hba.conf", "database"}},
	{name: "TLS wanted and not there", config: with("sslmode=disable", "sslmode=require"), code: stays, names: []string{"TLS", "sslmode"}},
	{name: "TLS wanted and not there, init", args: initialise, config: with("sslmode=disable", "sslmode=require"), code: 1, names: []string{"TLS", "sslmode"}},
	{name: "init without the rights of the owner", args: initialise, prepare: "DROP TABLE outbox", code: 3, names: []string{"public.outbox", "owner"}},
	{name: "wal_level is not logical", code: 3, names: []string{"slot", "cdcpub init"}, first: func(s *stand) {
		// No slot can exist there; init, which it names, says why.
		server := shared.Postgres(s.t, "", "wal_level=replica")
		s.point(server, harness.Database(s.t, server))
	}},
	{name: "wal_level is not logical, init", args: initialise, code: 3, names: []string{"wal_level", "logical"}, first: func(s *stand) {
		server := shared.Postgres(s.t, "", "wal_level=replica")
		s.point(server, harness.Database(s.t, server))
	}},
	{name: "max_wal_senders reached", code: stays, names: []string{"max_wal_senders"}, first: crowded},
	{name: "max_wal_senders reached, check", args: checking, code: 3, names: []string{"max_wal_senders"}, first: crowded},
	{name: "max_replication_slots reached, init", args: initialise, code: 3, names: []string{"max_replication_slots"}, first: crowded},
}

// commanded is usual with a command in the place of the password.
func commanded(command string) string {
	return with(":SECRET", "", "  slot:", "  password_command: ["+command+"]\n  slot:")
}

// passwordCommands are commands that give no password, or a wrong one. What they
// print is shown nowhere.
var passwordCommands = []mistake{
	{name: "it fails", config: commanded(`sh, -c, "echo SECRET >&2; exit 3"`), code: stays, names: []string{"postgres.password_command", "exit status 3"}},
	{name: "it fails, init", args: initialise, config: commanded(`sh, -c, "echo SECRET >&2; exit 3"`), code: 1, names: []string{"postgres.password_command", "exit status 3"}},
	{name: "it fails, check", args: checking, config: commanded(`sh, -c, "echo SECRET >&2; exit 3"`), code: 3, names: []string{"postgres.password_command", "exit status 3"}},
	{name: "it fails, slot list", args: []string{"slot", "list"}, config: commanded(`"false"`), code: 1, names: []string{"postgres.password_command", "exit status 1"}},
	{name: "it prints nothing", config: commanded(`"true"`), code: stays, names: []string{"postgres.password_command", "no password"}},
	{name: "it prints a greeting before the password", config: commanded(`printf, 'Welcome\nSECRET\n'`), code: 3, names: []string{"publisher", "postgres.password_command"}},
	{name: "it does not end, init", args: initialise, config: commanded(`sleep, "3600"`), code: 1, names: []string{"postgres.password_command", "within 10s"}},
}
