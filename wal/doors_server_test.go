package wal

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/test/harness"
)

// doors decides by the address that a client comes to, since one server has one
// pg_hba.conf: the user tells the ways in apart.
const doors = `hostnossl all postgres 127.0.0.1/32 trust
hostssl all certain 127.0.0.1/32 cert
hostssl all all 127.0.0.1/32 scram-sha-256
`

func TestEveryWayInAndEveryClosedDoorOfARealServer(t *testing.T) {
	tomorrow := time.Now().Add(20 * time.Hour)
	house, strangers := harness.NewAuthority(t, "the house CA"), harness.NewAuthority(t, "another CA")
	good := house.Issue(t, "server", "localhost", tomorrow)
	bad := map[string]harness.Certificate{
		"expired": house.Issue(t, "expired", "localhost", time.Now().Add(-time.Hour)),
		"named":   house.Issue(t, "named", "db.elsewhere.test", tomorrow),
	}
	us, other := house.Issue(t, "us", "certain", tomorrow), house.Issue(t, "other", "somebody", tomorrow)
	stranger := strangers.Issue(t, "stranger", "certain", tomorrow)
	server := harness.PostgresWith(t, pgserver.Options{
		Settings: map[string]string{"ssl": "on", "ssl_cert_file": "server.crt", "ssl_key_file": "server.key", "ssl_ca_file": "ca.crt", "password_encryption": "scram-sha-256"},
		Files:    map[string]string{"server.crt": good.PEM, "server.key": good.Key, "ca.crt": house.PEM, "pg_hba.conf": doors},
	})
	admin := connect(t, server.URL("postgres"))
	exec(t, admin, "CREATE DATABASE shop", "CREATE ROLE scram LOGIN REPLICATION PASSWORD 'hush'", "CREATE ROLE certain LOGIN REPLICATION")
	plain := harness.Postgres(t, "")
	attempt := func(t *testing.T, url string) error {
		t.Helper()
		stream, err := Open(t.Context(), Config{
			Slot: fakeSlot, Publication: "p", Tables: []Table{{"public", "outbox"}},
			Connect: func(context.Context) (*ConnConfig, error) { return pgconn.ParseConfig(url) },
		})
		if stream != nil {
			t.Fatal("there is no slot, and still it was opened")
		}
		return err
	}
	at := func(user, more string) string {
		return fmt.Sprintf("postgres://%s@127.0.0.1:%d/shop?sslmode=verify-full&sslrootcert=%s%s", user, server.Port(), house.File, more)
	}
	key := func(c harness.Certificate) string { return "&sslcert=" + c.File + "&sslkey=" + c.KeyFile }
	present := func(c harness.Certificate) func(*testing.T) {
		return func(t *testing.T) {
			t.Helper()
			for name, text := range map[string]string{"server.crt": c.PEM, "server.key": c.Key} {
				if err := server.WriteFile(name, text); err != nil {
					t.Fatal(err)
				}
			}
			exec(t, admin, "SELECT pg_reload_conf()")
		}
	}
	const in = "slot " + fakeSlot + " does not exist" // as far as one comes without a slot
	for _, test := range []struct {
		name, url, says string
		before          func(*testing.T)
	}{
		{"SCRAM", at("scram:hush", ""), in, nil},
		{"client certificate", at("certain", key(us)), in, nil},
		{"several hosts", strings.Replace(at("scram:hush", "&target_session_attrs=read-write"), "127.0.0.1:", "127.0.0.1:1,127.0.0.1:", 1), in, nil},
		{"wrong password", at("scram:hush-wrong", ""), "PostgreSQL does not let user scram in: FATAL: password authentication failed", nil},
		{"no client certificate", at("certain", ""), "PostgreSQL does not let user certain in: FATAL: connection requires a valid client certificate", nil},
		{"another's certificate", at("certain", key(other)), "FATAL: certificate authentication failed for user \"certain\"", nil},
		// The driver shows no certificate of an authority that the server does not name.
		{"strange certificate", at("certain", key(stranger)), "FATAL: connection requires a valid client certificate", nil},
		{"wrong CA", strings.Replace(at("scram:hush", ""), house.File, strangers.File, 1), `the server has a certificate that no trusted authority has signed (its chain ends at "CN=the house CA"); name a file`, nil},
		{"plain text is refused", strings.Replace(at("scram:hush", ""), "verify-full", "disable", 1), "PostgreSQL does not let user scram in: FATAL: no pg_hba.conf entry", nil},
		{"server without TLS", strings.Replace(plain.URL("postgres"), "disable", "require", 1), "the server has no TLS, and sslmode demands it; set ssl = on", nil},
		{"expired", at("scram:hush", ""), "the server has a certificate that expired on ", present(bad["expired"])},
		{"wrong host name", at("scram:hush", ""), "the server has a certificate that is not for 127.0.0.1, but for db.elsewhere.test; connect by a name", present(bad["named"])},
		{"renewed", at("scram:hush", ""), in, present(good)},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.before != nil {
				test.before(t)
			}
			err := attempt(t, test.url)
			// A reload takes effect a moment later.
			for end := time.Now().Add(30 * time.Second); test.before != nil && !strings.Contains(err.Error(), test.says) && time.Now().Before(end); {
				err = attempt(t, test.url)
			}
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Fatalf("got %v\nwant %s", err, test.says)
			}
			if strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "\n") {
				t.Errorf("shows the password, or has several lines: %q", err)
			}
		})
	}
}

// The stream is on the second of two hosts. A look at the first one would find
// that nobody holds the slot.
func TestALookGoesToTheServerOfTheStream(t *testing.T) {
	var dialed []string
	refuse := errors.New("dialed")
	config, err := pgconn.ParseConfig("postgres://u@db1,db2,%2Frun%2Fnone/shop?port=5432,5432,5433&sslmode=disable&target_session_attrs=primary")
	if err != nil {
		t.Fatal(err)
	}
	config.LookupFunc = func(context.Context, string) ([]string, error) { return []string{"192.0.2.1"}, nil }
	config.DialFunc = func(_ context.Context, network, address string) (net.Conn, error) {
		dialed = append(dialed, network+" "+address)
		return nil, refuse
	}
	for stream, want := range map[place]string{
		{"tcp", "192.0.2.2:5432"}:           "tcp 192.0.2.2:5432",
		{"unix", "/run/none/.s.PGSQL.5433"}: "unix /run/none/.s.PGSQL.5433",
	} {
		dialed = nil
		only := stream.only(config)
		if _, err := pgconn.ConnectConfig(t.Context(), only); !errors.Is(err, refuse) {
			t.Errorf("%v: %v", stream, err)
		}
		for _, address := range dialed {
			if address != want {
				t.Errorf("%v: dialed %s", stream, address)
			}
		}
		if only.ValidateConnect != nil || config.ValidateConnect == nil {
			t.Error("the kind of the server matters for a look")
		}
	}
}
