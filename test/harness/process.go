package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/internal/pgserver/guard"
)

// ProcessOptions say what to run.
type ProcessOptions struct {
	// Binary is the program: Shared.Binary or Build.
	Binary string
	// Args are its arguments. "{config}" stands for the path of the
	// configuration file.
	Args []string
	// Config is the content of the configuration file; "" makes none.
	Config string
	// Env are further variables, "NAME=value". The test's own are passed on,
	// but none that begin with CDCPUB_ or PG.
	Env []string
}

// Process is a running program. Its methods are safe from any goroutine.
type Process struct {
	child  *guard.Child
	output *output

	mu   sync.Mutex
	peak int64 // the newest VmHWM that was read, in bytes
}

// StartProcess starts a program. At the test's end it is killed if it still
// runs, and its output is shown if the test failed.
func StartProcess(t testing.TB, o ProcessOptions) *Process {
	t.Helper()
	p, release, err := startProcess(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.readPeak()
		err := p.child.Kill()
		<-p.output.ended
		if err := errors.Join(err, release()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("output of %s (process %d, %v):\n%s", filepath.Base(o.Binary), p.PID(), p.child.State(), p.output.tail(200))
		}
	})
	return p
}

func startProcess(o ProcessOptions) (p *Process, release func() error, err error) {
	dir, err := os.MkdirTemp("", "cdcpub-process-")
	if err != nil {
		return nil, nil, err
	}
	watch, err := guard.New(guard.Options{Remove: []string{dir}})
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	release = func() error { return errors.Join(os.RemoveAll(dir), watch.Close()) }
	config := filepath.Join(dir, "cdcpub.yaml")
	if o.Config != "" {
		if err := os.WriteFile(config, []byte(o.Config), 0o600); err != nil {
			return nil, nil, errors.Join(err, release())
		}
	}
	args := make([]string, len(o.Args))
	for i, arg := range o.Args {
		if args[i] = arg; arg == "{config}" {
			args[i] = config
		}
	}
	stdout, outWriter, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, release())
	}
	defer outWriter.Close()
	stderr, errWriter, err := os.Pipe()
	if err != nil {
		stdout.Close()
		return nil, nil, errors.Join(err, release())
	}
	defer errWriter.Close()
	child, err := watch.Start(guard.Command{
		Path: o.Binary, Args: args, Dir: dir, Env: append(cleanEnvironment(), o.Env...),
		Stdout: outWriter, Output: errWriter,
	})
	if err != nil {
		stdout.Close()
		stderr.Close()
		return nil, nil, errors.Join(err, release())
	}
	p = &Process{child: child, output: capture(stdout, stderr)}
	go p.sampleMemory()
	return p, release, nil
}

// cleanEnvironment is ours without what steers cdcpub and its drivers.
func cleanEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(pair string) bool {
		return strings.HasPrefix(pair, "CDCPUB_") || strings.HasPrefix(pair, "PG")
	})
}

// PID is the process id.
func (p *Process) PID() int { return p.child.PID() }

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.child.Exited() }

// Signal sends a signal. A process that has ended is no error.
func (p *Process) Signal(s syscall.Signal) error {
	p.readPeak()
	return p.child.Signal(s)
}

// Kill9 ends the process with SIGKILL and waits for its end.
func (p *Process) Kill9() error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.child.Exited()
	return nil
}

// Freeze stops the process in its tracks until Thaw. Its connections stay open.
func (p *Process) Freeze() error { return p.Signal(syscall.SIGSTOP) }

// Thaw lets a frozen process go on.
func (p *Process) Thaw() error { return p.Signal(syscall.SIGCONT) }

// Wait waits for the end and returns the exit code; -1 means that a signal
// ended it. An error means only that ctx ended first.
func (p *Process) Wait(ctx context.Context) (code int, err error) {
	select {
	case <-p.child.Exited():
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for the end of process %d: %w", p.PID(), context.Cause(ctx))
	}
	select {
	case <-p.output.ended: // so that the log is complete
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for the end of the output of process %d: %w", p.PID(), context.Cause(ctx))
	}
	return p.child.State().ExitCode(), nil
}

// memorySample is how often VmHWM is read: it cannot be read after the end.
const memorySample = 100 * time.Millisecond

func (p *Process) sampleMemory() {
	ticker := time.NewTicker(memorySample)
	defer ticker.Stop()
	for {
		select {
		case <-p.child.Exited():
			return
		case <-ticker.C:
			p.readPeak()
		}
	}
}

// VmHWM is the largest resident memory so far, in bytes (VmHWM in proc(5)).
// After the end it is the last value read, at most 0.1 s older or from just
// before the last signal. It is 0 where there is no /proc.
func (p *Process) VmHWM() int64 {
	p.readPeak()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peak
}

// MaxRSS is the largest resident memory by getrusage(2), in bytes, valid after
// Wait. On Linux it counts what the process was before exec too, so it is never
// below the memory of the test that started it: VmHWM is the honest one there.
func (p *Process) MaxRSS() int64 {
	usage, ok := p.child.State().SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "linux" {
		return usage.Maxrss * 1024
	}
	return usage.Maxrss
}

// CPU is the processor time used, valid after Wait.
func (p *Process) CPU() time.Duration {
	return p.child.State().UserTime() + p.child.State().SystemTime()
}

func (p *Process) readPeak() {
	peak, ok := PeakMemory(p.PID())
	// A zombie has no memory and no such line. The number can be another
	// process's only after the child was reaped.
	select {
	case <-p.child.Exited():
		return
	default:
	}
	if ok {
		p.mu.Lock()
		p.peak = max(p.peak, peak)
		p.mu.Unlock()
	}
}

// PeakMemory is the largest resident memory of a process so far, in bytes
// (VmHWM in proc(5)); false for one that has ended, or without /proc.
func PeakMemory(pid int) (int64, bool) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false
	}
	return parsePeak(status)
}
