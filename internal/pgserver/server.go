package pgserver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/cdcpub/cdcpub/internal/pgserver/guard"
)

// Server is one PostgreSQL server. Its methods are safe from any goroutine;
// those that start or end the server wait for each other.
type Server struct {
	options      Options
	installation Installation
	account      *syscall.Credential
	dir          string
	temporary    bool
	guard        *guard.Guard

	port int // fixed before the package's Start returns

	mu     sync.Mutex
	child  *guard.Child // the postmaster; nil when none was started
	closed bool
}

// startAttempts bounds how often another port is tried when somebody else took
// the chosen one before the server bound it.
const startAttempts = 3

// Start makes a cluster, unless Options.Dir holds one, and starts its server.
// It returns when the server accepts connections. ctx bounds the start only.
// Errors include the end of the server's log.
func Start(ctx context.Context, o Options) (*Server, error) {
	installation := o.Installation
	if installation.Bin == "" {
		var err error
		if installation, err = Find(ctx, o.Version, o.Progress); err != nil {
			return nil, err
		}
	}
	owner, err := account()
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, installation: installation, account: owner, dir: o.Dir, temporary: o.Dir == "", port: o.Port}
	if err := s.prepareDir(); err != nil {
		return nil, err
	}
	watched := guard.Options{Signal: syscall.SIGQUIT}
	if s.temporary {
		watched.Remove = []string{s.dir}
	}
	if s.guard, err = guard.New(watched); err != nil {
		return nil, errors.Join(err, s.removeDir())
	}
	if err := s.firstStart(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) firstStart(ctx context.Context) error {
	if err := s.initCluster(ctx); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		if s.options.Port == 0 {
			ports, err := FreePorts(1)
			if err != nil {
				return err
			}
			s.port = ports[0]
		}
		err := s.Start(ctx)
		if err == nil || s.options.Port != 0 || attempt == startAttempts || portFree(s.port) {
			return err
		}
	}
}

// Start starts the server again after Stop, Kill or a crash, on the same data
// and port, and waits until it accepts connections.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("pgserver: the server is closed")
	}
	if s.runningLocked() {
		return fmt.Errorf("pgserver: the server on port %d runs already", s.port)
	}
	if err := s.writeSettings(); err != nil {
		return err
	}
	log, err := os.OpenFile(s.LogFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	s.child, err = s.guard.Start(guard.Command{
		Path:       s.installation.program("postgres"),
		Args:       []string{"-D", s.dataDir()},
		Env:        environment(),
		Dir:        s.dir,
		Output:     log,
		Credential: s.account,
	})
	if err != nil {
		return err
	}
	if err := s.waitReady(ctx); err != nil {
		return errors.Join(err, s.child.Kill())
	}
	return nil
}

// readyPoll is how often a starting server is looked at.
const readyPoll = 10 * time.Millisecond

// waitReady waits until the server's pid file says that it is ready.
// PostgreSQL keeps its state in line 8 of that file ("ready", padded): see
// "postmaster.pid" in the docs' chapter "Database File Layout" and pidfile.h.
func (s *Server) waitReady(ctx context.Context) error {
	poll := time.NewTicker(readyPoll)
	defer poll.Stop()
	for {
		if s.pidFileReady() {
			return nil
		}
		select {
		case <-s.child.Gone():
			return fmt.Errorf("PostgreSQL %s did not start (%v); the end of its log:\n%s", s.installation.Version, s.child.State(), s.LogTail(20))
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL %s did not become ready: %w; the end of its log:\n%s", s.installation.Version, context.Cause(ctx), s.LogTail(20))
		case <-poll.C:
		}
	}
}

// URL is the connection string for the superuser postgres to a database.
func (s *Server) URL(database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.User("postgres"),
		Host:     address(s.Port()),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	if s.options.Password != "" {
		u.User = url.UserPassword("postgres", s.options.Password)
	}
	return u.String()
}

// Port is the TCP port on 127.0.0.1. It stays the same over restarts.
func (s *Server) Port() int { return s.port }

// PID is the process id of the postmaster that was started last.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.child.PID()
}

// Exited is closed when the postmaster that was started last has ended, by
// whatever cause.
func (s *Server) Exited() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.child.Exited()
}

// Installation tells which programs serve.
func (s *Server) Installation() Installation { return s.installation }

// Dir is the directory with the server's data and log.
func (s *Server) Dir() string { return s.dir }

func (s *Server) dataDir() string { return filepath.Join(s.dir, "data") }
