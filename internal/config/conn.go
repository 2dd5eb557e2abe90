package config

import (
	"errors"
	"fmt"
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
// The password is that of PasswordFile if there is one.
//
// If sslmode is not stated and a host is neither loopback nor a Unix socket, it
// is verify-full: libpq's own default, prefer, falls back to plain text when
// somebody in between says that the server has no TLS. An sslmode of prefer or
// allow in a service file does not count as stated.
//
// Errors begin with the field and hold no secret.
func (p Postgres) ConnConfig(extra ...Param) (*pgconn.Config, error) {
	info, err := p.URL.check()
	if err != nil {
		return nil, fmt.Errorf("postgres.url: %w", err)
	}
	config, err := parseConn(p.URL)
	if err != nil {
		return nil, err
	}
	if wantsVerifyFull(info, config) {
		if config, err = parseConn(info.with(p.URL, "sslmode", "verify-full")); err != nil {
			return nil, err
		}
	}
	if p.PasswordFile != "" {
		if config.Password, err = readPassword(p.PasswordFile); err != nil {
			return nil, fmt.Errorf("postgres.password_file: %w", err)
		}
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
func parseConn(url ConnString) (*pgconn.Config, error) {
	config, err := pgconn.ParseConfig(string(url))
	if err == nil {
		return config, nil
	}
	_, err = pgconn.ParseConfig(url.Redacted())
	var parse *pgconn.ParseConfigError
	if !errors.As(err, &parse) {
		return nil, errors.New("postgres.url: a password in it cannot be used; use password_file")
	}
	// What comes before the reason is the string itself, which says nothing new.
	repeated := pgconn.NewParseConfigError(parse.ConnString, "", nil).Error()
	return nil, fmt.Errorf("postgres.url: %s", strings.TrimPrefix(parse.Error(), repeated))
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

// readPassword reads a file that has nothing but a password, perhaps with a
// newline at its end.
func readPassword(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	password := strings.TrimRight(string(text), "\r\n")
	switch {
	case password == "":
		return "", fmt.Errorf("%s is empty", path)
	case strings.ContainsAny(password, "\r\n\x00"):
		return "", fmt.Errorf("%s has more than one line", path)
	}
	return password, nil
}
