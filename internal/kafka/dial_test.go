package kafka

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// blackHole takes connections and whatever is sent on them, and says nothing.
func blackHole(t *testing.T) (address string, took *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	took = new(atomic.Int64)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			took.Add(1)
			go func() {
				defer conn.Close()
				_, _ = io.Copy(io.Discard, conn)
			}()
		}
	}()
	return listener.Addr().String(), took
}

// A firewall that has forgotten connections lets the next one through. What the
// first one may take of its time is not lost to the records.
func TestAConnectionThatStaysMuteDoesNotHoldUpAHealthyNetwork(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	hole, took := blackHole(t)
	config := fastConfig(c.ListenAddrs()...)
	config.DialTimeout, config.RequestTimeout = time.Hour, time.Hour
	config.RedialInterval = 600 * time.Millisecond
	// Of the control connection, which is the first, and then of that for the
	// records, several stay mute.
	const mute = 4
	var dialed atomic.Int64
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if dialed.Add(1)%(mute+1) != 0 {
			address = hole
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	s := startSession(t, newTestClient(t, config), always)
	s.Send(s.numbered("orders", 10, oneKey))
	s.acks(10)
	if took.Load() < 2*mute {
		t.Errorf("%d connections were mute", took.Load())
	}
	requireExactly(t, c, "orders", 10)
}

// Of three brokers two are behind a black hole. Whichever is asked first, the
// third one can tell, and its own records go out.
func TestMuteBrokersDoNotHoldUpWhatAnotherCanTell(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	one, tookOne := blackHole(t)
	two, tookTwo := blackHole(t)
	config := fastConfig(one, two, c.ListenAddrs()[0])
	config.DialTimeout, config.RequestTimeout = time.Hour, time.Hour
	config.RedialInterval = 200 * time.Millisecond
	client := newTestClient(t, config)
	for tookOne.Load() == 0 || tookTwo.Load() == 0 {
		s := startSession(t, client, always)
		s.connected(true)
		s.stop(patience)
	}
	s := startSession(t, client, always)
	s.Send(s.numbered("orders", 10, oneKey))
	s.acks(10)
	requireExactly(t, c, "orders", 10)
}
