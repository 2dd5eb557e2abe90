package docs_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/test/harness"
)

// The SQL of the page about PostgreSQL works as it stands and in its order, on
// the oldest and the newest version. It makes roles and settings, so each run
// has a server of its own.
func TestSQLForPostgreSQLWorks(t *testing.T) {
	for _, version := range []string{"14", "18"} {
		t.Run(version, func(t *testing.T) {
			conn, err := pgx.Connect(t.Context(), harness.Postgres(t, version).URL("postgres"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(t.Context())
			ran := 0
			for _, b := range parse(read(t, "docs/postgresql.md")).blocks {
				if b.info != "sql" {
					continue
				}
				ran++
				// Statement by statement, as psql sends them.
				for _, statement := range statements(b.text) {
					if _, err := conn.Exec(t.Context(), statement); err != nil {
						t.Errorf("%s\n%v", statement, err)
					}
				}
			}
			if ran < 5 {
				t.Errorf("only %d blocks of SQL were found", ran)
			}
		})
	}
}
