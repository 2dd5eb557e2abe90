package badinput

import "github.com/cdcpub/cdcpub/test/harness"

// connection are mistakes on the way to PostgreSQL.
var connection = []mistake{
	{name: "nobody listens", config: with("@POSTGRES", "@CLOSED"), code: stays, names: []string{"127.0.0.1:", "refused"}},
	{name: "nobody listens, init", args: []string{"init"}, config: with("@POSTGRES", "@CLOSED"), uncured: true, code: 1, names: []string{"127.0.0.1:", "refused"}},
	{name: "no such host", config: with("@POSTGRES", "@db.invalid:5432"), code: stays, names: []string{"db.invalid"}},
	{name: "not PostgreSQL at that port", code: stays, names: []string{"127.0.0.1:"}, first: func(s *stand) {
		other := occupy(s.t)
		go func() {
			for {
				conn, err := other.Accept()
				if err != nil {
					return // the test has ended
				}
				_, _ = conn.Write([]byte("SSH-2.0-OpenSSH_9.2\r\n")) // gone or not, it ends
				conn.Close()
			}
		}()
		s.replace = append([]string{"@POSTGRES/", "@" + other.Addr().String() + "/"}, s.replace...)
	}},
	{name: "a wrong password", config: with("SECRET", "guess"), code: 3, names: []string{"publisher", "password"}},
	{name: "a wrong password, init", args: []string{"init"}, config: with("SECRET", "guess"), code: 1, names: []string{"publisher", "password"}},
	{name: "no password", config: with(":SECRET", ""), code: 3, names: []string{"publisher", "password"}},
	{name: "no such role", config: with("publisher:", "publsher:"), code: 3, names: []string{"publsher"}},
	{name: "no such database", config: with("/DBNAME?", "/shopp?"), code: 3, names: []string{"shopp"}},
	{name: "no REPLICATION", config: with("publisher:", "plain:"), code: 3, names: []string{"plain", "ALTER ROLE"}},
	{name: "no CONNECT", prepare: "REVOKE CONNECT ON DATABASE DBNAME FROM PUBLIC", code: 3, names: []string{"publisher", "GRANT CONNECT"}},
	{name: "refused by pg_hba.conf", config: with("publisher:", "unwelcome:"), code: 3, names: []string{"unwelcome", "pg_hba.conf"}},
	{name: "TLS wanted and not there", config: with("sslmode=disable", "sslmode=require"), code: stays, names: []string{"TLS", "sslmode"}},
	{name: "init without the rights of the owner", args: []string{"init"}, prepare: "DROP TABLE outbox", code: 3, names: []string{"public.outbox", "owner"}},
	{name: "wal_level is not logical", code: 3, names: []string{"slot", "cdcpub init"}, first: func(s *stand) {
		// No slot can exist there; init, which it names, says why.
		server := shared.Postgres(s.t, "", "wal_level=replica")
		s.point(server, harness.Database(s.t, server))
	}},
	{name: "wal_level is not logical, init", args: []string{"init"}, code: 3, names: []string{"wal_level", "logical"}, first: func(s *stand) {
		server := shared.Postgres(s.t, "", "wal_level=replica")
		s.point(server, harness.Database(s.t, server))
	}},
}
