package bench

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/test/harness"
)

// The subjects, in the order in which they take turns.
const (
	reference    = "pg_recvlogical"
	cdcpub       = "cdcpub"
	cdcpubBefore = "cdcpub (earlier build)"
	cdcpubFake   = "cdcpub (broker without work)"
	debeziumCold = "Debezium (cold JVM)"
	debeziumWarm = "Debezium (warm JVM)"
)

// place is where a subject reads and writes.
type place struct {
	slot   string
	topics topics
}

// running is a subject at work.
type running interface {
	pid() int
	// failed says why it will not finish, nil while it may.
	failed() error
	// allocations is the number of heap objects allocated so far, 0 if unknown.
	allocations() uint64
	stop(b *testing.B)
}

// process is a subject that is one process.
type process struct{ *harness.Process }

func (p process) pid() int            { return p.PID() }
func (p process) allocations() uint64 { return 0 }

func (p process) failed() error {
	select {
	case <-p.Exited():
		return fmt.Errorf("the process has ended: %s", p.Stderr())
	default:
		return nil
	}
}

func (p process) stop(b *testing.B) { p.end(b) }

// end returns the exit code.
func (p process) end(b *testing.B) int {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	defer time.AfterFunc(stopLimit, func() { _ = p.Signal(syscall.SIGKILL) }).Stop()
	code, err := p.Wait(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return code
}

// stopLimit is how long a subject may take to end. Kafka Connect has been seen to
// wait for its connector for ever.
const stopLimit = 30 * time.Second

// publisher is cdcpub.
type publisher struct {
	process
	http string
}

func (p publisher) allocations() uint64 { return metric(p.http, "go_memstats_mallocs_total") }

// stop ends it cleanly; anything else than exit code 0 is a failure.
func (p publisher) stop(b *testing.B) {
	if code := p.end(b); code != 0 {
		b.Fatalf("cdcpub: exit %d\n%s", code, p.Stderr())
	}
}

func (s *stand) startCDCPub(b *testing.B, k *backlog, at place, program, broker string) running {
	ports, err := pgserver.FreePorts(2)
	if err != nil {
		b.Fatal(err)
	}
	http := fmt.Sprintf("127.0.0.1:%d", ports[0])
	config := fmt.Sprintf("postgres: {url: %q, slot: %s, publication: cdcpub}\noutbox: {tables: [public.outbox]}\n"+
		"kafka: {brokers: [%q], topic: '%s.{aggregate_type}'}\nhttp: {listen: %q}\n",
		k.url, at.slot, broker, at.topics.prefix, http)
	args := []string{"run", "-c", "{config}"}
	if *profiles != "" {
		args = append(args, "--pprof", fmt.Sprintf("127.0.0.1:%d", ports[1]))
	}
	p := harness.StartProcess(b, harness.ProcessOptions{Binary: program, Args: args, Config: config})
	if *profiles != "" {
		go keepProfile(fmt.Sprintf("127.0.0.1:%d", ports[1]), fmt.Sprintf("%s-%s", at.slot, filepath.Base(program)))
	}
	return publisher{process{p}, http}
}

// startReference runs PostgreSQL's own reader, to /dev/null.
func (s *stand) startReference(b *testing.B, k *backlog, at place) running {
	program := filepath.Join(s.server.Installation().Bin, "pg_recvlogical")
	if found, err := exec.LookPath(program); err != nil {
		if found, err = exec.LookPath("pg_recvlogical"); err != nil {
			b.Fatalf("%v: apt-get install -y postgresql-client-15", err)
		}
		program = found
	}
	return process{harness.StartProcess(b, harness.ProcessOptions{Binary: program, Args: []string{
		"-d", k.url, "--slot", at.slot, "--start", "--no-loop", "-f", "/dev/null", "--endpos", k.end.String(),
		"-o", "proto_version=1", "-o", "publication_names=cdcpub",
	}})}
}
