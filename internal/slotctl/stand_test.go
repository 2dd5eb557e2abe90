package slotctl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/test/harness"
)

var shared harness.Shared

func TestMain(m *testing.M) { harness.Main(m, &shared) }

// patience bounds what must happen soon.
const patience = 20 * time.Second

// stand is a database with tables public.outbox and public.other, publication
// pub of both, and a connection of a superuser.
type stand struct {
	*testing.T
	server   *pgserver.Server
	database string
	conn     *pgx.Conn
}

func newStand(t *testing.T, server *pgserver.Server) *stand {
	t.Helper()
	database := harness.Database(t, server)
	s := &stand{t, server, database, connectTo(t, server.URL(database))}
	s.exec("CREATE TABLE outbox (id int)", "CREATE TABLE other (id int)", "CREATE PUBLICATION pub FOR TABLE outbox, other")
	return s
}

func connectTo(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// on runs f against a database of a server of each version.
func on(t *testing.T, versions []string, f func(*stand)) {
	for _, version := range versions {
		t.Run("PostgreSQL "+version, func(t *testing.T) { f(newStand(t, shared.Postgres(t, version, "max_prepared_transactions=5"))) })
	}
}

var (
	usual    = []string{"15"}
	everyone = []string{"14", "15", "17", "18"}
)

func (s *stand) exec(statements ...string) {
	s.Helper()
	for _, sql := range statements {
		if _, err := s.conn.Exec(s.Context(), sql); err != nil {
			s.Fatalf("%s: %v", sql, err)
		}
	}
}

func (s *stand) text(sql string, args ...any) (value string) {
	s.Helper()
	if err := s.conn.QueryRow(s.Context(), sql, args...).Scan(&value); err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
	return value
}

func (s *stand) lsn(expression string) pglogrepl.LSN {
	s.Helper()
	lsn, err := position(s.Context(), s.conn, expression)
	if err != nil {
		s.Fatal(err)
	}
	return lsn
}

func (s *stand) confirmed(slot string) pglogrepl.LSN {
	s.Helper()
	return s.lsn("SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = '" + slot + "'")
}

// slot creates a slot with a name that the cluster does not have.
func (s *stand) slot() string {
	s.Helper()
	name := "slot_" + strings.TrimPrefix(s.database, "db_")
	if _, err := Create(s.Context(), s.conn, New{Name: name, Timeout: patience}); err != nil {
		s.Fatal(err)
	}
	return name
}

func (s *stand) config() *pgconn.Config {
	s.Helper()
	config, err := pgconn.ParseConfig(s.server.URL(s.database))
	if err != nil {
		s.Fatal(err)
	}
	return config
}

// hold reads the slot until the test ends or the returned function is called.
// confirm: and confirms all that it gets.
func (s *stand) hold(slot, application string, confirm bool) (pid int, release func()) {
	s.Helper()
	config := s.config()
	config.RuntimeParams["application_name"] = application
	stream, err := openStream(s.Context(), config, slot, []string{"pub"})
	if err != nil {
		s.Fatal(err)
	}
	ctx, stop := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		var end pglogrepl.LSN
		for {
			e, err := stream.next(ctx, end)
			if err != nil {
				return
			}
			if confirm {
				end = max(end, e.end)
			}
		}
	}()
	release = func() {
		stop()
		<-done
		stream.close()
	}
	s.Cleanup(release)
	return stream.pid(), release
}

// until waits until the condition holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	limit, poll := time.After(3*patience), time.NewTicker(pollInterval)
	defer poll.Stop()
	for !holds() {
		select {
		case <-poll.C:
		case <-limit:
			t.Fatalf("not so after %s: %s", 3*patience, what)
		}
	}
}

// free waits until nobody holds the slot.
func (s *stand) free(slot string, pid int) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	if found, err := AwaitRelease(ctx, s.conn, slot, pid); err != nil || found.Active {
		s.Fatalf("slot %s: %v, %+v", slot, err, found)
	}
}

// role makes a role that may log in, and returns a connection of it.
func (s *stand) role(attributes string) *pgx.Conn {
	s.Helper()
	name := "role_" + strings.TrimPrefix(s.database, "db_")
	s.exec("CREATE ROLE " + name + " LOGIN " + attributes)
	s.Cleanup(func() {
		_, _ = s.conn.Exec(context.Background(), "DROP ROLE "+name)
	})
	return connectTo(s.T, strings.Replace(s.server.URL(s.database), "postgres@", name+"@", 1))
}

// refused checks that the error is of type E and says every part.
func refused[E error](t *testing.T, err error, parts ...string) {
	t.Helper()
	var want E
	if !errors.As(err, &want) {
		t.Fatalf("error %v, want a %T", err, want)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("does not say %q: %v", part, err)
		}
	}
	t.Logf("%v", err)
}

func pidText(pid int) string { return fmt.Sprintf("pid %d", pid) }
