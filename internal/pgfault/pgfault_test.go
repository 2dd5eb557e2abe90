package pgfault

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestWhoAnswersIsToldByTheFirstBytes(t *testing.T) {
	for head, want := range map[string]struct {
		askedTLS bool
		who      string
	}{
		"N": {true, ""}, "S": {true, ""}, "S\x16\x03\x03": {true, ""}, "S\x15\x03": {true, ""}, "E\x00\x00\x00\x50": {true, ""},
		"R\x00\x00\x00\x17": {false, ""}, "E\x00\x00\x00\x60": {false, ""}, "N\x00\x00\x00\x20": {false, ""}, "v\x00\x00\x00\x0c": {false, ""}, "R": {false, ""},
		"HTTP/": {false, "an HTTP server"}, "HT": {true, "an HTTP server"}, "SSH-2": {true, "an SSH server"}, "SSH-": {false, "an SSH server"},
		"\x15\x03\x03\x00\x02": {false, "another kind of server"}, "J\x00\x00\x00\x0a": {false, "another kind of server"},
		"R\x7f\x00\x00\x00": {false, "another kind of server"}, "S\x00": {true, "another kind of server"}, "S\x00\x00\x00\x20": {false, "another kind of server"},
	} {
		if got := foreign([]byte(head), want.askedTLS); got != want.who {
			t.Errorf("%q, asked for TLS %v: %q, want %q", head, want.askedTLS, got, want.who)
		}
	}
}

func refusal(code, routine string) error {
	return fmt.Errorf("connect: %w", &pgconn.PgError{Severity: "FATAL", Code: code, Message: "no\nway", Routine: routine})
}

