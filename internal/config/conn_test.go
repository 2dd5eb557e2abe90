package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// isolate hides the machine's PostgreSQL client settings from the test.
func isolate(t *testing.T) (home string) {
	t.Helper()
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "PG") {
			t.Setenv(name, "")
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	home = t.TempDir()
	t.Setenv("HOME", home)
	return home
}

func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// security says what TLS protects the connections to every host, in order.
func security(c *pgconn.Config) string {
	one := func(host string, f pgconn.FallbackConfig) string {
		switch {
		case f.TLSConfig == nil:
			return host + ":plain"
		case f.TLSConfig.InsecureSkipVerify:
			return host + ":unverified"
		}
		return host + ":verified"
	}
	all := []string{one(c.Host, pgconn.FallbackConfig{TLSConfig: c.TLSConfig})}
	for _, f := range c.Fallbacks {
		all = append(all, one(f.Host, *f))
	}
	return strings.Join(all, " ")
}

func TestUnstatedSSLModeIsVerifyFullUnlessLocal(t *testing.T) {
	home := isolate(t)
	service := writeFile(t, home, "services", "[strict]\nhost=db\nsslmode=disable\n[lax]\nhost=db\n")
	for _, test := range []struct{ url, env, want string }{
		{"postgres://u@db/x", "", "db:verified"},
		{"postgres://u@db", "", "db:verified"},
		{"postgres://u@db/x?", "", "db:verified"},
		{"postgres://u@db/x?connect_timeout=3", "", "db:verified"},
		{"host=db user=u", "", "db:verified"},
		{`host=db user=u\`, "", "db:verified"},
		{"postgres://db1,db2/x", "", "db1:verified db2:verified"},
		{"postgres://localhost,db2/x", "", "localhost:verified db2:verified"},
		{"postgres://u@db/x?sslmode=prefer", "", "db:unverified db:plain"},
		{"postgres://u@db/x?sslmode=disable", "", "db:plain"},
		{"postgres://u@db/x?ssl=true", "", "db:unverified"},
		{"host=db sslmode=require", "", "db:unverified"},
		{"host=db sslnegotiation=direct", "", "db:verified"},
		{"host=db", "PGSSLMODE=require", "db:unverified"},
		{"dbname=x", "PGHOST=db", "db:verified"},
		{"postgres://localhost/x", "", "localhost:unverified localhost:plain"},
		{"postgres://127.0.0.2/x", "", "127.0.0.2:unverified 127.0.0.2:plain"},
		{"postgres://[::1]/x", "", "::1:unverified ::1:plain"},
		{"host=/run/postgresql", "", "/run/postgresql:plain"},
		{"postgres://%2Frun%2Fpostgresql/x", "", "/run/postgresql:plain"},
		{"service=strict servicefile=" + service, "", "db:plain"},
		{"service=lax servicefile=" + service, "", "db:verified"},
		{"servicefile=" + service, "PGSERVICE=lax", "db:verified"},
	} {
		t.Run(test.url+" "+test.env, func(t *testing.T) {
			if name, value, ok := strings.Cut(test.env, "="); ok {
				t.Setenv(name, value)
			}
			c, err := Postgres{URL: ConnString(test.url)}.ConnConfig()
			if err != nil {
				t.Fatal(err)
			}
			if got := security(c); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			for _, host := range append(c.Fallbacks, &pgconn.FallbackConfig{Host: c.Host, TLSConfig: c.TLSConfig}) {
				if strings.Contains(test.want, ":verified") && host.TLSConfig.ServerName != host.Host {
					t.Errorf("server name %q for host %q", host.TLSConfig.ServerName, host.Host)
				}
			}
		})
	}
}

func TestPasswordSources(t *testing.T) {
	home := isolate(t)
	file := writeFile(t, home, "secret", "from file\n")
	writeFile(t, home, ".pgpass", "db:*:*:*:from passfile\n")
	password := func(p Postgres) string {
		t.Helper()
		c, err := p.ConnConfig()
		if err != nil {
			t.Fatal(err)
		}
		return c.Password
	}
	if got := password(Postgres{URL: "postgres://u:in%20url@db/x"}); got != "in url" {
		t.Errorf("from the URL: %q", got)
	}
	if got := password(Postgres{URL: "host=db user=u"}); got != "from passfile" {
		t.Errorf("from the passfile: %q", got)
	}
	t.Setenv("PGPASSWORD", "from env")
	if got := password(Postgres{URL: "host=db user=u"}); got != "from env" {
		t.Errorf("from the environment: %q", got)
	}
	p := Postgres{URL: "host=db user=u", PasswordFile: file}
	if got := password(p); got != "from file" {
		t.Errorf("from the file: %q", got)
	}
	writeFile(t, home, "secret", "rotated")
	if got := password(p); got != "rotated" {
		t.Errorf("after rotation: %q", got)
	}
}

func TestParametersOfTheSession(t *testing.T) {
	isolate(t)
	c, err := Postgres{URL: "postgres://db/x?client_encoding=utf8"}.ConnConfig(Param{"replication", "database"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"application_name": "cdcpub", "replication": "database", "client_encoding": "utf8"} {
		if got := c.RuntimeParams[name]; got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	c, err = Postgres{URL: "postgres://db/x?application_name=blue"}.ConnConfig()
	if err != nil {
		t.Fatal(err)
	}
	if got := c.RuntimeParams["application_name"]; got != "blue" {
		t.Errorf("stated application_name became %q", got)
	}
}

func TestConnConfigErrorsNameTheFieldAndNoSecret(t *testing.T) {
	home := isolate(t)
	for want, p := range map[string]Postgres{
		"postgres.url: invalid port": {URL: "host=db port=x password=hunter2"},
		"postgres.url: there is no file /none; correct the path, or create the file (sslrootcert, sslcert, sslkey)": {
			URL: "postgres://u:hunter2@db/x?sslrootcert=/none"},
		"postgres.url: has an unknown sslmode; allowed: disable, allow, prefer, require, verify-ca, verify-full": {
			URL: "postgres://u:hunter2@db/x?sslmode="},
		"postgres.url: a password in it cannot be used; write it into a password file":         {URL: "postgres://u:hunter2%00@db/x"},
		"postgres.password_file: there is no file /none; correct the path, or create the file": {URL: "host=db", PasswordFile: "/none"},
		"postgres.password_file: " + home + "/empty is empty; write the secret into it, or remove the setting": {
			URL: "host=db", PasswordFile: writeFile(t, home, "empty", "\n")},
		"postgres.password_file: " + home + "/two has more than one line; it must have nothing but the secret": {
			URL: "host=db", PasswordFile: writeFile(t, home, "two", "hunter2\nhunter2\n")},
	} {
		_, err := p.ConnConfig()
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}
