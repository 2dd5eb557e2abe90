package harness_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/cdcpub/cdcpub/test/harness"
)

func startTalker(t *testing.T) *harness.Process {
	t.Helper()
	binary := shared.Binary(t, harness.BuildOptions{Package: "./test/harness/testdata/talker"})
	p := harness.StartProcess(t, harness.ProcessOptions{
		Binary: binary, Args: []string{"{config}"}, Config: "some: yaml", Env: []string{"GREETING=hello"},
	})
	line, err := p.WaitForLog(limit(t), "ready")
	must(t, err)
	if line["greeting"] != "hello" {
		t.Errorf("the environment did not arrive: %v", line)
	}
	return p
}

func TestProcessIsHeardSignalledAndWaitedFor(t *testing.T) {
	p := startTalker(t)
	for _, want := range []float64{1, 2} {
		must(t, p.Signal(syscall.SIGUSR1))
		line, err := p.WaitForLog(limit(t), "signal")
		must(t, err)
		if line["n"] != want {
			t.Errorf("signal line %v, want number %v: lines are passed over once", line, want)
		}
	}
	must(t, p.Signal(syscall.SIGTERM))
	code, err := p.Wait(limit(t))
	must(t, err)
	if code != 7 {
		t.Errorf("exit code %d, want 7", code)
	}
	if _, err := p.WaitForLog(limit(t), "stopping"); err != nil {
		t.Error(err)
	}
	if _, err := p.WaitForLog(limit(t), "never"); err == nil || !strings.Contains(err.Error(), "ended without") {
		t.Errorf("wait for a line that cannot come = %v", err)
	}
	if !strings.HasPrefix(p.Stdout(), "some: yaml <nil>") {
		t.Errorf("standard output %q has not the configuration", p.Stdout())
	}
	if !strings.Contains(p.Stderr(), "not JSON") || len(p.Log()) != 4 {
		t.Errorf("standard error %q gave %d log lines, want 4", p.Stderr(), len(p.Log()))
	}
	const touched = 64 << 20
	if p.VmHWM() < touched || p.VmHWM() > 2*touched || p.MaxRSS() < touched {
		t.Errorf("VmHWM %d, MaxRSS %d for a process that touched %d", p.VmHWM(), p.MaxRSS(), touched)
	}
}

func TestFrozenProcessDoesNothingUntilItIsThawed(t *testing.T) {
	p := startTalker(t)
	must(t, p.Freeze())
	must(t, p.Signal(syscall.SIGUSR1))
	eventually(t, "the process is stopped", func() bool { return state(p.PID()) == "T" })
	if len(p.Log()) != 1 {
		t.Errorf("a frozen process printed %v", p.Log())
	}
	must(t, p.Thaw())
	if _, err := p.WaitForLog(limit(t), "signal"); err != nil {
		t.Error(err)
	}
}

func TestKilledProcessHasNoExitCode(t *testing.T) {
	p := startTalker(t)
	must(t, p.Freeze()) // SIGKILL reaches frozen processes
	must(t, p.Kill9())
	if code, err := p.Wait(limit(t)); err != nil || code != -1 {
		t.Errorf("Wait = %d, %v, want -1", code, err)
	}
}

func TestWaitForLogEndsWithItsContext(t *testing.T) {
	p := startTalker(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.WaitForLog(ctx, "never"); !errors.Is(err, context.Canceled) {
		t.Errorf("WaitForLog = %v, want Canceled", err)
	}
	if _, err := p.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait = %v, want Canceled", err)
	}
}
