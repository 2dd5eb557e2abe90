package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/internal/config"
)

// slotFlags are what every slot command has: where the server is.
type slotFlags struct {
	configFile
	URL string `name:"url" placeholder:"URL" help:"Connection string in place of postgres.url and postgres.password_file; no configuration file is then needed."`
}

// slotServer is the server that a slot command works on.
type slotServer struct {
	sqlServer
	// config is what file and environment state, and --url for Postgres.URL.
	// There may be no slot in it.
	config *config.Config
}

// server reads the configuration. It does not touch the network.
func (f slotFlags) server(p *process) (*slotServer, error) {
	loaded, err := f.loadSlots(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &exitError{code: exitUsage, err: fmt.Errorf("%w, or use --url", err)}
	case err != nil:
		return nil, &exitError{code: exitUsage, err: err}
	}
	if loaded.Postgres.URL == "" {
		return nil, &exitError{code: exitUsage, err: errors.New("no server is named: state postgres.url, or --url")}
	}
	source := loaded.Postgres.ConnConfig
	if f.URL != "" {
		source = func(extra ...config.Param) (*pgconn.Config, error) {
			return loaded.Postgres.URL.ConnConfig("--url", extra...)
		}
	}
	asked, err := newSQLServer(source, time.Duration(loaded.SlotMonitor.Timeout))
	if err != nil {
		return nil, &exitError{code: exitUsage, err: err}
	}
	return &slotServer{sqlServer: *asked, config: loaded}, nil
}

// loadSlots lets --url take the place of postgres.url and its password file.
// What the configuration says about another server is then left out.
func (f slotFlags) loadSlots(p *process) (*config.Config, error) {
	loaded, err := config.LoadFor(f.Config, p.env, config.NeedSlots)
	if f.URL == "" {
		return loaded, err
	}
	elsewhere := err == nil && !sameServer(loaded.Postgres, config.ConnString(f.URL))
	if err != nil {
		// No file, or no URL in it. The rest has to be right in any case.
		env := append(slices.Clone(p.env), "CDCPUB_POSTGRES_URL=postgres://localhost")
		if loaded, err = config.LoadFor(f.Config, env, config.NeedSlots); err != nil {
			return nil, err
		}
	}
	changed := *loaded
	changed.Postgres.URL, changed.Postgres.PasswordFile, changed.Postgres.PasswordCommand = config.ConnString(f.URL), "", nil
	if elsewhere {
		changed.SlotMonitor.Volume, changed.SlotMonitor.Standbys, changed.HTTP.Advertise = config.Volume{}, nil, ""
	}
	return &changed, nil
}

// sameServer tells if the connection string leads to where the configuration
// does, whoever the user is. A configuration without one contradicts nothing.
func sameServer(configured config.Postgres, url config.ConnString) bool {
	if configured.URL == "" {
		return true
	}
	a, err := configured.URL.ConnConfig("postgres.url")
	if err != nil {
		return false
	}
	b, err := url.ConnConfig("--url")
	return err == nil && a.Host == b.Host && a.Port == b.Port
}

// sqlServer is a server that is asked by SQL. It holds no connection: one that
// stays open blocks a smart shutdown of the server.
type sqlServer struct {
	// name is host:port/database: how messages, alerts and metrics call it.
	name           string
	database, user string
	// timeout is for a connection, and for each statement.
	timeout time.Duration
	source  connSource
}

// connSource gives the settings for the next connection, as
// config.Postgres.ConnConfig does.
type connSource = func(extra ...config.Param) (*pgconn.Config, error)

func newSQLServer(source connSource, timeout time.Duration) (*sqlServer, error) {
	settings, err := source()
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s/%s", net.JoinHostPort(settings.Host, strconv.Itoa(int(settings.Port))), settings.Database)
	return &sqlServer{name: name, database: settings.Database, user: settings.User, timeout: timeout, source: source}, nil
}

// slotApplication is the application_name of slot commands.
const slotApplication = "cdcpub slot"

// connect opens a connection, which the caller closes with closeConn as soon as
// it can. The error is a *serverError, or one of the configuration.
func (s *sqlServer) connect(ctx context.Context) (*pgx.Conn, error) {
	base, err := s.source(
		config.Param{Name: "application_name", Value: slotApplication},
		config.Param{Name: "client_encoding", Value: "UTF8"},
		config.Param{Name: "statement_timeout", Value: strconv.FormatInt(s.timeout.Milliseconds(), 10)})
	if err != nil {
		return nil, &exitError{code: exitUsage, err: err}
	}
	settings, err := pgx.ParseConfig("")
	if err != nil {
		return nil, err
	}
	settings.Config = *base
	ctx, cancel := s.bound(ctx)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, settings)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	return conn, nil
}

// bound returns a context that ends when the server has had its time.
func (s *sqlServer) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("no answer within %s", s.timeout))
}

// serverError says in one line why the server could not be asked.
type serverError struct {
	server, text, cure string
	cause              error
}

func (e *serverError) Error() string {
	return fmt.Sprintf("PostgreSQL at %s: %s", e.server, e.reason())
}

// reason is the error without the server's name.
func (e *serverError) reason() string {
	if e.cure != "" {
		return e.text + "; " + e.cure
	}
	return e.text
}

func (e *serverError) Unwrap() error { return e.cause }

// explain makes one line of what the driver says in one line per address and
// TLS mode. ctx is the one that the server was asked with.
func (s *sqlServer) explain(ctx context.Context, err error) error {
	explained := &serverError{server: s.name, cause: err}
	var refused *pgconn.PgError
	var number syscall.Errno
	var network *net.OpError
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	cause := err
	switch {
	case errors.As(err, &refused):
		explained.text = fmt.Sprintf("%s (SQLSTATE %s)", oneLine(refused.Message), refused.Code)
		explained.cure = s.cure(refused.Code)
		return explained
	case ctx.Err() != nil:
		cause = context.Cause(ctx)
	case errors.As(err, &certificate):
		cause = certificate
	case errors.As(err, &name):
		cause = name
	case errors.As(err, &number): // the name of the server says where
		cause = number
	case errors.As(err, &network):
		cause = network
	}
	explained.text = oneLine(cause.Error())
	return explained
}

// cure is what to do about a server's refusal.
func (s *sqlServer) cure(code string) string {
	switch code {
	case "28P01", "28000": // invalid_password, invalid_authorization_specification
		return fmt.Sprintf("check user %s, its password (PGPASSWORD, ~/.pgpass, password_file) and pg_hba.conf", s.user)
	case "3D000": // invalid_catalog_name
		return "correct the database in the connection string"
	case "42501": // insufficient_privilege
		return fmt.Sprintf("as a superuser: GRANT pg_monitor TO %s", pgx.Identifier{s.user}.Sanitize())
	case "57014": // query_canceled
		return "raise slot_monitor.timeout if the server is that slow"
	}
	return ""
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// untilSignal returns a context that ends with the first signal, which is then
// its cause.
func untilSignal(ctx context.Context, p *process) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case received := <-p.signals:
			cancel(&signalError{received})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// signalError is the cause of a context that a signal ended.
type signalError struct{ received os.Signal }

func (e *signalError) Error() string { return "ended by " + e.received.String() }
