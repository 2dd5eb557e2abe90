package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestRedactedHidesEverySecretAndNothingElse(t *testing.T) {
	for in, want := range map[string]string{
		"":                  "",
		"postgres://h/db":   "postgres://h/db",
		"postgres://u@h/db": "postgres://u@h/db",
		"postgres://u:hunter2@h:5432/db?options=b":                   "postgres://u:xxxxx@h:5432/db?options=b",
		"postgresql://u:hunter2@h1:1,h2:2/db":                        "postgresql://u:xxxxx@h1:1,h2:2/db",
		"postgres://u:hunter2?#:@[::1]:5432/db":                      "postgres://u:xxxxx@[::1]:5432/db",
		"postgres://h/db?password=hunter2&user=u&pass%77ord=hunter2": "postgres://h/db?password=xxxxx&user=u&pass%77ord=xxxxx",
		"postgres://h/db?sslpassword=hunter2&sslkey=/k":              "postgres://h/db?sslpassword=xxxxx&sslkey=/k",
		"postgres://u:@h/db":                                         "postgres://u:@h/db",
		"host=h password=hunter2 user=u":                             "host=h password=xxxxx user=u",
		"host=h password = 'hunter2 \\' x' user=u":                   "host=h password = xxxxx user=u",
		`password=hunter\ 2 host=h`:                                  `password=xxxxx host=h`,
		"passwd=hunter2":                                             "xxxxx",
		"passfile=/p sslpassword=hunter2":                            "passfile=/p sslpassword=xxxxx",
		// Where the secret ends is not certain: nothing is shown.
		"postgres://u:hunter2/x@h/db":   "xxxxx",
		"postgres://u:hun@ter2@h/db":    "xxxxx",
		"postgres://u:hunter2%@h/db":    "xxxxx",
		"postgres://u:hunter2":          "xxxxx",
		"postgres://h/db?hunter2":       "xxxxx",
		"mysql://u:hunter2@h/db":        "xxxxx",
		"jdbc:postgresql://h?p=hunter2": "xxxxx",
		"password=hunter2 hunter2":      "xxxxx",
		"password='hunter2":             "xxxxx",
		"password='hunter2'hunter2=x":   "xxxxx",
		"hunter2":                       "xxxxx",
		"hunter2==":                     "xxxxx",
	} {
		if got := ConnString(in).Redacted(); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

func TestEveryWayToFormatAConfigIsRedacted(t *testing.T) {
	c := mustParse(t, minimal, "CDCPUB_POSTGRES_URL=postgres://u:hunter2@h/db")
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	formats := []string{string(text), c.Postgres.URL.String()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		formats = append(formats, fmt.Sprintf(verb, c), fmt.Sprintf(verb, *c), fmt.Sprintf(verb, c.Postgres.URL))
	}
	for _, s := range formats {
		if strings.Contains(s, "hunter2") || strings.Contains(s, fmt.Sprintf("%x", "hunter2")) {
			t.Errorf("shows the password: %s", s)
		}
	}
	if got := string(c.Postgres.URL); got != "postgres://u:hunter2@h/db" {
		t.Errorf("string() = %s", got)
	}
}

// The redacted string must mean the same to the driver, but for the secrets.
// This holds our parser and the driver's together.
func FuzzRedactedMeansTheSame(f *testing.F) {
	for _, s := range []string{
		"postgres://u:hunter2@h:5432/db?options=b", "postgres://h1,h2:2/db?password=x", "host=h password='a \\' b' user=u",
		"postgres://u:p@[::1]/db?sslmode=disable", "user=a\\ b password=c\\", "postgres://%2Frun/db?port=1&a",
		"a='' password = x", "postgres://u:p@?password=x&", "postgres://u: p @h/d",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		info, err := ConnString(s).check()
		if err != nil {
			return
		}
		if info.states("sslrootcert") || info.states("sslcert") || info.states("passfile") ||
			info.states("service") || info.states("servicefile") || info.states("sslkey") {
			return // files of the machine must not decide
		}
		before, err := pgconn.ParseConfig(s)
		if err != nil {
			return
		}
		after, err := pgconn.ParseConfig(ConnString(s).Redacted())
		if err != nil {
			t.Fatalf("%q: redacted %q does not parse: %v", s, ConnString(s).Redacted(), err)
		}
		if before.Password != "" && after.Password != redacted {
			t.Errorf("%q: the password in %q is not redacted", s, ConnString(s).Redacted())
		}
		if before.Host != after.Host || before.Port != after.Port || before.User != after.User ||
			before.Database != after.Database || len(before.Fallbacks) != len(after.Fallbacks) {
			t.Errorf("%q means something else than %q", s, ConnString(s).Redacted())
		}
		strict, err := pgconn.ParseConfig(string(info.with(ConnString(s), "sslmode", "verify-full")))
		if err != nil {
			t.Fatalf("%q: with sslmode: %v", s, err)
		}
		if strict.Password != before.Password || strict.Host != before.Host || strict.Database != before.Database {
			t.Errorf("%q: sslmode changed the rest", s)
		}
	})
}

func TestConnectionStringProblemsSayWhatToDo(t *testing.T) {
	const encode = "; a password in a URL needs percent-encoding (%40 for @, %2F for /), or goes into a password file"
	for in, want := range map[string]string{
		"postgres://u:hunter2@h/db?ssl_mode=require": "has an unknown parameter; did you mean sslmode?",
		"host=h search_path=hunter2": "has an unknown parameter; settings of the session go into options, " +
			"for example options='-c statement_timeout=10s'",
		"host=h replication=database":     "must not state replication; each connection sets it itself",
		"postgres://u:hun/ter2@h/db":      "has an @ where none is expected" + encode,
		"postgres://u:hunter2":            "has a port that is not a number from 1 to 65535" + encode,
		"postgres://u:hunter2%2@h/db":     "has a % that is not followed by two hexadecimal digits" + encode,
		"postgres://h/db?hunter2":         "must have parameters of the form ?key=value&key=value" + encode,
		"postgres://u:hunter2@[::1/db":    "has an IPv6 address without a closing ]",
		"postgres://u:hunter2@[::1]a/db":  "has text between an IPv6 address and its port",
		"host=h password='hunter2":        "has a value whose single quote is not closed",
		"host=h password='hunter2'x":      `has text right behind a closing single quote; write \' for a quote in a value`,
		"host=h\npassword=hunter2":        "has a control character",
		"mysql://u:hunter2@h/db":          keywordProblem,
		"host=h password=hunter2 hunter2": keywordProblem,
	} {
		if _, err := ConnString(in).check(); err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", in, err, want)
		}
	}
}

const keywordProblem = "must be a URL that begins with postgres:// or postgresql://, " +
	"or keyword=value pairs, where a value with spaces needs single quotes"