func TestEveryFaultIsOneLineWithACure(t *testing.T) {
	ordinary := Target{Stated: "postgres.url", User: "o'neil", Database: "shop"}
	streaming := ordinary
	streaming.Replication = true
	for name, c := range map[string]struct {
		target     Target
		err        error
		want, cure string
		refused    bool
	}{
		"password":               {ordinary, refusal("28P01", ""), "no way (SQLSTATE 28P01)", "postgres.password_file", true},
		"password of a flag":     {Target{Stated: "--url"}, refusal("28P01", ""), "28P01", "PGPASSWORD", true},
		"pg_hba.conf":            {ordinary, refusal("28000", ""), "28000", "`hostssl \"shop\" \"o'neil\" ADDRESS/32 scram-sha-256`", true},
		"database":               {ordinary, refusal("3D000", ""), "3D000", "correct the database in postgres.url", true},
		"CONNECT":                {ordinary, refusal("42501", "CheckMyDatabase"), "42501", `GRANT CONNECT ON DATABASE "shop" TO "o'neil"`, true},
		"REPLICATION":            {streaming, refusal("42501", "InitPostgres"), "42501", `ALTER ROLE "o'neil" REPLICATION`, true},
		"either":                 {streaming, refusal("42501", ""), "42501", `ALTER ROLE "o'neil" REPLICATION; GRANT CONNECT`, true},
		"connections":            {ordinary, refusal("53300", ""), "53300", "max_connections", false},
		"walsenders":             {streaming, refusal("53300", ""), "53300", "max_wal_senders", false},
		"starting":               {ordinary, refusal("57P03", ""), "57P03", "wait", false},
		"not accepting":          {ordinary, refusal("55000", ""), "55000", `ALTER DATABASE "shop" ALLOW_CONNECTIONS true`, true},
		"pooler":                 {streaming, refusal("08P01", ""), "08P01", "pooler", true},
		"anything else":          {ordinary, refusal("XX000", ""), "XX000", "log of PostgreSQL", false},
		"no primary":             {ordinary, errors.Join(os.ErrDeadlineExceeded, pgconn.ErrReadOnlyConnection), "target_session_attrs wants a primary", "postgres.url", false},
		"no standby":             {ordinary, pgconn.ErrPrimaryConnection, "target_session_attrs wants a standby", "postgres.url", false},
		"no name":                {ordinary, &net.DNSError{Name: "db", IsNotFound: true}, "the name db does not resolve here", "postgres.url", false},
		"no resolver":            {ordinary, &net.DNSError{Name: "db", Err: "server misbehaving"}, "could not be looked up (server misbehaving)", "resolver", false},
		"nobody":                 {ordinary, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, "nothing listens", "postgres.url", false},
		"no socket":              {ordinary, &net.OpError{Op: "dial", Err: syscall.ENOENT}, "no such socket", "postgres.url", false},
		"a socket of others":     {ordinary, &net.OpError{Op: "dial", Err: syscall.EACCES}, "permission denied", "postgres.url", false},
		"no route":               {ordinary, &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}, "no route", "firewall", false},
		"silence":                {Target{Stated: "--url", Timeout: 5 * time.Second}, context.DeadlineExceeded, "no answer within 5s", "--url", false},
		"silence without limit":  {ordinary, os.ErrDeadlineExceeded, "no answer in time", "postgres.url", false},
		"closed":                 {ordinary, fmt.Errorf("receive: %w", io.ErrUnexpectedEOF), "closes the connection", "proxy", false},
		"an alert":               {ordinary, &net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, "ends the TLS connection", "sslcert", false},
		"an untrusted authority": {ordinary, x509.UnknownAuthorityError{}, "no trusted authority", "sslrootcert in postgres.url", false},
		"what nobody knows":      {ordinary, fmt.Errorf("failed:\n\t%w", errors.New("what\nis it")), "what is it", "postgres.url", false},
	} {
		fault := (&Watch{}).Read(c.err, c.target, now)
		if !strings.Contains(fault.Text, c.want) || !strings.Contains(fault.Cure, c.cure) || fault.Cure == "" || fault.Refused != c.refused {
			t.Errorf("%s: %+v", name, fault)
		}
		if text := fault.String(); strings.ContainsAny(text, "\n\t") || strings.Contains(text, "dial") || strings.HasSuffix(text, ".") {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// answering is a config whose server answers the first bytes that it gets.
func answering(t *testing.T, url string, answer string) *pgconn.Config {
	t.Helper()
	config, err := pgconn.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.LookupFunc = func(context.Context, string) ([]string, error) { return []string{"192.0.2.1"}, nil }
	config.DialFunc = func(context.Context, string, string) (net.Conn, error) {
		client, far := net.Pipe()
		go func() {
			defer far.Close()
			if _, err := far.Read(make([]byte, 1<<10)); err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, far) }() // a pipe holds nothing
			_, _ = io.WriteString(far, answer)              // the client may have gone
		}()
		return client, nil
	}
	return config
}

func TestAServerOfAnotherKindIsSeenThroughTheDriver(t *testing.T) {
	for _, c := range []struct{ url, answer, want string }{
		{"postgres://u@db/shop?sslmode=disable", "HTTP/1.1 400 Bad Request\r\n\r\n", "what answers there is an HTTP server, not PostgreSQL"},
		{"postgres://u@db/shop?sslmode=require", "HTTP/1.1 400 Bad Request\r\n\r\n", "what answers there is an HTTP server, not PostgreSQL"},
		{"postgres://u@db/shop?sslmode=disable", "SSH-2.0-OpenSSH_9.2\r\n", "what answers there is an SSH server, not PostgreSQL"},
		{"postgres://u@db/shop?sslmode=require", "SSH-2.0-OpenSSH_9.2\r\n", "what answers there is"},
		{"postgres://u@db/shop?sslmode=require", "N", "the server has no TLS"},
		{"postgres://u@db/shop?sslmode=disable", "", "closes the connection"},
	} {
		config := answering(t, c.url, c.answer)
		watch := Begin(config)
		_, err := pgconn.ConnectConfig(t.Context(), config)
		if err == nil {
			t.Fatal("connected")
		}
		fault := watch.Read(err, Target{Stated: "postgres.url", User: "u", Database: "shop"}, now)
		if !strings.HasPrefix(fault.Text, c.want) && !strings.Contains(fault.Text, c.want) || fault.Refused {
			t.Errorf("%s, %q: %+v", c.url, c.answer, fault)
		}
	}
}
