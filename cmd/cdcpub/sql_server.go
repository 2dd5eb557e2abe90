package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/internal/pgfault"
)

// sqlServer is a server that is asked by SQL. It holds no connection: one that
// stays open blocks a smart shutdown of the server.
type sqlServer struct {
	// name is host:port/database: how messages, alerts and metrics call it.
	name string
	// stated is where its connection string comes from: "postgres.url", "--url".
	stated         string
	database, user string
	application    string
	// publisherName is the application_name of a publisher with this connection
	// string.
	publisherName string
	// timeout is for a connection, and for each statement.
	timeout time.Duration
	source  connSource
}

// connSource gives the settings for the next connection, with the password as it
// is now, as config.Postgres.ConnConfigContext does. It may take its time, but
// for the end of the context.
type connSource = func(ctx context.Context, extra ...config.Param) (*pgconn.Config, error)

// slotApplication is the application_name of slot commands.
const slotApplication = "cdcpub slot"

// publishedServer is the server of postgres.url. What its password comes from
// has to be there, but is not asked yet.
func publishedServer(c *config.Config, application string, timeout time.Duration) (*sqlServer, error) {
	if err := c.Postgres.CheckSecret(); err != nil {
		return nil, err
	}
	return unprovenServer(c, application, timeout)
}

// unprovenServer is publishedServer for those who try the password in any case.
func unprovenServer(c *config.Config, application string, timeout time.Duration) (*sqlServer, error) {
	where, err := c.Postgres.ConnConfigWithoutSecret()
	if err != nil {
		return nil, err
	}
	return newSQLServer(where, "postgres.url", application, timeout, c.Postgres.ConnConfigContext), nil
}

// standbyServer is a standby of the server of postgres.url.
func standbyServer(c *config.Config, url config.ConnString, stated string) (*sqlServer, error) {
	where, err := url.ConnConfig(stated)
	if err != nil {
		return nil, err
	}
	source := func(ctx context.Context, extra ...config.Param) (*pgconn.Config, error) {
		return c.Postgres.StandbyConnConfig(ctx, url, stated, extra...)
	}
	return newSQLServer(where, stated, slotApplication, time.Duration(c.SlotMonitor.Timeout), source), nil
}

// serverAt is a server whose connection string says all, as stated by a flag or
// a field.
func serverAt(url config.ConnString, stated, application string, timeout time.Duration) (*sqlServer, error) {
	where, err := url.ConnConfig(stated)
	if err != nil {
		return nil, err
	}
	source := func(_ context.Context, extra ...config.Param) (*pgconn.Config, error) {
		return url.ConnConfig(stated, extra...)
	}
	return newSQLServer(where, stated, application, timeout, source), nil
}

func newSQLServer(where *pgconn.Config, stated, application string, timeout time.Duration, source connSource) *sqlServer {
	name := fmt.Sprintf("%s/%s", net.JoinHostPort(where.Host, strconv.Itoa(int(where.Port))), where.Database)
	return &sqlServer{name: name, stated: stated, publisherName: where.RuntimeParams["application_name"], database: where.Database, user: where.User, application: application, timeout: timeout, source: source}
}

// connect opens a connection, which the caller closes with closeConn as soon as
// it can. The error is a *serverError, or one of settings.
func (s *sqlServer) connect(ctx context.Context) (*pgx.Conn, error) {
	bounded, cancel := s.bound(ctx)
	defer cancel()
	base, err := s.settings(bounded,
		config.Param{Name: "client_encoding", Value: "UTF8"},
		config.Param{Name: "statement_timeout", Value: strconv.FormatInt(s.timeout.Milliseconds(), 10)})
	if err != nil {
		return nil, err
	}
	settings, err := pgx.ParseConfig("")
	if err != nil {
		return nil, err
	}
	settings.Config = *base
	watch := pgfault.Begin(&settings.Config)
	conn, err := pgx.ConnectConfig(bounded, settings)
	if err != nil {
		return nil, s.unconnected(bounded, watch, false, err)
	}
	return conn, nil
}

// connectForReplication opens a replication connection to the database, as the
// publisher does. The error is as that of connect.
func (s *sqlServer) connectForReplication(ctx context.Context, extra ...config.Param) (*pgconn.PgConn, error) {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	settings, err := s.settings(ctx, append(extra, config.Param{Name: "replication", Value: "database"})...)
	if err != nil {
		return nil, err
	}
	watch := pgfault.Begin(settings)
	conn, err := pgconn.ConnectConfig(ctx, settings)
	if err != nil {
		return nil, s.unconnected(ctx, watch, true, err)
	}
	return conn, nil
}

// settings are those of the next connection. A configuration that cannot work
// has the exit code of one; a command that gave no password may give one later.
func (s *sqlServer) settings(ctx context.Context, extra ...config.Param) (*pgconn.Config, error) {
	settings, err := s.source(ctx, append(extra, config.Param{Name: "application_name", Value: s.application})...)
	var later *config.PasswordCommandError
	if err != nil && !errors.As(err, &later) {
		err = &exitError{code: exitUsage, err: err}
	}
	return settings, err
}

// bound returns a context that ends when the server has had its time.
func (s *sqlServer) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.timeout, &lateError{s.timeout})
}

// lateError is the cause of a context whose server has had its time.
type lateError struct{ after time.Duration }

func (e *lateError) Error() string { return fmt.Sprintf("no answer within %s", e.after) }

// Is makes it a deadline that has passed.
func (*lateError) Is(target error) bool { return target == context.DeadlineExceeded }
