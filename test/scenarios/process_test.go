package scenarios

import (
	"context"
	"strings"
	"syscall"
	"time"

	"github.com/cdcpub/cdcpub/test/harness"
)

func (s *stand) command(args ...string) *harness.Process {
	return harness.StartProcess(s.t, harness.ProcessOptions{Binary: s.options.binary, Args: args, Config: s.config()})
}

// run starts `cdcpub run` and waits until it reads the slot.
func (s *stand) run() *harness.Process {
	s.t.Helper()
	p := s.launch()
	s.awaitLog(p, "resumed")
	return p
}

// launch starts `cdcpub run` and does not wait.
func (s *stand) launch() *harness.Process {
	s.started++
	p := s.command("run", "-c", "{config}")
	s.logs = append(s.logs, p)
	return p
}

func (s *stand) awaitLog(p *harness.Process, event string) harness.LogLine {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, s.options.patience)
	defer cancel()
	line, err := p.WaitForLog(ctx, event)
	if err != nil {
		s.t.Fatalf("%v\n%s", err, p.Stderr())
	}
	return line
}

// exit waits for the end of the process and returns its exit code.
func (s *stand) exit(p *harness.Process) int {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, s.options.patience)
	defer cancel()
	code, err := p.Wait(ctx)
	if err != nil {
		s.t.Fatalf("the process does not end: %v\n%s", err, p.Stderr())
	}
	return code
}

// stop ends the process as a supervisor does and expects a clean end.
func (s *stand) stop(p *harness.Process) {
	s.t.Helper()
	s.no(p.Signal(syscall.SIGTERM))
	if code := s.exit(p); code != 0 {
		s.t.Fatalf("exit %d after SIGTERM\n%s", code, p.Stderr())
	}
}

// stopBlocked ends a process that waits for a human, and returns its exit code.
func (s *stand) stopBlocked(p *harness.Process) int {
	s.t.Helper()
	s.no(p.Signal(syscall.SIGTERM))
	return s.exit(p)
}

// betweenRuns notes the slot's position and the topic's end while no publisher
// runs: nothing that was confirmed by now may be sent again.
func (s *stand) betweenRuns() {
	s.t.Helper()
	sample, err := s.sample(s.ctx, s.sql)
	s.no(err)
	s.restarts = append(s.restarts, sample)
}

// sessions counts the replication connections of all processes so far.
func (s *stand) sessions() int {
	n := 0
	for _, p := range s.logs {
		for _, line := range p.Log() {
			if line.Event() == "resumed" {
				n++
			}
		}
	}
	return n
}

// until waits for a condition that only a look can tell.
func (s *stand) until(what string, done func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, s.options.patience)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			s.t.Fatalf("waited in vain until %s%s", what, s.lastLines())
		}
	}
}

func (s *stand) lastLines() string {
	if len(s.logs) == 0 {
		return ""
	}
	return "\n" + s.logs[len(s.logs)-1].Stderr()
}

// says expects a text to contain all of what is wanted.
func (s *stand) says(text string, wanted ...string) {
	s.t.Helper()
	for _, part := range wanted {
		if !strings.Contains(text, part) {
			s.t.Errorf("does not say %q:\n%s", part, text)
		}
	}
}
