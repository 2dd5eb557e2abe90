package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Param is a run-time parameter of a session, sent with the startup message:
// replication=database, or any setting that SET accepts.
type Param struct{ Name, Value string }

// ConnConfig returns what pgconn.ConnectConfig needs. It reads files and the
// environment, but never the network. Each call starts from nothing, so that a
// changed password or certificate counts for the next connection.
//
// What URL leaves out comes, as with libpq, from the PG* environment, the
// service file and the password file. application_name is cdcpub unless stated.
// The password is that of PasswordFile or PasswordCommand if there is one.
//
// If sslmode is not stated and a host is neither loopback nor a Unix socket, it
// is verify-full: libpq's own default, prefer, falls back to plain text when
// somebody in between says that the server has no TLS. An sslmode of prefer or
// allow in a service file does not count as stated.
//
// Errors begin with the field and hold no secret.
func (p Postgres) ConnConfig(extra ...Param) (*pgconn.Config, error) {
	return p.ConnConfigContext(context.Background(), extra...)
}

// ConnConfigContext is ConnConfig for a caller that can be interrupted: the end
// of ctx ends PasswordCommand, which otherwise may take 10s.
func (p Postgres) ConnConfigContext(ctx context.Context, extra ...Param) (*pgconn.Config, error) {
	config, err := p.ConnConfigWithoutSecret(extra...)
	if err != nil {
		return nil, err
	}
	return p.withPassword(ctx, config)
}

// ConnConfigWithoutSecret is ConnConfig for those who want to know where a
// connection would lead, or if the settings can work. It neither reads
// PasswordFile nor runs PasswordCommand.
func (p Postgres) ConnConfigWithoutSecret(extra ...Param) (*pgconn.Config, error) {
	return p.URL.ConnConfig("postgres.url", extra...)
}

// CheckSecret tells whether PasswordFile can be read, and the program of
// PasswordCommand is there. It does not run the program. Errors begin with the
// field and hold no secret.
func (p Postgres) CheckSecret() error {
	switch {
	case p.PasswordFile != "":
		_, err := secretFrom("", p.PasswordFile, "postgres.password_file")
		return err
	case len(p.PasswordCommand) > 0:
		return checkPasswordCommand(p.PasswordCommand)
	}
	return nil
}

// StandbyConnConfig is ConnConfigContext for a standby of the same cluster, with
// the connection string that the field at path states. PasswordFile and
// PasswordCommand count for it too, unless the string has a password.
func (p Postgres) StandbyConnConfig(ctx context.Context, standby ConnString, path string, extra ...Param) (*pgconn.Config, error) {
	config, err := standby.ConnConfig(path, extra...)
	if err != nil {
		return nil, err
	}
	if info, _ := standby.check(); info.states("password") {
		return config, nil
	}
	return p.withPassword(ctx, config)
}

// withPassword puts the password of PasswordFile or PasswordCommand, if there is
// one, in the place of any other: hosts that the driver tries one after the
// other have the same.
func (p Postgres) withPassword(ctx context.Context, config *pgconn.Config) (*pgconn.Config, error) {
	var err error
	switch {
	case p.PasswordFile != "":
		config.Password, err = secretFrom("", p.PasswordFile, "postgres.password_file")
	case len(p.PasswordCommand) > 0:
		config.Password, err = runForPassword(ctx, p.PasswordCommand)
	}
	if err != nil {
		return nil, err
	}
	return config, nil
}

// ConnConfig is Postgres.ConnConfig for a connection string by itself: the
// password is in it, in PGPASSWORD or in the password file of libpq. path is
// the field that states it, for errors.
func (c ConnString) ConnConfig(path string, extra ...Param) (*pgconn.Config, error) {
	info, err := c.check()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	config, err := parseConn(c)
	if err == nil && wantsVerifyFull(info, config) {
		config, err = parseConn(info.with(c, "sslmode", "verify-full"))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "cdcpub"
	}
	for _, param := range extra {
		config.RuntimeParams[param.Name] = param.Value
	}
	return config, nil
}

// parseConn calls pgconn. Its errors are not fit to be shown when a password
// may be in them, so the message comes from parsing the redacted string.
func parseConn(c ConnString) (*pgconn.Config, error) {
	config, err := pgconn.ParseConfig(string(c))
	if err == nil {
		return config, nil
	}
	_, err = pgconn.ParseConfig(c.Redacted())
	var parse *pgconn.ParseConfigError
	var file *fs.PathError
	if errors.As(err, &file) {
		return nil, fmt.Errorf("%w (sslrootcert, sslcert, sslkey)", unreadable(file.Path, file))
	}
	if !errors.As(err, &parse) {
		return nil, errors.New("a password in it cannot be used; write it into a password file")
	}
	// What comes before the reason is the string itself, which says nothing new.
	repeated := pgconn.NewParseConfigError(parse.ConnString, "", nil).Error()
	return nil, errors.New(strings.TrimPrefix(parse.Error(), repeated))
}

// wantsVerifyFull tells if sslmode=verify-full must take the place of the
// driver's default, because a host is elsewhere. A mode that the connection
// string states wins over it in any case.
func wantsVerifyFull(info connInfo, config *pgconn.Config) bool {
	if os.Getenv("PGSSLMODE") != "" {
		return false
	}
	service := info.states("service") || os.Getenv("PGSERVICE") != ""
	remote, plain, encrypted := false, false, false
	note := func(host string, isTLS bool) {
		if !isLocal(host) {
			remote, plain, encrypted = true, plain || !isTLS, encrypted || isTLS
		}
	}
	note(config.Host, config.TLSConfig != nil)
	for _, f := range config.Fallbacks {
		note(f.Host, f.TLSConfig != nil)
	}
	if service {
		// Its sslmode is not visible here. Both kinds for a host mean prefer,
		// the default, or allow; anything else was stated.
		return remote && plain && encrypted
	}
	return remote
}

// isLocal tells if a connection to host does not leave the machine.
func isLocal(host string) bool {
	return strings.HasPrefix(host, "/") || host == "localhost" || net.ParseIP(host).IsLoopback()
}

// with returns the connection string with one parameter more, which must need
// no escaping. It goes to the front, where any other statement of it wins.
func (c connInfo) with(s ConnString, key, value string) ConnString {
	param := ConnString(key + "=" + value)
	switch {
	case c.query == 0:
		return param + " " + s
	case c.query < 0:
		return s + "?" + param
	case c.query == len(s):
		return s + param
	}
	return s[:c.query] + param + "&" + s[c.query:]
}
