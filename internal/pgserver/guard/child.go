package guard

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// Command describes a child process.
type Command struct {
	Path string
	Args []string // without the program's name
	Env  []string // nil: the owner's environment
	Dir  string   // working directory; "" is the owner's
	// Output takes standard output and standard error; nil discards them.
	// The caller may close its copy after Start.
	Output *os.File
	// Stdout, if set, takes standard output alone.
	Stdout *os.File
	// Credential is the user to run as; nil is the owner's. Needs root.
	Credential *syscall.Credential
}

// Child is a process that a Guard watches. Its methods are safe from any
// goroutine.
type Child struct {
	cmd    *exec.Cmd
	exited chan struct{}
	gone   chan struct{}
}

// Start runs a command under the guard. Its standard input is empty.
func (g *Guard) Start(c Command) (*Child, error) {
	alive, family, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", `read -r go && exec "$0" "$@" </dev/null`, c.Path}, c.Args...)...)
	cmd.Env, cmd.Dir = c.Env, c.Dir
	// A nil *os.File in an io.Writer would not be a nil writer.
	if c.Output != nil {
		cmd.Stdout, cmd.Stderr = c.Output, c.Output
	}
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	cmd.ExtraFiles = []*os.File{family, g.children}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: c.Credential}
	start, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	family.Close() // the child's is the only one now
	if err != nil {
		alive.Close()
		return nil, fmt.Errorf("guard: start %s: %w", c.Path, err)
	}
	child := &Child{cmd: cmd, exited: make(chan struct{}), gone: make(chan struct{})}
	err = g.add(cmd.Process.Pid)
	if err == nil {
		_, err = io.WriteString(start, "go\n")
	}
	start.Close()
	go child.watch(g, alive)
	if err != nil {
		<-child.gone
		return nil, err
	}
	return child, nil
}

// watch reaps the child and then waits for its descendants.
func (c *Child) watch(g *Guard, alive *os.File) {
	_ = c.cmd.Wait() // the outcome is in ProcessState
	close(c.exited)
	_, _ = io.Copy(io.Discard, alive)
	alive.Close()
	_ = g.drop(c.PID()) // a guard that is gone has nothing to forget
	close(c.gone)
}

// PID is the process id. The program has replaced the sh that started it, so
// it is the program's own.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Signal sends a signal to the child alone. A child that has ended is no error.
func (c *Child) Signal(s syscall.Signal) error {
	if err := c.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %v to process %d: %w", s, c.PID(), err)
	}
	return nil
}

// Kill ends the child and all its descendants that stayed in its process group
// with SIGKILL, and waits until they are gone.
func (c *Child) Kill() error {
	select {
	case <-c.gone: // the group's number may be somebody else's by now
		return nil
	default:
	}
	if err := syscall.Kill(-c.PID(), syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill process group %d: %w", c.PID(), err)
	}
	<-c.gone
	return nil
}

// Exited is closed when the child itself has ended and is reaped.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// Gone is closed when the child and all its descendants have ended.
func (c *Child) Gone() <-chan struct{} { return c.gone }

// State is the child's exit status. Valid once Exited is closed.
func (c *Child) State() *os.ProcessState { return c.cmd.ProcessState }
