package config

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// ConnString is a PostgreSQL connection string, which may hold a password.
// Everything that formats it gets the redacted form; string(c) is the secret.
type ConnString string

// Redacted is the connection string with xxxxx for every secret in it, or
// xxxxx alone if it cannot be told where the secrets are.
func (c ConnString) Redacted() string {
	if c == "" {
		return ""
	}
	info, err := c.check()
	if err != nil {
		return redacted
	}
	var b strings.Builder
	end := 0
	for _, p := range info.params {
		if p.secret() && p.start < p.end {
			b.WriteString(string(c[end:p.start]) + redacted)
			end = p.end
		}
	}
	return b.String() + string(c[end:])
}

const redacted = "xxxxx"

// String returns Redacted.
func (c ConnString) String() string { return c.Redacted() }

// Format writes Redacted for every verb.
func (c ConnString) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.Redacted()) }

// MarshalText returns Redacted.
func (c ConnString) MarshalText() ([]byte, error) { return []byte(c.Redacted()), nil }

// UnmarshalText takes the text as it is; validation comes later.
func (c *ConnString) UnmarshalText(text []byte) error {
	*c = ConnString(text)
	return nil
}

// connInfo is where the parameters of a connection string are. It follows the
// rules of libpq ("Connection Strings" in its documentation) as pgconn does,
// but refuses what may be a password with unescaped characters. No error
// repeats any of the string.
type connInfo struct {
	// query is where the parameters of a URL begin, after the question mark;
	// -1 for a URL without one, 0 for the keyword/value form.
	query int
	// params are in the order of the string. A later one wins.
	params []connParam
}

// connParam is one parameter; start and end delimit its raw value.
type connParam struct {
	key        string
	raw        string
	start, end int
}

func (p connParam) secret() bool { return p.key == "password" || p.key == "sslpassword" }

// get returns the raw value of the last parameter with this key.
func (c connInfo) get(key string) (raw string, ok bool) {
	for _, p := range c.params {
		if p.key == key {
			raw, ok = p.raw, true
		}
	}
	return raw, ok
}

// states tells if the string has a value for the key that is not empty.
func (c connInfo) states(key string) bool {
	raw, _ := c.get(key)
	return raw != ""
}

// knownParams are the parameters that the driver acts on, and those that every
// server knows. The driver sends any other to the server, misspelt ones too.
var knownParams = []string{
	"host", "port", "dbname", "database", "user", "password", "passfile", "service", "servicefile",
	"sslmode", "ssl", "sslrootcert", "sslcert", "sslkey", "sslpassword", "sslcertmode", "sslnegotiation", "sslsni",
	"channel_binding", "require_auth", "krbsrvname", "krbspn", "connect_timeout", "target_session_attrs",
	"min_protocol_version", "max_protocol_version", "application_name", "client_encoding", "options",
}

// check parses the string and refuses what cannot work, or what cdcpub sets
// itself.
func (c ConnString) check() (connInfo, error) {
	info, err := parseConnInfo(string(c))
	if err != nil {
		return info, err
	}
	for _, p := range info.params {
		switch {
		case p.key == "replication":
			return info, errors.New("must not state replication; each connection sets it itself")
		case slices.Contains(knownParams, p.key):
			continue
		}
		if near := nearest(p.key, knownParams); near != "" {
			return info, fmt.Errorf("has an unknown parameter; did you mean %s?", near)
		}
		return info, errors.New("has an unknown parameter; settings of the session go into options, " +
			"for example options='-c statement_timeout=10s'")
	}
	modes := []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}
	if mode, stated := info.get("sslmode"); stated && !slices.Contains(modes, mode) {
		return info, errors.New("has an unknown sslmode; allowed: " + strings.Join(modes, ", "))
	}
	return info, nil
}

func parseConnInfo(s string) (connInfo, error) {
	if err := checkText(s); err != nil {
		return connInfo{}, err
	}
	for _, scheme := range []string{"postgres://", "postgresql://"} {
		if strings.HasPrefix(s, scheme) {
			return parseURL(s, len(scheme))
		}
	}
	return parseKeywords(s)
}

