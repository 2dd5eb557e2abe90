package config

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// No text makes Load panic; what it accepts is valid, prints and loads again;
// what it refuses has at least one problem, on one line each.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/problems/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(files, exampleFile) {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, "CDCPUB_KAFKA_BROKERS=a:1,b:2")
	}
	f.Add([]byte("a: &a {<<: *a}\n"), "CDCPUB_OUTBOX_TABLES=\"a")
	f.Add([]byte(minimal), "CDCPUB_OUTBOX_HEADERS=a=b,=,\"")
	f.Add([]byte(watched), "CDCPUB_SLOT_MONITOR_ALERTMANAGER_URLS=http://u:p@am/x,https://b")
	f.Fuzz(func(t *testing.T, text []byte, variable string) {
		c, err := parse("c.yaml", text, []string{variable}, NeedStream)
		if err != nil {
			var problems *Problems
			if !errors.As(err, &problems) || len(problems.List) == 0 {
				t.Fatalf("not a list of problems: %v", err)
			}
			if lines := strings.Count(err.Error(), "\n") + 1; lines != len(problems.List) {
				t.Fatalf("%d problems on %d lines:\n%v", len(problems.List), lines, err)
			}
			return
		}
		if err := c.Validate(); err != nil {
			t.Fatalf("loaded but not valid: %v", err)
		}
		again, err := parse("printed.yaml", []byte(printed(t, c)), nil, NeedStream)
		if err != nil {
			t.Fatalf("printed but not loadable: %v", err)
		}
		redact(c)
		assertSameValues(t, again, c)
	})
}

// redact makes of all secrets what Print shows.
func redact(c *Config) {
	conns := append([]*ConnString{&c.Postgres.URL}, pointers(c.SlotMonitor.Servers)...)
	for _, s := range append(conns, pointers(c.SlotMonitor.Standbys)...) {
		*s = ConnString(s.Redacted())
	}
	for _, u := range append(pointers(c.SlotMonitor.Alertmanager.URLs), &c.SlotMonitor.Webhook.URL, &c.Kafka.SASL.OAuth.TokenURL) {
		*u = SecretURL(u.Redacted())
	}
	for _, s := range []*Secret{&c.Kafka.SASL.Password, &c.Kafka.SASL.OAuth.ClientSecret} {
		*s = Secret(s.Redacted())
	}
}

func pointers[T any](list []T) []*T {
	var all []*T
	for i := range list {
		all = append(all, &list[i])
	}
	return all
}

// The beginning and the end of a password appear in no output, wherever the
// password is and whatever it has in its middle.
func FuzzNoPartOfAPasswordIsShown(f *testing.F) {
	for _, middle := range []string{"", "@", "/", "%", "'", `\`, ":", "?", "#", "=", "&", "a@b:c/d", "'a'='", "\x00", "\n", "%zz", "://", "]", "{", "\xff"} {
		f.Add(middle)
	}
	f.Fuzz(func(t *testing.T, middle string) {
		const head, tail = "Zq7Zq7", "Xw9Xw9"
		password := head + middle + tail
		encoded, quoted := url.QueryEscape(password), strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(password)
		places := []string{
			password,
			"postgres://u:" + password + "@db.internal/shop",
			"postgres://u:" + encoded + "@db.internal/shop?sslrootcert=/none",
			"postgres://db.internal/shop?user=u&sslpassword=" + encoded,
			"host=db.internal password='" + quoted + "' port=x",
			"https://u:" + password + "@hooks.internal",
			"https://u:" + encoded + "@hooks.internal",
			"https://hooks.internal/services/" + password,
			"https://hooks.internal/?token=" + password,
		}
		// What ends a value there may make the rest a value of its own, and no
		// reader could tell.
		for place, end := range map[string]string{
			"postgres://u:": "@", "postgres://db.internal/shop?password=": "&",
			"host=db.internal password='": "'", "host=db.internal password=": " ",
		} {
			if !strings.Contains(middle, end) {
				places = append(places, place+password+strings.Trim(end, " @&"))
			}
		}
		for _, place := range places {
			for _, output := range outputs(t, place, password) {
				if strings.Contains(output, head) || strings.Contains(output, tail) {
					t.Fatalf("%q shows a part of the password:\n%s", place, output)
				}
			}
		}
	})
}

// indented is a document as the last part of the group before.
func indented(document string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(document, "\n"), "\n", "\n  ") + "\n"
}

// outputs is all that can be seen when the connection string is place.
func outputs(t *testing.T, place, password string) []string {
	t.Helper()
	document := func(v any) string {
		text, err := yaml.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	misplaced := document(map[string]any{
		"postgres": map[string]any{"url": []string{place}, "password": password, "u:" + place: "x"},
		"kafka":    place, "sasl": password,
		"outbox": map[string]any{"preset": map[string]any{password: place}},
		"window": map[string]any{"records": place, "bytes": password},
		"http":   map[string]any{"listen": place},
	})
	monitor := map[string]any{"slot_monitor": map[string]any{
		"servers": []string{place}, "standbys": []string{place},
		"webhook":      map[string]any{"url": place},
		"alertmanager": map[string]any{"urls": []string{place}},
	}}
	bearer := map[string]any{"sasl": map[string]any{"mechanism": "OAUTHBEARER", "oauth": map[string]any{
		"token_url": place, "client_id": "c", "client_secret": password}}}
	misplaced += document(map[string]any{"slot_monitor": map[string]any{
		"interval": place, "slots": map[string]any{"u:" + place: map[string]any{"u:" + place: place}, "a": place},
		"limits": map[string]any{"retained_wal_share": map[string]any{"warning": place, "critical": password}},
	}})
	var all []string
	for _, source := range []struct{ text, env string }{
		{minimal, "CDCPUB_POSTGRES_URL=" + place},
		{minimal, "CDCPUB_SLOT_MONITOR_SERVERS=" + place},
		{minimal, "CDCPUB_SLOT_MONITOR_WEBHOOK_URL=" + place},
		{minimal + document(monitor), ""},
		{minimal + "  sasl: {mechanism: PLAIN, user: u}\n", "CDCPUB_KAFKA_SASL_PASSWORD=" + password},
		{minimal + indented(document(bearer)), ""},
		{minimal + indented(document(map[string]any{"sasl": map[string]any{"user": []string{place}, "password": []string{password}, "passwd": place}})), ""},
		{strings.Replace(minimal, "url: ", document(map[string]string{"url": place})+"  # ", 1), ""},
		{strings.Replace(minimal, "url: ", "url: "+place+"\n  # ", 1), ""},
		{misplaced, "CDCPUB_POSTGRES_PASSWORD=" + password},
		{"postgres: " + place, ""},
		{"postgres:\n  url: *" + password + "\n", ""},
	} {
		c, err := parse("c.yaml", []byte(source.text), []string{source.env}, NeedStream)
		if err != nil {
			all = append(all, err.Error(), fmt.Sprintf("%+v", err))
			continue
		}
		var b bytes.Buffer
		if err := c.Print(&b); err != nil {
			t.Fatal(err)
		}
		all = append(all, b.String(), fmt.Sprintf("%+v %#v", c, *c))
		for _, s := range append(c.SlotMonitor.Servers, c.Postgres.URL) {
			if _, err := s.ConnConfig("path"); err != nil {
				all = append(all, err.Error())
			}
		}
	}
	return all
}
