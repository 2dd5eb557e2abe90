package compose

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/test/harness"
)

// start starts the servers of the stack and prepares PostgreSQL as its image
// does at the first start.
func start(t *testing.T) *stack {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	s := &stack{t: t, ctx: ctx, project: load(t)}
	s.binary = shared.Binary(t, harness.BuildOptions{Tags: "release"})
	s.kafka = kafkaOf(t, s.project.Services["kafka"])
	s.startPostgres()
	ports, err := pgserver.FreePorts(1)
	must(t, err)
	port := strconv.Itoa(s.postgres.Port())
	s.listen = net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0]))
	s.hosts = strings.NewReplacer(
		"@postgres:5432/", "@127.0.0.1:"+port+"/",
		"--host=postgres", "--host=127.0.0.1 --port="+port,
		"kafka:9092", s.kafka.Brokers()[0],
		"0.0.0.0:9477", s.listen, "http://cdcpub:9477", "http://"+s.listen,
	)
	return s
}

func (s *stack) startPostgres() {
	s.t.Helper()
	service := s.project.Services["postgres"]
	settings := map[string]string{}
	for option := range slices.Chunk(service.Command[1:], 2) {
		name, value, ok := strings.Cut(option[len(option)-1], "=")
		if option[0] != "-c" || !ok {
			s.t.Fatalf("service postgres runs %v", service.Command)
		}
		settings[name] = value
	}
	server, err := pgserver.Start(s.ctx, pgserver.Options{
		Version: strings.TrimPrefix(service.Image, "postgres:")[:2], Settings: settings,
		Password: value(s.t, service, "POSTGRES_PASSWORD"),
	})
	must(s.t, err)
	s.t.Cleanup(func() {
		if err := server.Close(); err != nil {
			s.t.Error(err)
		}
	})
	s.postgres = server
	database := value(s.t, service, "POSTGRES_DB")
	s.execute("CREATE DATABASE " + database)
	// What the image runs of /docker-entrypoint-initdb.d, as it runs it.
	roles := s.psql([]string{
		"psql", "-v", "ON_ERROR_STOP=1", "--no-psqlrc", server.URL(database),
		"--file", mounted(s.t, service, "/docker-entrypoint-initdb.d/roles.sql"),
	}, nil)
	if code, err := roles.Wait(s.ctx); code != 0 || err != nil {
		s.t.Fatalf("roles.sql ends with %d: %v", code, err)
	}
	s.probe(service)
}

func (s *stack) execute(sql string) {
	s.t.Helper()
	conn, err := pgx.Connect(s.ctx, s.postgres.URL("postgres"))
	must(s.t, err)
	defer conn.Close(s.ctx)
	_, err = conn.Exec(s.ctx, sql)
	must(s.t, err)
}

// probe runs the health check of PostgreSQL, which needs no password.
func (s *stack) probe(service types.ServiceConfig) {
	s.t.Helper()
	check := service.HealthCheck.Test[1:]
	command := exec.CommandContext(s.ctx, client(s.t, check[0]), check[1:]...)
	command.Env = append(os.Environ(), "PGPORT="+strconv.Itoa(s.postgres.Port()))
	if out, err := command.CombinedOutput(); err != nil {
		s.t.Errorf("the health check of service postgres: %v\n%s", err, out)
	}
}

// client is a program of PostgreSQL on this machine.
func client(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v: apt-get install -y postgresql-client", err)
	}
	return path
}

// process runs cdcpub as the service does: with its arguments, variables and
// configuration file in the working directory.
func (s *stack) process(name string, args []string) *harness.Process {
	s.t.Helper()
	service := s.project.Services[name]
	text, err := os.ReadFile(mounted(s.t, service, configurationTarget))
	must(s.t, err)
	args = slices.Clone(args)
	for i := range args {
		args[i] = s.hosts.Replace(args[i])
	}
	env := environment(service)
	for i := range env {
		env[i] = s.hosts.Replace(env[i])
	}
	return harness.StartProcess(s.t, harness.ProcessOptions{
		Binary: s.binary, Args: args, Config: s.hosts.Replace(string(text)), Env: env,
	})
}

// starts starts a service that does not end by itself.
func (s *stack) starts(name string) *harness.Process {
	s.t.Helper()
	return s.process(name, s.project.Services[name].Command)
}

// ends runs a service to its end, which must be a success.
func (s *stack) ends(name string) {
	s.t.Helper()
	p := s.starts(name)
	if code, err := p.Wait(s.ctx); code != 0 || err != nil {
		s.t.Fatalf("service %s ends with %d: %v", name, code, err)
	}
}

// healthy runs the health check of a service of ours.
func (s *stack) healthy(name string) (code int, said error) {
	s.t.Helper()
	check := s.project.Services[name].HealthCheck.Test
	if check[0] != "CMD" || check[1] != "/cdcpub" {
		s.t.Fatalf("service %s: health check %v", name, check)
	}
	p := s.process(name, check[2:])
	code, err := p.Wait(s.ctx)
	must(s.t, err)
	return code, errors.New(p.Stdout() + p.Stderr())
}

// get asks what the published port shows; the status is 0 while nobody listens.
func (s *stack) get(path string) (status int, text string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, "http://"+s.listen+path, nil)
	must(s.t, err)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must(s.t, err)
	return answer.StatusCode, string(body)
}

// eventually looks until the condition holds; it is for what nobody announces.
func (s *stack) eventually(what string, holds func() bool) {
	s.t.Helper()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for !holds() {
		select {
		case <-poll.C:
		case <-s.ctx.Done():
			s.t.Fatalf("not in time: %s", what)
		}
	}
}

// command is that of a service, with hosts and mounted files of this machine.
func (s *stack) command(name string) []string {
	service := s.project.Services[name]
	words := strings.Fields(s.hosts.Replace(strings.Join(service.Command, " ")))
	for i, word := range words {
		for _, v := range service.Volumes {
			words[i] = strings.ReplaceAll(word, "="+v.Target, "="+v.Source)
		}
	}
	return words
}

// psql runs a client of PostgreSQL.
func (s *stack) psql(command, env []string) *harness.Process {
	s.t.Helper()
	return harness.StartProcess(s.t, harness.ProcessOptions{Binary: client(s.t, command[0]), Args: command[1:], Env: env})
}
