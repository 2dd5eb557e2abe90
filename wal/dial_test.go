package wal

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// blackHole takes everything and says nothing.
func blackHole() net.Conn {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		buffer := make([]byte, 1024)
		for {
			if _, err := server.Read(buffer); err != nil {
				return
			}
		}
	}()
	return client
}

// through dials the server while open says so, and else a black hole, in which
// every connection then stays for good.
func (s *fakeServer) through(config *Config, open func(network, address string) bool) {
	connect := config.Connect
	config.Connect = func(ctx context.Context) (*ConnConfig, error) {
		base, err := connect(ctx)
		if err != nil {
			return nil, err
		}
		base.DialFunc = func(_ context.Context, network, address string) (net.Conn, error) {
			if open(network, address) {
				return s.dialAlike()
			}
			return blackHole(), nil
		}
		return base, nil
	}
}

// dialAlike is dial without looks: every connection may be the one that streams.
func (s *fakeServer) dialAlike() (net.Conn, error) {
	s.mu.Lock()
	s.dialed = 0
	s.mu.Unlock()
	return s.dial()
}

// A firewall that has swallowed the first packets leaves a connection on which
// nothing ever comes. When the network is healthy again the next one counts, not
// the limit of the first.
func TestAConnectionThatSaysNothingDoesNotHoldUpAHealthyNetwork(t *testing.T) {
	for _, healed := range []time.Duration{time.Millisecond, 2 * time.Second, 4 * time.Second, 17 * time.Second} {
		t.Run(healed.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newFakeServer(t)
				config, began := server.config(), time.Now()
				server.through(&config, func(string, string) bool { return time.Since(began) >= healed })
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				stream, err := Open(ctx, config)
				if err != nil {
					t.Fatal(err)
				}
				if late := time.Since(began) - healed; late > 5*time.Second {
					t.Errorf("opened %s after the network was healthy", late)
				}
				endStream(stream)
				server.closed.Wait()
			})
		})
	}
}

func endStream(stream *Stream) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = stream.Run(ended, make(chan *Batch))
}

// The first host has lost its power: nobody there refuses the connection.
func TestAHostThatSaysNothingDoesNotHoldUpTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer(t)
		config, began := server.config(), time.Now()
		config.Connect = func(context.Context) (*ConnConfig, error) {
			base, err := server.connConfig("postgres://cdcpub@one:5432,two:5432,three:5432/shop?sslmode=disable")
			base.LookupFunc = func(_ context.Context, host string) ([]string, error) {
				return map[string][]string{"one": {"192.0.2.1"}, "two": {"192.0.2.2"}, "three": {"192.0.2.3"}}[host], nil
			}
			return base, err
		}
		server.through(&config, func(_, address string) bool { return address == "192.0.2.3:5432" })
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		stream, err := Open(ctx, config)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 8*time.Second {
			t.Errorf("the third host was reached after %s", took)
		}
		endStream(stream)
		server.closed.Wait()
	})
}

// Whoever is slow to let us in gets its time, on few connections: they take
// places of its max_wal_senders.
func TestASlowServerIsWaitedForOnFewConnections(t *testing.T) {
	const slow = 25 * time.Second
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer(t)
		server.admit = func(int) { time.Sleep(slow) }
		config, began := server.config(), time.Now()
		server.through(&config, func(string, string) bool { return true })
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		stream, err := Open(ctx, config)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > slow+time.Second {
			t.Errorf("opened after %s", took)
		}
		endStream(stream)
		server.closed.Wait()
		if server.asked > 3 {
			t.Errorf("%d connections wanted to be let in", server.asked)
		}
	})
}

// While nothing comes back, nothing is left at the server but what the first
// connection has begun.
func TestABlackHoleGetsOneConnectionThatCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer(t)
		config, began := server.config(), time.Now()
		var startups, knocks atomic.Int64
		connect := config.Connect
		config.Connect = func(ctx context.Context) (*ConnConfig, error) {
			base, err := connect(ctx)
			base.DialFunc = func(context.Context, string, string) (net.Conn, error) { return dumb(&startups, &knocks), nil }
			return base, err
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, err := Open(ctx, config)
		var unreachable *UnreachableError
		if !errors.As(err, &unreachable) || time.Since(began) != 30*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if startups.Load() != 1 || knocks.Load() < 5 {
			t.Errorf("%d connections wanted to be let in, %d knocks", startups.Load(), knocks.Load())
		}
	})
}

// dumb hears, and is not heard.
func dumb(startups, knocks *atomic.Int64) net.Conn {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		backend := pgproto3.NewBackend(server, server)
		for {
			message, err := backend.ReceiveStartupMessage()
			if err != nil {
				return
			}
			switch message.(type) {
			case *pgproto3.StartupMessage:
				startups.Add(1)
			case *pgproto3.SSLRequest:
				knocks.Add(1)
			}
		}
	}()
	return client
}

// AfterConnect is how the publisher knows its walsender among others.
func TestOnlyTheConnectionThatIsTakenIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer(t)
		server.admit = func(number int) {
			if number == 0 {
				time.Sleep(time.Minute)
			}
		}
		config := server.config()
		server.through(&config, func(string, string) bool { return true })
		var named []*pgconn.PgConn
		connect := config.Connect
		config.Connect = func(ctx context.Context) (*ConnConfig, error) {
			base, err := connect(ctx)
			base.AfterConnect = func(_ context.Context, conn *pgconn.PgConn) error {
				named = append(named, conn)
				return nil
			}
			return base, err
		}
		stream, err := Open(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		if server.asked != 2 || len(named) != 1 || named[0] != stream.link.pg {
			t.Errorf("%d connections, named %v, taken %p", server.asked, named, stream.link.pg)
		}
		endStream(stream)
		server.closed.Wait()
	})
}

// A network that breaks between connect and stream is no reason to wait for the
// end of everything.
func TestAServerThatFallsSilentBeforeTheStreamIsGivenUp(t *testing.T) {
	for _, question := range []string{"'transaction_timeout'", "IDENTIFY_SYSTEM", "pg_publication p WHERE pubname", "START_REPLICATION"} {
		t.Run(question, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newFakeServer(t)
				server.answers[question] = answer{none: true}
				config, began := server.config(), time.Now()
				config.WALSenderTimeout = 13 * time.Second
				_, err := Open(t.Context(), config)
				var unreachable *UnreachableError
				if !errors.As(err, &unreachable) || !errors.Is(err, ErrSilent) || unreachable.Address != "192.0.2.1:5432" {
					t.Error(err)
				}
				if took := time.Since(began); took < 13*time.Second || took > 14*time.Second {
					t.Errorf("after %s", took)
				}
				server.closed.Wait()
				if n := server.open.Load(); n != 0 {
					t.Errorf("%d connections are left open", n)
				}
			})
		})
	}
}
