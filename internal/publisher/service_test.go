package publisher

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/zap/zaptest/observer"

	"github.com/cdcpub/cdcpub/checkpoint"
	"github.com/cdcpub/cdcpub/internal/kafka"
	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/internal/pipeline"
	"github.com/cdcpub/cdcpub/router"
	"github.com/cdcpub/cdcpub/wal"
)

// patience bounds every wait. A blocked publisher tries again after a minute.
const patience = 150 * time.Second

// world is a real PostgreSQL and a broker in the process, shared by the cases
// of a test. Each case has a database, a slot and a topic of its own.
type world struct {
	server  *pgserver.Server
	cluster *kfake.Cluster
}

func startWorld(t *testing.T) *world {
	t.Helper()
	server, err := pgserver.Start(t.Context(), pgserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return &world{server, cluster}
}

// service is a publisher that runs.
type service struct {
	*Publisher
	t    *testing.T
	url  string
	logs *observer.ObservedLogs
	stop chan struct{}
	kill context.CancelCauseFunc
	done chan struct{}
	err  error
}

// database makes a database with an outbox, a publication and a slot, all named
// alike.
func (w *world) database(t *testing.T, name string) string {
	t.Helper()
	execute(t, w.server.URL("postgres"), "CREATE DATABASE "+name)
	url := w.server.URL(name)
	execute(t, url, "CREATE TABLE outbox (event_id text, aggregate_type text, aggregate_id text, payload text)")
	execute(t, url, "CREATE PUBLICATION "+name+" FOR TABLE outbox")
	execute(t, url, "SELECT pg_create_logical_replication_slot('"+name+"', 'pgoutput')")
	return url
}

func execute(t *testing.T, url, sql string) []*pgconn.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgconn.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return results
}

// publisher makes one for a database of the world. It does not run yet.
func (w *world) publisher(t *testing.T, name string, edit func(*Config)) *service {
	t.Helper()
	url := w.server.URL(name)
	client, err := kafka.NewClient(kafka.Config{Brokers: w.cluster.ListenAddrs(), TopicCheckInterval: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s := &service{t: t, url: url, stop: make(chan struct{}), done: make(chan struct{})}
	s.Publisher, s.logs = observed(func(c *Config) {
		c.WAL = wal.Config{
			Connect: func(context.Context) (*wal.ConnConfig, error) { return pgconn.ParseConfig(url) },
			Slot:    name, Publication: name, Tables: []wal.Table{{Schema: "public", Name: "outbox"}}, WALSenderTimeout: 15 * time.Second,
		}
		c.Window = checkpoint.Limits{Records: 1000, Bytes: 1 << 20}
		c.Route = func(commit time.Time, row wal.Row) (router.Record, error) {
			if bytes.Equal(row.Values[3], []byte("poison")) {
				return router.Record{}, errors.New("nothing routes this")
			}
			return router.Record{Topic: "orders", EventID: row.Values[0], Key: row.Values[2], Value: row.Values[3], Timestamp: commit}, nil
		}
		c.NewProducer = func(_ string, slot pipeline.Slot) pipeline.Producer { return client.NewProducer("", slot, c.Log) }
		c.ForgetTopics = client.ForgetTopics
		c.ShutdownTimeout = patience
		if edit != nil {
			edit(c)
		}
	})
	s.identity = nil
	return s
}

// start runs the publisher.
func (s *service) start() *service {
	ctx, kill := context.WithCancelCause(context.Background())
	s.kill = kill
	go func() {
		defer close(s.done)
		s.err = s.Run(ctx, s.stop)
	}()
	s.t.Cleanup(func() { kill(errors.New("the test has ended")); <-s.done })
	return s
}

func (w *world) run(t *testing.T, name string, edit func(*Config)) *service {
	t.Helper()
	return w.publisher(t, name, edit).start()
}

// once lives through one session, as Run does, but for the pause behind it.
func (s *service) once() (error, time.Duration) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	opened, err := s.session(ctx, s.stop)
	if !opened {
		s.t.Fatalf("no session was opened: %v", err)
	}
	pause, final := s.next(err, &steady{})
	if final != nil {
		s.t.Fatalf("the end of Run: %v", final)
	}
	return err, pause
}

// until waits for what the publisher will come to.
func (s *service) until(what string, reached func(Status) bool) {
	s.t.Helper()
	deadline, tick := time.After(patience), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for {
		if reached(s.Status()) {
			return
		}
		select {
		case <-tick.C:
		case <-s.done:
			s.t.Fatalf("waiting until %s: Run has ended with %v", what, s.err)
		case <-deadline:
			s.t.Fatalf("waiting until %s: %+v\n%v", what, s.Status(), s.logs.All())
		}
	}
}

func (s *service) ended() error {
	s.t.Helper()
	select {
	case <-s.done:
		return s.err
	case <-time.After(patience):
		s.t.Fatalf("Run does not end: %+v", s.Status())
		return nil
	}
}

func (s *service) shutdown() error {
	close(s.stop)
	return s.ended()
}

// insert returns an LSN within its transaction. That of a look after it could
// lie beyond what other databases write meanwhile, which nobody has to confirm.
func (s *service) insert(id, payload string) string {
	s.t.Helper()
	results := execute(s.t, s.url, fmt.Sprintf("BEGIN; INSERT INTO outbox VALUES ('%s', 'order', 'one', '%s'); SELECT pg_current_wal_insert_lsn(); COMMIT", id, payload))
	return string(results[2].Rows[0][0])
}

func acked(n int) func(Status) bool { return func(s Status) bool { return s.Acked == n } }

func in(state State) func(Status) bool { return func(s Status) bool { return s.State == state } }

func (s *service) confirmedBeyond(lsn string) bool {
	s.t.Helper()
	result := execute(s.t, s.url, "SELECT confirmed_flush_lsn >= '"+lsn+"' FROM pg_replication_slots WHERE slot_name = '"+s.config.WAL.Slot+"'")
	return string(result[0].Rows[0][0]) == "t"
}

func (s *service) now() string {
	s.t.Helper()
	return string(execute(s.t, s.url, "SELECT pg_current_wal_lsn()")[0].Rows[0][0])
}
