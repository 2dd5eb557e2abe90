package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPasswordCommandIsAskedForEachConnection(t *testing.T) {
	home := isolate(t)
	t.Setenv("PGPASSWORD", "from env")
	token := writeFile(t, home, "token", "first\nthe second line is for people\n")
	p := Postgres{URL: "host=db1,db2 user=u", PasswordCommand: []string{"cat", token}}
	for _, want := range []string{"first", "second\t$HOME; `x`"} {
		writeFile(t, home, "token", want+"\r\n")
		c, err := p.ConnConfig()
		if err != nil {
			t.Fatal(err)
		}
		if c.Password != want {
			t.Errorf("password %q, want %q", c.Password, want)
		}
		standby, err := p.StandbyConnConfig(t.Context(), "host=standby user=u", "standbys")
		if err != nil || standby.Password != want {
			t.Errorf("for a standby: %v, %v", standby, err)
		}
	}
	if standby, err := p.StandbyConnConfig(t.Context(), "host=standby user=u password=own", "standbys"); err != nil || standby.Password != "own" {
		t.Errorf("a standby with a password of its own: %v", err)
	}
	c, err := Postgres{URL: "host=db user=u", PasswordCommand: []string{"false"}}.ConnConfigWithoutSecret()
	if err != nil || c.Password != "from env" {
		t.Errorf("without the secret: %v", err)
	}
}

func TestAFailingPasswordCommandIsNamedAndNothingItPrints(t *testing.T) {
	home := isolate(t)
	script := func(name, text string) []string {
		path := writeFile(t, home, name, "#!/bin/sh\n"+text)
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
		return []string{path, "hunter2-argument"}
	}
	plain := writeFile(t, home, "plain", "hunter2")
	for want, command := range map[string][]string{
		home + "/fails failed (exit status 3); run it by hand to see why":                                                                     script("fails", "echo hunter2; echo hunter2 >&2; exit 3"),
		home + "/empty printed no password on its first line; run it by hand to see what it prints":                                           script("empty", "echo; echo hunter2"),
		home + "/binary printed a first line that is no password: it has control characters or is not UTF-8; let it print the password alone": script("binary", `printf 'hunter2\000x'`),
		home + "/long printed a first line that is too long for a password; let it print the password alone":                                  script("long", "head -c 70000 /dev/zero | tr '\\0' x"),
		"no-such-program cannot be run: there is no such program in PATH; install it, or state its path":                                      {"no-such-program", "hunter2"},
		plain + " cannot be run: it may not be executed (permission denied); make it executable for the user of this process":                 {plain},
		filepath.Join(home, "none") + " cannot be run: there is no such file; install it, or correct the path":                                {filepath.Join(home, "none")},
	} {
		_, err := Postgres{URL: "host=db", PasswordCommand: command}.ConnConfig()
		if err == nil || err.Error() != "postgres.password_command: "+want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestTheEndOfAContextEndsThePasswordCommand(t *testing.T) {
	isolate(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the process ends"))
	_, err := Postgres{URL: "host=db", PasswordCommand: []string{"sleep", "3600"}}.ConnConfigContext(ctx)
	if want := "postgres.password_command: sleep was ended: the process ends"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestSecretsOfKafkaComeFromTheirFilesEachTime(t *testing.T) {
	dir := t.TempDir()
	file := writeFile(t, dir, "secret", "first\n")
	sasl := SASL{PasswordFile: file, OAuth: OAuth{ClientSecretFile: file}}
	for _, want := range []string{"first", "second"} {
		writeFile(t, dir, "secret", want)
		if got, err := sasl.CurrentPassword(); got != want || err != nil {
			t.Errorf("password %q, %v", got, err)
		}
		if got, err := sasl.OAuth.CurrentSecret(); got != want || err != nil {
			t.Errorf("client secret %q, %v", got, err)
		}
	}
	if got, err := (SASL{Password: "stated"}).CurrentPassword(); got != "stated" || err != nil {
		t.Errorf("stated password %q, %v", got, err)
	}
	writeFile(t, dir, "secret", "")
	if _, err := sasl.CurrentPassword(); err == nil || err.Error() != "kafka.sasl.password_file: "+file+" is empty; write the secret into it, or remove the setting" {
		t.Errorf("empty file: %v", err)
	}
	if _, err := sasl.OAuth.CurrentSecret(); err == nil || err.Error() != "kafka.sasl.oauth.client_secret_file: "+file+" is empty; write the secret into it, or remove the setting" {
		t.Errorf("empty file: %v", err)
	}
}

func TestRegionOfAWSComesFromTheEnvironmentUnlessStated(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	if _, err := (AWS{}).CurrentRegion(); err == nil || !strings.HasPrefix(err.Error(), "kafka.sasl.aws.region: ") {
		t.Errorf("no region: %v", err)
	}
	t.Setenv("AWS_DEFAULT_REGION", "eu-west-1")
	if region, err := (AWS{}).CurrentRegion(); region != "eu-west-1" || err != nil {
		t.Errorf("AWS_DEFAULT_REGION: %s, %v", region, err)
	}
	t.Setenv("AWS_REGION", "eu-north-1")
	for want, aws := range map[string]AWS{"eu-north-1": {}, "us-east-1": {Region: "us-east-1"}} {
		if region, err := aws.CurrentRegion(); region != want || err != nil {
			t.Errorf("%s, %v, want %s", region, err, want)
		}
	}
}

func TestEveryWayToFormatASecretIsRedacted(t *testing.T) {
	s := SASL{Password: "hunter2", OAuth: OAuth{ClientSecret: "hunter2", TokenURL: "https://idp/hunter2"}}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{string(text), s.Password.String(), fmt.Sprintf("%v %+v %#v %s %q %x", s, s, s, s.Password, s.Password, s.Password)} {
		if strings.Contains(shown, "hunter2") || strings.Contains(shown, fmt.Sprintf("%x", "hunter2")) {
			t.Errorf("shows the secret: %s", shown)
		}
	}
	if Secret("").Redacted() != "" {
		t.Error("shows a secret where there is none")
	}
}
