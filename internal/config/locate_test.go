package config

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

func TestNoFileIsNeededWhereAVariableStatesASetting(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, env := range [][]string{nil, {"CDCPUB_POSTGRES_URL="}, {"PATH=/bin", "CDCPUB_CONFIG=other.yaml", "CDCPUB_SERVICE_HOST=10.0.0.1"}} {
		if path, err := Locate(env); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %q, %v", env, path, err)
		}
	}
	env := []string{"CDCPUB_POSTGRES_URL=host=db"}
	if path, err := Locate(env); path != "" || err != nil {
		t.Errorf("%q, %v", path, err)
	}
	c, err := LoadFor("", env, NeedSlots)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.origin("log.level"); got != (Origin{}) {
		t.Errorf("a file that is missing is an origin: %v", got)
	}
	if _, err := Load("", env); err == nil || !strings.Contains(err.Error(), "postgres.slot: is required, for example CDCPUB_POSTGRES_SLOT=cdcpub") {
		t.Errorf("without a file the variable is not named: %v", err)
	}
	// A file that is there is read, whatever the variables.
	if err := os.WriteFile(DefaultFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, env := range [][]string{nil, env} {
		if path, err := Locate(env); path != DefaultFile || err != nil {
			t.Errorf("%q: %q, %v", env, path, err)
		}
	}
}

func TestAFileThatIsNotThereIsNamed(t *testing.T) {
	for _, need := range []Need{NeedStream, NeedSlots, NeedStated} {
		if _, err := LoadFor("./other.yaml", []string{"CDCPUB_POSTGRES_URL=host=db"}, need); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "./other.yaml") {
			t.Errorf("%v", err)
		}
	}
	if _, err := Load(t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "is a directory; name a file") {
		t.Errorf("%v", err)
	}
}

func TestWhatAConfigurationIsForFollowsFromWhatItStates(t *testing.T) {
	servers := "slot_monitor: {servers: ['host=db']}\n"
	for text, want := range map[string]Need{
		servers: NeedSlots, servers + "postgres: {url: 'host=other'}\n": NeedSlots,
		servers + "kafka: {brokers: ['k:1']}\n": NeedStream, servers + "outbox: {tables: [a.b]}\n": NeedStream, servers + "postgres: {slot: a}\n": NeedStream,
		"postgres: {url: 'host=db'}\n": NeedStream, "{}": NeedStream,
	} {
		if _, err := parse("c.yaml", []byte(text), nil, NeedStated); (err == nil) != (want == NeedSlots) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
