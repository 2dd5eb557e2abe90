package config

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"
)

// SecretURL is an http or https URL that may hold a secret: a password, or a
// token in its path or query. Everything that formats it gets the redacted
// form; string(u) is the secret.
type SecretURL string

// Redacted is scheme and host, and xxxxx for anything else that the URL has, or
// xxxxx alone if it cannot be told where the host is.
func (u SecretURL) Redacted() string {
	if u == "" {
		return ""
	}
	parsed, err := u.check()
	if err != nil {
		return redacted
	}
	s := parsed.Scheme + "://"
	if parsed.User != nil {
		s += redacted + "@"
	}
	s += parsed.Host
	if parsed.EscapedPath() != "" && parsed.EscapedPath() != "/" || parsed.RawQuery != "" {
		s += "/" + redacted
	}
	return s
}

// String returns Redacted.
func (u SecretURL) String() string { return u.Redacted() }

// Format writes Redacted for every verb.
func (u SecretURL) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, u.Redacted()) }

// MarshalText returns Redacted.
func (u SecretURL) MarshalText() ([]byte, error) { return []byte(u.Redacted()), nil }

// UnmarshalText takes the text as it is; validation comes later.
func (u *SecretURL) UnmarshalText(text []byte) error {
	*u = SecretURL(text)
	return nil
}

const urlEncodeHint = "a password in it needs percent-encoding (%40 for @, %2F for /)"

// plainHost matches host[:port] that cannot be a part of anything else.
var plainHost = regexp.MustCompile(`^(\[[0-9A-Fa-f:.]+\]|[\p{L}\p{N}._-]+)(:[0-9]+)?$`)

// check parses the URL. No error repeats any of it.
func (u SecretURL) check() (*url.URL, error) {
	if err := checkText(string(u)); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(string(u), "http://") && !strings.HasPrefix(string(u), "https://") {
		return nil, errors.New("must be a URL that begins with http:// or https://")
	}
	parsed, err := url.Parse(string(u))
	switch {
	case err != nil:
		return nil, errors.New("is not a valid URL; " + urlEncodeHint)
	case strings.Contains(parsed.EscapedPath()+parsed.RawQuery+parsed.Fragment, "@"):
		// A / or ? in an unescaped password ends the host too early.
		return nil, errors.New("has an @ where none is expected; " + urlEncodeHint)
	case !plainHost.MatchString(parsed.Host) || parsed.Port() != "" && !validPort(parsed.Port()):
		return nil, errors.New("must have a host, or host:port, behind http:// or https://")
	case parsed.Fragment != "" || strings.HasSuffix(string(u), "#"):
		return nil, errors.New("must not have a # part")
	}
	return parsed, nil
}
