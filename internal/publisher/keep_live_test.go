package publisher

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cdcpub/cdcpub/router"
	"github.com/cdcpub/cdcpub/wal"
)

func TestWhatOnlyOneProcessRemembersStopsThePair(t *testing.T) {
	w := startWorld(t)
	t.Run("until a restart of the one that is blocked", w.keptUntilRestart)
	t.Run("also when its connection is lost", w.keptAgain)
	t.Run("unless somebody ends its walsender", w.overruled)
	t.Run("not with on_stop: exit", w.notKept)
}

// keeper is a publisher to a topic of its own that counts its connections, and
// can lose them.
type keeper struct {
	*service
	mu    sync.Mutex
	conns []net.Conn
}

func (w *world) keeper(t *testing.T, name string, edit func(*Config)) *keeper {
	t.Helper()
	k := &keeper{}
	k.service = w.publisher(t, name, func(c *Config) {
		route, url := c.Route, w.server.URL(name)
		c.Route = func(commit time.Time, row wal.Row) (router.Record, error) {
			record, err := route(commit, row)
			record.Topic = name
			return record, err
		}
		c.WAL.Connect = func(context.Context) (*wal.ConnConfig, error) {
			config, err := pgconn.ParseConfig(url)
			if err != nil {
				return nil, err
			}
			config.RuntimeParams["application_name"] = "cdcpub"
			dial := config.DialFunc
			config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dial(ctx, network, address)
				k.mu.Lock()
				defer k.mu.Unlock()
				k.conns = append(k.conns, conn)
				return conn, err
			}
			return config, nil
		}
		if edit != nil {
			edit(c)
		}
	})
	k.start()
	return k
}

// connections is how many were made so far.
func (k *keeper) connections() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.conns)
}

// cut closes all connections behind the publisher's back.
func (k *keeper) cut() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, conn := range k.conns {
		if conn != nil {
			_ = conn.Close()
		}
	}
}

// looks waits until the process, which does not hold the slot, has looked
// whether it is free several times more.
func (k *keeper) looks() {
	k.t.Helper()
	before := k.connections()
	k.until("it has looked again", func(Status) bool { return k.connections() >= before+3 })
}

func (w *world) pair(t *testing.T, name string) (active, standby *keeper) {
	t.Helper()
	w.database(t, name)
	w.partitions(t, name, 1)
	active = w.keeper(t, name, nil)
	active.until("it streams", in(Streaming))
	active.insert("1", "x")
	active.until("it is acknowledged", acked(1))
	standby = w.keeper(t, name, nil)
	standby.until("it stands by", in(Standby))
	return active, standby
}

// partitions creates a topic, or adds partitions to it.
func (w *world) partitions(t *testing.T, topic string, count int) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(w.cluster.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	create := kmsg.NewPtrCreateTopicsRequest()
	made := kmsg.NewCreateTopicsRequestTopic()
	made.Topic, made.NumPartitions, made.ReplicationFactor = topic, int32(count), 1
	create.Topics = append(create.Topics, made)
	if count > 1 {
		add := kmsg.NewPtrCreatePartitionsRequest()
		more := kmsg.NewCreatePartitionsRequestTopic()
		more.Topic, more.Count = topic, int32(count)
		add.Topics = append(add.Topics, more)
		response, err := add.RequestWith(t.Context(), client)
		if err != nil || response.Topics[0].ErrorCode != 0 {
			t.Fatal(err, response)
		}
		return
	}
	response, err := create.RequestWith(t.Context(), client)
	if err != nil || response.Topics[0].ErrorCode != 0 {
		t.Fatal(err, response)
	}
}

// block gives the topic another partition, and waits until that is noticed.
func (w *world) block(t *testing.T, k *keeper) {
	t.Helper()
	w.partitions(t, k.config.WAL.Slot, 2)
	k.until("it is blocked", in(Blocked))
	status := k.Status()
	if status.Role != "active" || status.Ready || status.Kafka != nil || status.Stall.Kind != StallBlocked || status.SessionEnds[EndKafka] != 1 {
		t.Errorf("while it keeps the slot: %+v", status)
	}
	for _, part := range []string{"has 2 partitions, it had 1", "restart the publisher", "keeps slot " + k.config.WAL.Slot + " until then", "no standby goes on"} {
		if !strings.Contains(status.Stall.Cause, part) {
			t.Errorf("does not say %q: %s", part, status.Stall.Cause)
		}
	}
}

func (w *world) keptUntilRestart(t *testing.T) {
	t.Parallel()
	active, standby := w.pair(t, "kept")
	w.block(t, active)
	row := active.insert("2", "x")
	standby.looks()
	if status := standby.Status(); status.State != Standby || status.Sessions != 0 || active.confirmedBeyond(row) {
		t.Errorf("while the other is blocked: %+v", status)
	}
	var stopped *StoppedError
	if err := active.shutdown(); !errors.As(err, &stopped) || !stopped.Decision {
		t.Errorf("ended with %v", err)
	}
	standby.until("it goes on with the topic as it is", acked(1))
	if err := standby.shutdown(); err != nil {
		t.Errorf("stopped: %v", err)
	}
}

func (w *world) keptAgain(t *testing.T) {
	t.Parallel()
	w.database(t, "again")
	w.partitions(t, "again", 1)
	k := w.keeper(t, "again", nil)
	k.until("it streams", in(Streaming))
	k.insert("1", "x")
	k.until("it is acknowledged", acked(1))
	w.block(t, k)
	k.insert("2", "x")
	for range 3 {
		before := k.connections()
		k.cut()
		k.until("it holds the slot again", func(status Status) bool { return k.connections() > before && status.Role == "active" })
		if status := k.Status(); status.State != Blocked || status.Sessions != 1 || status.Acked != 1 {
			t.Errorf("after a lost connection: %+v", status)
		}
	}
	if err := k.shutdown(); err == nil {
		t.Error("a blocked publisher ends without an error")
	}
	again := w.keeper(t, "again", nil)
	again.until("what was not sent is sent", acked(1))
	if err := again.shutdown(); err != nil {
		t.Errorf("stopped: %v", err)
	}
}

func (w *world) overruled(t *testing.T) {
	t.Parallel()
	active, standby := w.pair(t, "overruled")
	w.block(t, active)
	active.insert("2", "x")
	execute(t, active.url, "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = 'overruled'")
	standby.until("it goes on", acked(1))
	active.until("the other stands by", in(Standby))
	if names := events(active.logs); count(names, "overruled") != 1 {
		t.Errorf("logged %q", names)
	}
	// And it has accepted what the other one went on with.
	if err := standby.shutdown(); err != nil {
		t.Errorf("stopped: %v", err)
	}
	active.until("it takes over", in(Streaming))
	active.insert("3", "x")
	active.until("it publishes", acked(2))
	if err := active.shutdown(); err != nil {
		t.Errorf("stopped: %v", err)
	}
}

func (w *world) notKept(t *testing.T) {
	t.Parallel()
	w.database(t, "exits_there")
	w.partitions(t, "exits_there", 1)
	k := w.keeper(t, "exits_there", func(c *Config) { c.ExitOnStop = true })
	k.until("it streams", in(Streaming))
	k.insert("1", "x")
	k.until("it is acknowledged", acked(1))
	w.partitions(t, "exits_there", 2)
	var stopped *StoppedError
	if err := k.ended(); !errors.As(err, &stopped) || !stopped.Decision {
		t.Errorf("ended with %v", err)
	}
}
