package harness

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/internal/pgserver/guard"
)

// Shared keeps servers and binaries for all tests of one package. Each is made
// when a test first asks for it. Declare one per package, without settings:
//
//	var shared harness.Shared
//
//	func TestMain(m *testing.M) { harness.Main(m, &shared) }
//
// Tests that stop or kill a server, or change what others see, start their own.
// Methods are safe from any test, parallel ones too.
type Shared struct {
	mu      sync.Mutex
	results map[string]result
	closers []func() error
	logs    []func() string
}

// result is what became of making one thing: the thing, or why it failed.
type result struct {
	thing any
	err   error
}

// Main runs the tests, closes what they shared, and exits.
func Main(m *testing.M, s *Shared) {
	code := m.Run()
	if code != 0 {
		for _, log := range s.logs {
			fmt.Fprintln(os.Stderr, log())
		}
	}
	if err := s.close(); err != nil {
		fmt.Fprintln(os.Stderr, "close the shared servers:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// AtEnd has f called when the tests of the package have ended.
func (s *Shared) AtEnd(f func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closers = append(s.closers, f)
}

func (s *Shared) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, closer := range s.closers {
		errs = append(errs, closer())
	}
	s.closers, s.results = nil, nil
	return errors.Join(errs...)
}

// get returns the thing of that name, making it if it is not there. A failure
// is remembered: every test that needs the thing fails for the same reason.
func get[T any](t testing.TB, s *Shared, name string, make func() (T, error)) T {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	r, known := s.results[name]
	if !known {
		thing, err := make()
		r = result{thing, err}
		if s.results == nil {
			s.results = map[string]result{}
		}
		s.results[name] = r
	}
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r.thing.(T)
}

// Postgres is a shared server of a version and settings, as the function
// Postgres starts.
func (s *Shared) Postgres(t testing.TB, version string, settings ...string) *pgserver.Server {
	t.Helper()
	version = cmp.Or(version, PostgresVersion(t.Name()))
	name := fmt.Sprintf("PostgreSQL %q %q", version, settings)
	return get(t, s, name, func() (*pgserver.Server, error) {
		server, err := startPostgres(version, settings)
		if err != nil {
			return nil, err
		}
		s.closers = append(s.closers, server.Close)
		s.logs = append(s.logs, func() string {
			return "end of the log of the shared " + name + ":\n" + server.LogTail(15)
		})
		return server, nil
	})
}

// Kafka is a shared cluster, as the function Kafka starts.
func (s *Shared) Kafka(t testing.TB, o KafkaOptions) *Cluster {
	t.Helper()
	return get(t, s, fmt.Sprintf("Kafka %+v", o), func() (*Cluster, error) {
		cluster, err := startKafka(o)
		if err != nil {
			return nil, err
		}
		s.closers = append(s.closers, cluster.Close)
		s.logs = append(s.logs, func() string { return cluster.LogTail(15) })
		return cluster, nil
	})
}

// Binary is a cdcpub built with the given build tags, as Build makes it.
func (s *Shared) Binary(t testing.TB, o BuildOptions) string {
	t.Helper()
	return get(t, s, fmt.Sprintf("binary %+v", o), func() (string, error) {
		dir, err := os.MkdirTemp("", "cdcpub-build-")
		if err != nil {
			return "", err
		}
		watch, err := guard.New(guard.Options{Remove: []string{dir}})
		if err != nil {
			return "", errors.Join(err, os.RemoveAll(dir))
		}
		s.closers = append(s.closers, func() error { return errors.Join(os.RemoveAll(dir), watch.Close()) })
		return build(dir, o)
	})
}
