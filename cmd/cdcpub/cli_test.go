package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const smallest = `postgres: {url: 'postgres://cdcpub:horse@127.0.0.1:1/shop', slot: cdcpub, publication: cdcpub}
outbox: {tables: [public.outbox]}
kafka: {brokers: [127.0.0.1:1]}
http: {listen: off}
`

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cdcpub.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

type outcome struct {
	code           int
	stdout, stderr string
}

// execute runs the command line with nothing in the environment but env.
func execute(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), process{args: args, env: env, stdout: &stdout, stderr: &stderr, signals: make(chan os.Signal)})
	return outcome{code, stdout.String(), stderr.String()}
}

func (o outcome) expect(t *testing.T, code int, stdout, stderr []string) {
	t.Helper()
	if o.code != code {
		t.Errorf("exit %d, want %d", o.code, code)
	}
	for name, text := range map[string]struct {
		got  string
		want []string
	}{"stdout": {o.stdout, stdout}, "stderr": {o.stderr, stderr}} {
		if len(text.want) == 0 && text.got != "" {
			t.Errorf("%s: %s", name, text.got)
		}
		for _, part := range text.want {
			if !strings.Contains(text.got, part) {
				t.Errorf("%s does not say %q: %s", name, part, text.got)
			}
		}
	}
	if strings.Contains(o.stdout+o.stderr, "horse") {
		t.Errorf("shows the password: %s%s", o.stdout, o.stderr)
	}
}

func TestCommandLine(t *testing.T) {
	good := file(t, smallest)
	bad := file(t, "postgres: {url: 'postgres://cdcpub:horse@localhost/shop', slot: UPPER}\nkafka: {brokes: [a:1], linger: soon}\n")
	for name, c := range map[string]struct {
		env            []string
		args           []string
		code           int
		stdout, stderr []string
	}{
		"no command":           {args: nil, code: exitUsage, stderr: []string{"cdcpub: a command is missing", "run", "init", "Try: cdcpub --help"}},
		"unknown command":      {args: []string{"publish"}, code: exitUsage, stderr: []string{"publish", "Try: cdcpub --help"}},
		"unknown flag":         {args: []string{"run", "--fast"}, code: exitUsage, stderr: []string{"--fast"}},
		"help":                 {args: []string{"--help"}, code: exitDone, stdout: []string{"Usage: cdcpub", "run", "init", "config print", "version"}},
		"help of a command":    {args: []string{"run", "--help"}, code: exitDone, stdout: []string{"Usage: cdcpub run", "CDCPUB_CONFIG"}},
		"version":              {args: []string{"version"}, code: exitDone, stdout: []string{"cdcpub ", "go1."}},
		"no file":              {args: []string{"run", "-c", "/nowhere/cdcpub.yaml"}, code: exitUsage, stderr: []string{"/nowhere/cdcpub.yaml"}},
		"all problems at once": {args: []string{"run", "-c", bad}, code: exitUsage, stderr: []string{"brokes", "linger", "slot", "publication", "tables"}},
		"the same for init":    {args: []string{"init", "-c", bad}, code: exitUsage, stderr: []string{"brokes", "linger", "slot", "publication", "tables"}},
		"the same for print":   {args: []string{"config", "print", "-c", bad}, code: exitUsage, stderr: []string{"brokes", "linger"}},
		"config print":         {args: []string{"config", "print", "-c", good}, code: exitDone, stdout: []string{"slot: cdcpub", "outbox.event.{aggregate_type}"}},
		"file by environment":  {env: []string{"CDCPUB_CONFIG=" + good}, args: []string{"config", "print"}, code: exitDone, stdout: []string{"slot: cdcpub"}},
		"the flag wins": {env: []string{"CDCPUB_CONFIG=" + good}, args: []string{"config", "print", "-c", "/nowhere/other.yaml"}, code: exitUsage,
			stderr: []string{"/nowhere/other.yaml"}},
		"value by environment": {env: []string{"CDCPUB_POSTGRES_SLOT=other"}, args: []string{"config", "print", "-c", good}, code: exitDone,
			stdout: []string{"slot: other"}},
		"init without a server": {args: []string{"init", "-c", good}, code: exitFailure, stderr: []string{"cdcpub: ", "127.0.0.1"}},
	} {
		t.Run(name, func(t *testing.T) { execute(t, c.env, c.args...).expect(t, c.code, c.stdout, c.stderr) })
	}
}

func TestAddressInUseEndsRun(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	config := file(t, strings.Replace(smallest, "listen: off", "listen: '"+taken.Addr().String()+"'", 1))
	execute(t, nil, "run", "-c", config).expect(t, exitFailure, nil, []string{"http.listen", "choose another address"})
}

// A signal while PostgreSQL cannot be reached is a clean end: there is nothing
// to deliver.
func TestSignalWhileConnecting(t *testing.T) {
	signals := make(chan os.Signal, 2)
	signals <- syscall.SIGTERM
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), process{args: []string{"run", "-c", file(t, smallest)}, stdout: &stdout, stderr: &stderr, signals: signals})
	outcome{code, stdout.String(), stderr.String()}.expect(t, exitDone, nil, []string{`"event":"starting"`, `"http_listen":"off"`, `"event":"signal"`, `"event":"stopped"`})
}

// What answers to no one must not hold init up: a signal ends it.
func TestSignalEndsInit(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	signals := make(chan os.Signal, 1)
	go func() {
		conn, err := silent.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		signals <- os.Interrupt
		_, _ = conn.Read(make([]byte, 1<<10)) // until the client has gone
		_, _ = conn.Read(make([]byte, 1))
	}()
	config := file(t, strings.Replace(smallest, "127.0.0.1:1/", silent.Addr().String()+"/", 1))
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), process{args: []string{"init", "-c", config}, stdout: &stdout, stderr: &stderr, signals: signals})
	outcome{code, stdout.String(), stderr.String()}.expect(t, exitFailure, nil, []string{"cdcpub: ", "interrupt"})
}
