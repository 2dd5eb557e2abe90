package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cdcpub/cdcpub/internal/pgserver/guard"
)

// prepareDir makes the server's directory. The data directory belongs to the
// server's account; every user may pass through the one above it.
func (s *Server) prepareDir() error {
	var err error
	if s.temporary {
		s.dir, err = os.MkdirTemp("", "cdcpub-postgres-")
	} else if s.dir, err = filepath.Abs(s.dir); err == nil {
		err = os.MkdirAll(s.dir, 0o755)
	}
	if err != nil {
		return err
	}
	err = os.Mkdir(s.dataDir(), 0o700)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err == nil && s.temporary {
		err = os.Chmod(s.dir, 0o755)
	}
	if err == nil && s.account != nil {
		err = os.Chown(s.dataDir(), int(s.account.Uid), int(s.account.Gid))
	}
	if err != nil {
		return errors.Join(err, s.removeDir())
	}
	return nil
}

func (s *Server) removeDir() error {
	if !s.temporary {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// initCluster runs initdb unless the data directory holds a cluster. The
// cluster has UTF8 and the C locale, so that it is the same on every machine.
func (s *Server) initCluster(ctx context.Context) error {
	present, err := os.ReadFile(filepath.Join(s.dataDir(), "PG_VERSION"))
	if err == nil {
		if major := strings.TrimSpace(string(present)); major != strconv.Itoa(s.installation.Major) {
			return fmt.Errorf("%s holds a cluster of PostgreSQL %s, but the server is %s: ask for version %s, or use another directory",
				s.dir, major, s.installation.Version, major)
		}
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	args := []string{"-D", s.dataDir(), "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"}
	if s.options.Password == "" {
		args = append(args, "--auth=trust")
	} else {
		secret := filepath.Join(s.dir, "password")
		if err := s.writeSecret(secret); err != nil {
			return err
		}
		defer os.Remove(secret)
		args = append(args, "--auth=scram-sha-256", "--pwfile="+secret)
	}
	if err := s.runInitdb(ctx, args); err != nil {
		return err
	}
	conf, err := os.OpenFile(filepath.Join(s.dataDir(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(conf, "\ninclude_if_exists = '%s'\n", settingsFile)
	return errors.Join(err, conf.Close())
}

func (s *Server) runInitdb(ctx context.Context, args []string) error {
	log, err := os.OpenFile(s.LogFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	child, err := s.guard.Start(guard.Command{
		Path:       s.installation.program("initdb"),
		Args:       args,
		Env:        environment(),
		Dir:        s.dir,
		Output:     log,
		Credential: s.account,
	})
	if err != nil {
		return err
	}
	select {
	case <-child.Gone():
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("initdb: %w", context.Cause(ctx)), child.Kill())
	}
	if !child.State().Success() {
		return fmt.Errorf("initdb failed (%v):\n%s", child.State(), s.LogTail(20))
	}
	return nil
}

// writeSecret writes the password for initdb, readable by the account only.
func (s *Server) writeSecret(path string) error {
	if err := os.WriteFile(path, []byte(s.options.Password+"\n"), 0o600); err != nil {
		return err
	}
	return s.give(path)
}

// writeSettings writes the settings and the files of this start.
func (s *Server) writeSettings() error {
	for name, content := range s.options.Files {
		if err := s.WriteFile(name, content); err != nil {
			return err
		}
	}
	return s.WriteFile(settingsFile, s.options.config(s.port))
}

// WriteFile writes a file of the data directory, as those of Options.Files. A
// running server looks at it after pg_reload_conf().
func (s *Server) WriteFile(name, content string) error {
	path := filepath.Join(s.dataDir(), name)
	fresh := path + ".new"
	if err := os.WriteFile(fresh, []byte(content), 0o600); err != nil {
		return err
	}
	if err := s.give(fresh); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

// give hands a file to the server's account.
func (s *Server) give(path string) error {
	if s.account == nil {
		return nil
	}
	return os.Chown(path, int(s.account.Uid), int(s.account.Gid))
}

// pidFileReady says whether the child's postmaster is ready.
func (s *Server) pidFileReady() bool {
	content, err := os.ReadFile(filepath.Join(s.dataDir(), "postmaster.pid"))
	if err != nil {
		return false
	}
	lines := strings.Split(string(content), "\n")
	const pidLine, statusLine = 0, 7
	return len(lines) > statusLine &&
		lines[pidLine] == strconv.Itoa(s.child.PID()) &&
		strings.TrimSpace(lines[statusLine]) == "ready"
}

// environment is ours without the variables that steer PostgreSQL's programs.
func environment() []string {
	var env []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "PG") {
			env = append(env, pair)
		}
	}
	return env
}
