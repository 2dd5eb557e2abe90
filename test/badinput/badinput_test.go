package badinput

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cdcpub/cdcpub/internal/golden"
	"github.com/cdcpub/cdcpub/test/harness"
)

var shared harness.Shared

func TestMain(m *testing.M) { harness.Main(m, &shared) }

// mistake is one thing done wrong.
type mistake struct {
	name string
	// args are those of cdcpub; nil is run with the configuration.
	args []string
	// config is the configuration file, with what stand.fill replaces; "" is
	// the usual one, or none for a local mistake.
	config string
	env    []string
	// prepare is SQL in the database of the mistake, as its owner, after the
	// outbox, the publication and the slot were made.
	prepare string
	// elsewhere is SQL in another database, as a superuser, after prepare.
	elsewhere string
	// first runs before the program, in its stand.
	first func(*stand)
	// code is the exit code; stays means that the program does not end: it
	// waits, and says for what.
	code int
	// names must all be in the sentence.
	names []string
	// event is that of the log line with the sentence of a program that stays;
	// "" is the first warning.
	event string
	// unfinished sentences have no cure yet, or still the driver's words. One
	// that is good now must lose this mark.
	unfinished bool
	// longest is the limit of its length; 0 means the usual.
	longest int
}

// stays is the code of a program that goes on.
const stays = -1

// group is a part of testdata/sentences.txt.
type group struct {
	title string
	// local mistakes are found without any server.
	local    bool
	mistakes []mistake
}

func groups() []group {
	return []group{
		{"Command line", true, commandLine},
		{"Configuration file", true, configuration},
		{"Configuration, secrets and TLS", true, security},
		{"PostgreSQL connection", false, connection},
		{"PostgreSQL, password by a command", false, passwordCommands},
		{"PostgreSQL objects", false, objects},
		{"Kafka", false, brokers},
		{"Kafka, SASL", false, sasl},
		{"This machine", false, machine},
	}
}

func TestEveryMistakeHasItsSentence(t *testing.T) {
	var mu sync.Mutex
	said := map[string]string{}
	shared.Binary(t, harness.BuildOptions{}) // so that no mistake waits for it
	// Subtests run in parallel; t.Run returns when all of them have ended.
	t.Run("mistakes", func(t *testing.T) {
		for _, g := range groups() {
			for _, m := range g.mistakes {
				key := g.title + ": " + m.name
				t.Run(key, func(t *testing.T) {
					t.Parallel()
					text := commit(t, m, g.local)
					mu.Lock()
					defer mu.Unlock()
					if _, twice := said[key]; twice {
						t.Fatal("two mistakes have this name")
					}
					said[key] = text
				})
			}
		}
	})
	const file = "sentences.txt"
	got := render(said)
	if want, same := golden.Read(t, file, got); !same && !t.Failed() {
		t.Errorf("testdata/%s is not what the program says now; look at the difference, and accept it with go test ./test/badinput -update\n%s", file, difference(string(want), string(got)))
	}
}

// render is the text of the golden file.
func render(said map[string]string) []byte {
	var b bytes.Buffer
	b.WriteString("What cdcpub says to each mistake. Written by go test ./test/badinput -update.\n")
	for _, g := range groups() {
		fmt.Fprintf(&b, "\n== %s\n", g.title)
		for _, m := range g.mistakes {
			fmt.Fprintf(&b, "\n-- %s\n%s", m.name, said[g.title+": "+m.name])
		}
	}
	return b.Bytes()
}

// difference lists the lines that only one of the texts has.
func difference(want, got string) string {
	var b strings.Builder
	for _, side := range []struct{ sign, text, other string }{{"-", want, got}, {"+", got, want}} {
		other := map[string]bool{}
		for line := range strings.Lines(side.other) {
			other[line] = true
		}
		for line := range strings.Lines(side.text) {
			if !other[line] {
				b.WriteString(side.sign + line)
			}
		}
	}
	return b.String()
}