// parseURL reads the URL form, the scheme of which ends at offset at.
func parseURL(s string, at int) (connInfo, error) {
	info := connInfo{query: -1}
	if _, err := url.PathUnescape(s); err != nil {
		return info, errors.New("has a % that is not followed by two hexadecimal digits; " + encodeHint)
	}
	add := func(key string, start, end int) {
		info.params = append(info.params, connParam{key: key, raw: s[start:end], start: start, end: end})
	}
	if i := strings.IndexAny(s[at:], "@/"); i >= 0 && s[at+i] == '@' {
		end := at + i
		if colon := strings.IndexByte(s[at:end], ':'); colon >= 0 {
			add("user", at, at+colon)
			add("password", at+colon+1, end)
		} else {
			add("user", at, end)
		}
		at = end + 1
	}
	if strings.Contains(s[at:], "@") {
		return info, errors.New("has an @ where none is expected; " + encodeHint)
	}
	end := len(s)
	if i := strings.IndexAny(s[at:], "/?"); i >= 0 {
		end = at + i
	}
	if err := checkHosts(s[at:end]); err != nil {
		return info, err
	}
	question := strings.IndexByte(s[end:], '?')
	if question < 0 {
		return info, nil
	}
	info.query = end + question + 1
	for start := info.query; start < len(s); {
		pair, _, _ := strings.Cut(s[start:], "&")
		key, raw, found := strings.Cut(pair, "=")
		decoded, err := url.PathUnescape(key)
		if !found || err != nil || strings.Contains(raw, "=") {
			return info, errors.New("must have parameters of the form ?key=value&key=value; " + encodeHint)
		}
		add(strings.TrimSpace(decoded), start+len(key)+1, start+len(pair))
		start += len(pair) + 1
	}
	return info, nil
}

const encodeHint = "a password in a URL needs percent-encoding (%40 for @, %2F for /), or goes into a password file"

// checkHosts checks host[:port],host[:port]...
func checkHosts(list string) error {
	for host := range strings.SplitSeq(list, ",") {
		rest := host
		if strings.HasPrefix(host, "[") {
			_, after, found := strings.Cut(host, "]")
			if !found {
				return errors.New("has an IPv6 address without a closing ]")
			}
			rest = after
			if rest != "" && rest[0] != ':' {
				return errors.New("has text between an IPv6 address and its port")
			}
		}
		_, port, _ := strings.Cut(rest, ":")
		if port != "" && !validPort(port) {
			return errors.New("has a port that is not a number from 1 to 65535; " + encodeHint)
		}
	}
	return nil
}

func validPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

// parseKeywords reads the keyword/value form.
func parseKeywords(s string) (connInfo, error) {
	var info connInfo
	const space = " "
	for at := 0; ; {
		at += len(s[at:]) - len(strings.TrimLeft(s[at:], space))
		if at == len(s) {
			return info, nil
		}
		key, rest, found := strings.Cut(s[at:], "=")
		key = strings.TrimRight(key, space)
		if !found || !plainName.MatchString(key) {
			return info, errors.New("must be a URL that begins with postgres:// or postgresql://, " +
				"or keyword=value pairs, where a value with spaces needs single quotes")
		}
		start := len(s) - len(strings.TrimLeft(rest, space))
		end, err := valueEnd(s, start)
		if err != nil {
			return info, err
		}
		raw := s[start:end]
		if strings.HasPrefix(raw, "'") {
			raw = raw[1 : len(raw)-1]
		}
		info.params = append(info.params, connParam{key: key, raw: raw, start: start, end: end})
		at = end
	}
}

// valueEnd finds the end of a keyword's value: the closing quote, or a space.
// A backslash takes the next character literally.
func valueEnd(s string, start int) (int, error) {
	quoted := strings.HasPrefix(s[start:], "'")
	i := start
	if quoted {
		i++
	}
	for ; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case quoted && s[i] == '\'':
			if i+1 < len(s) && s[i+1] != ' ' {
				return 0, errors.New("has text right behind a closing single quote; write \\' for a quote in a value")
			}
			return i + 1, nil
		case !quoted && s[i] == ' ':
			return i, nil
		}
	}
	if quoted {
		return 0, errors.New("has a value whose single quote is not closed")
	}
	return len(s), nil
}
