package provision

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// tryPSQL runs PostgreSQL's own client and returns what it prints. The error is
// that of exec.Cmd.
func (d *database) tryPSQL(args ...string) (string, error) {
	d.t.Helper()
	program, err := exec.LookPath("psql")
	if err != nil {
		d.t.Fatalf("no psql: %v\nto install it: apt-get install -y postgresql-client", err)
	}
	command := exec.CommandContext(d.t.Context(), program, append([]string{"-X"}, args...)...)
	command.Env = append(os.Environ(), "PGHOST=127.0.0.1", "PGPORT="+strconv.Itoa(d.server.Port()), "PGUSER=postgres")
	out, err := command.CombinedOutput()
	return string(out), err
}

func (d *database) psql(database string, args ...string) string {
	d.t.Helper()
	out, err := d.tryPSQL(append([]string{"-d", database}, args...)...)
	if err != nil {
		d.t.Fatalf("psql: %v\n%s", err, out)
	}
	return out
}

func (d *database) script(p Plan, database string) string {
	d.t.Helper()
	p.SlotTimeout = time.Minute
	file := filepath.Join(d.t.TempDir(), "init.sql")
	if err := os.WriteFile(file, []byte(p.Script(database)), 0o600); err != nil {
		d.t.Fatal(err)
	}
	return file
}

// everything is a plan in which each part of a script occurs.
func (d *database) everything() Plan {
	d.exec(`CREATE SCHEMA "My Schema"`)
	p := d.withRoles(d.plan(outbox, Table{"My Schema", "Out\"box $$ \\ ' %\n;"}))
	p.Publication = "Pub $do1$ $$ '\\\""
	p.Failover = d.server.Installation().Major >= 17
	p.Roles[0].Name = d.role("Pub'lisher \\ $$\n\"")
	return p
}

func TestTheScriptDoesWhatRunDoes(t *testing.T) {
	onEach(t, func(t *testing.T, by *database) {
		p := by.everything()
		file := by.script(p, by.name)
		by.psql(by.name, "-f", file)
		scripted := by.catalogs(p)
		exists := []string{"role " + p.Roles[0].Name + ": exists", "role " + p.Roles[1].Name + ": exists", "table public.outbox: exists", "table " + p.Tables[1].String() + ": exists",
			"publication " + p.Publication + ": exists", "slot " + p.Slot + ": exists"}
		by.expect(p, exists...)
		by.psql(by.name, "-f", file)
		by.expect(p, exists...)
		if again := by.catalogs(p); again != scripted {
			t.Errorf("the second time changed\n%s\nto\n%s", scripted, again)
		}

		run := newDatabase(t, by.server)
		q := run.everything()
		if _, err := run.run(q); err != nil {
			t.Fatal(err)
		}
		if got := run.catalogs(q); got != scripted {
			t.Errorf("Run makes\n%s\nthe script\n%s", got, scripted)
		}
	})
}

func TestTheScriptAddsTablesToAPublicationThatExists(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		d.psql(d.name, "-f", d.script(d.plan(outbox), d.name))
		p := d.plan(outbox, Table{"public", "outbox2"})
		d.psql(d.name, "-f", d.script(p, d.name))
		d.expect(p, "table public.outbox: exists", "table public.outbox2: exists", "publication "+d.name+": exists", "slot "+d.name+": exists")
	})
}

func TestTheScriptStopsWhereItDoesNotBelong(t *testing.T) {
	for name, c := range map[string]struct {
		settings []string
		version  string
		database string
		failover bool
		says     string
	}{
		"another database":      {version: "14", database: "shop %", says: "this is database postgres, and the slot belongs into shop %"},
		"no logical decoding":   {version: "14", settings: []string{"wal_level=replica"}, database: "postgres", says: "wal_level is replica: set it to logical"},
		"no failover slots yet": {version: "15", database: "postgres", failover: true, says: "failover slots exist since PostgreSQL 17, and this is 15."},
	} {
		t.Run(name, func(t *testing.T) {
			server := shared.Postgres(t, c.version, append(c.settings, "max_prepared_transactions=5")...)
			d := (&database{t: t, server: server, name: "postgres"}).connect("")
			p := d.withRoles(d.plan(outbox))
			p.Failover = c.failover
			before := d.catalogs(p)
			out, err := d.tryPSQL("-d", "postgres", "-f", d.script(p, c.database))
			if err == nil || !strings.Contains(out, c.says) {
				t.Errorf("%v, and does not say %q: %s", err, c.says, out)
			}
			if after := d.catalogs(p); after != before {
				t.Errorf("made\n%s", after)
			}
		})
	}
}

func TestScriptGoldens(t *testing.T) {
	plain := Plan{Tables: []Table{outbox}, Columns: common, Publication: "cdcpub", Slot: "cdcpub", SlotTimeout: time.Minute,
		Roles: []Role{{"cdcpub", Publish}, {"cdcpub_monitor", Monitor}}}
	debezium := Plan{Tables: []Table{{"Sales", "outbox"}, {"billing", "order"}}, Publication: "dbz", Slot: "dbz", SlotTimeout: 1500 * time.Millisecond, Failover: true,
		Columns: Columns{EventID: "id", AggregateType: "aggregatetype", AggregateID: "aggregateid", EventType: "type", Payload: "payload"}, ConventionOnly: true,
		Extra: []Column{{"region", "text", "NOT NULL"}}, Roles: []Role{{"Shop-CDC", Publish}}}
	for name, script := range map[string]string{"plain.sql": plain.Script("shop"), "debezium.sql": debezium.Script("Shop")} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", name)
			if *update {
				if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(want, []byte(script)) {
				t.Errorf("%s differs; look at it as who must approve it, and if it is right: go test ./internal/provision -update\n%s", file, script)
			}
		})
	}
}

func TestKeyWordsAreQuoted(t *testing.T) {
	if !slices.IsSorted(keyWords) {
		t.Error("keyWords is not sorted")
	}
	onEach(t, func(t *testing.T, d *database) {
		words := strings.Fields(d.text("SELECT string_agg(word, ' ') FROM pg_get_keywords() WHERE catcode <> 'U'"))
		if len(words) < 100 {
			t.Fatalf("the server has only %d key words", len(words))
		}
		for _, word := range words {
			if got := identifier(word); got != `"`+word+`"` {
				t.Errorf("%s stays %s", word, got)
			}
		}
	})
}
