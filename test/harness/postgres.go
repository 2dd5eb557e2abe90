package harness

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/pgserver"
)

// startTimeout bounds the start of a server, downloads included.
const startTimeout = 3 * time.Minute

// Postgres starts a server for one test and closes it at the test's end. An
// empty version is PostgresVersion; "14" or "18.3" are downloaded when they are
// not installed. A setting has the form "max_wal_senders=5".
func Postgres(t testing.TB, version string, settings ...string) *pgserver.Server {
	t.Helper()
	server, err := startPostgres(cmp.Or(version, PostgresVersion(t.Name())), settings)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, server)
	return server
}

// PostgresWith is Postgres with options of its own.
func PostgresWith(t testing.TB, options pgserver.Options) *pgserver.Server {
	t.Helper()
	options.Version = cmp.Or(options.Version, PostgresVersion(t.Name()))
	server, err := launchPostgres(options)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, server)
	return server
}

// closeAtEnd closes the server at the test's end and shows its log if the test
// has failed.
func closeAtEnd(t testing.TB, server *pgserver.Server) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("end of the log of PostgreSQL %s:\n%s", server.Installation().Version, server.LogTail(15))
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
}

// serverOptions reads settings of the form name=value.
func serverOptions(version string, settings []string) (pgserver.Options, error) {
	options := pgserver.Options{Version: version, Settings: map[string]string{}}
	for _, setting := range settings {
		name, value, ok := strings.Cut(setting, "=")
		if !ok {
			return options, fmt.Errorf("setting %q: want name=value", setting)
		}
		options.Settings[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return options, nil
}

func startPostgres(version string, settings []string) (*pgserver.Server, error) {
	options, err := serverOptions(version, settings)
	if err != nil {
		return nil, err
	}
	return launchPostgres(options)
}

func launchPostgres(options pgserver.Options) (*pgserver.Server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	server, err := pgserver.Start(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("no PostgreSQL for the test: %w\nto install one: apt-get install -y postgresql", err)
	}
	return server, nil
}

// Database creates a database with a unique name and returns the name. It is
// dropped at the test's end, with the slots in it, if the server runs then.
func Database(t testing.TB, server *pgserver.Server) string {
	t.Helper()
	name := unique("db")
	if err := execute(t.Context(), server.URL("postgres"), "CREATE DATABASE "+name); err != nil {
		t.Fatalf("create a database: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := dropDatabase(ctx, server, name); err != nil {
			t.Logf("the database %s stays: %v", name, err)
		}
	})
	return name
}

// dropDatabase ends the walsenders first: a slot in use holds its database.
func dropDatabase(ctx context.Context, server *pgserver.Server, name string) error {
	return execute(ctx, server.URL("postgres"),
		`SELECT pg_terminate_backend(active_pid, 10000) FROM pg_replication_slots WHERE active AND database = '`+name+`'`,
		`SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = '`+name+`'`,
		`DROP DATABASE `+name+` WITH (FORCE)`)
}

func execute(ctx context.Context, url string, statements ...string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// unique makes a name that is valid, unquoted, for databases, slots and topics.
func unique(prefix string) string {
	return prefix + "_" + strings.ToLower(rand.Text()[:12])
}
