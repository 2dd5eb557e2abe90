package pgserver

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// Mode is a way to shut PostgreSQL down; see "Shutting Down the Server" in its
// docs.
type Mode uint8

const (
	// Smart waits until every client has left.
	Smart Mode = iota + 1
	// Fast disconnects clients, but waits for walsenders to be confirmed.
	Fast
	// Immediate ends without a checkpoint, as a crash does.
	Immediate
)

func (m Mode) String() string {
	switch m {
	case Smart:
		return "smart"
	case Fast:
		return "fast"
	case Immediate:
		return "immediate"
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

func (m Mode) signal() (syscall.Signal, error) {
	switch m {
	case Smart:
		return syscall.SIGTERM, nil
	case Fast:
		return syscall.SIGINT, nil
	case Immediate:
		return syscall.SIGQUIT, nil
	}
	return 0, fmt.Errorf("pgserver: unknown shutdown %v", m)
}

// ErrTimeout is in the error of Stop when the server did not end in time.
var ErrTimeout = errors.New("the server did not end in time")

// Stop shuts the server down and waits until all its processes have ended.
// After ErrTimeout the server goes on with the shutdown; a stricter mode or
// Kill may follow. A server that does not run is no error.
func (s *Server) Stop(mode Mode, timeout time.Duration) error {
	signal, err := mode.signal()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.endLocked(signal, mode.String()+" shutdown", timeout)
}

// killTimeout bounds the end of processes whose postmaster is dead.
const killTimeout = 20 * time.Second

// Kill kills the postmaster with SIGKILL, as a crash of the server, and after
// it its children, and waits until all are gone and the port is free. Left
// alone, children end when they next wait for something: a busy one goes on
// for as long as its query does.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.killLocked()
}

func (s *Server) killLocked() error {
	if !s.runningLocked() {
		return nil
	}
	// A stopped postmaster makes no further children while they are listed.
	if err := s.child.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	children, listErr := childrenOf(s.child.PID())
	if err := s.child.Signal(syscall.SIGKILL); err != nil {
		return errors.Join(err, listErr)
	}
	for _, pid := range children {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("kill process %d of PostgreSQL: %w", pid, err)
		}
	}
	if err := s.endLocked(syscall.SIGKILL, "kill", killTimeout); err != nil {
		return errors.Join(err, listErr)
	}
	if !portFree(s.port) {
		return fmt.Errorf("pgserver: port %d is still taken after the server was killed", s.port)
	}
	return nil
}

func (s *Server) endLocked(signal syscall.Signal, what string, timeout time.Duration) error {
	if !s.runningLocked() {
		return nil
	}
	if err := s.child.Signal(signal); err != nil {
		return err
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-s.child.Gone():
		return nil
	case <-timer.C:
		return fmt.Errorf("PostgreSQL on port %d, %s: %w (%v); the end of its log:\n%s", s.port, what, ErrTimeout, timeout, s.LogTail(10))
	}
}

// runningLocked says whether any process of the server is left.
func (s *Server) runningLocked() bool {
	if s.child == nil {
		return false
	}
	select {
	case <-s.child.Gone():
		return false
	default:
		return true
	}
}

// Restart is a fast shutdown, bounded by timeout, and a start.
func (s *Server) Restart(ctx context.Context, timeout time.Duration) error {
	if err := s.Stop(Fast, timeout); err != nil {
		return err
	}
	return s.Start(ctx)
}

// Reload makes the server read its settings again, for example after ALTER
// SYSTEM. It does not wait until every process has done so.
func (s *Server) Reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.runningLocked() {
		return errors.New("pgserver: the server does not run")
	}
	return s.child.Signal(syscall.SIGHUP)
}

// Close ends the server at once and removes a temporary directory. It may be
// called more than once.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	// The postmaster itself kills children that ignore SIGQUIT for 5 s.
	err := s.endLocked(syscall.SIGQUIT, "immediate shutdown", 10*time.Second)
	if errors.Is(err, ErrTimeout) {
		err = s.killLocked()
	}
	s.removeSharedMemory()
	return errors.Join(err, s.removeDir(), s.guard.Close())
}
