package harness_test

import (
	"bufio"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/test/harness"
)

// echo is a server that answers each line with itself and tells what it got.
func echo(t *testing.T) (address string, received <-chan string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	lines := make(chan string, 16)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for scanner := bufio.NewScanner(c); scanner.Scan(); {
					lines <- scanner.Text()
					if _, err := c.Write([]byte(scanner.Text() + "\n")); err != nil {
						return
					}
				}
			}()
		}
	}()
	return listener.Addr().String(), lines
}

func proxied(t *testing.T) (*harness.Proxy, <-chan string) {
	t.Helper()
	address, received := echo(t)
	proxy, err := harness.NewProxy(address)
	must(t, err)
	t.Cleanup(func() { must(t, proxy.Close()) })
	return proxy, received
}

// peer is a client that speaks in lines.
type peer struct {
	net.Conn
	lines *bufio.Reader
}

func dial(t *testing.T, proxy *harness.Proxy) peer {
	t.Helper()
	c, err := net.Dial("tcp", proxy.Addr())
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return peer{c, bufio.NewReader(c)}
}

func (p peer) say(t *testing.T, line string) {
	t.Helper()
	_, err := p.Write([]byte(line + "\n"))
	must(t, err)
}

func (p peer) hear(t *testing.T, want string) {
	t.Helper()
	must(t, p.SetReadDeadline(time.Now().Add(10*time.Second)))
	if got, err := p.lines.ReadString('\n'); err != nil || got != want+"\n" {
		t.Fatalf("heard %q, %v, want %q", got, err, want)
	}
}

// hearEnd checks that the connection ends without another byte.
func (p peer) hearEnd(t *testing.T) {
	t.Helper()
	must(t, p.SetReadDeadline(time.Now().Add(10*time.Second)))
	got, err := p.lines.ReadString('\n')
	if got != "" || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("heard %q, %v, want the end", got, err)
	}
}

func TestProxyForwardsBothWays(t *testing.T) {
	proxy, _ := proxied(t)
	c := dial(t, proxy)
	for _, line := range []string{"a", "b"} {
		c.say(t, line)
		c.hear(t, line)
	}
	if n := proxy.Connections(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

func TestProxyCutEndsConnectionsAndRefusesNewOnesUntilRestored(t *testing.T) {
	proxy, _ := proxied(t)
	c := dial(t, proxy)
	c.say(t, "a")
	c.hear(t, "a")
	proxy.Cut()
	c.hearEnd(t)
	if late, err := net.Dial("tcp", proxy.Addr()); err == nil {
		late.Close()
		t.Error("a cut proxy accepted a connection")
	}
	must(t, proxy.Restore())
	again := dial(t, proxy)
	again.say(t, "b")
	again.hear(t, "b")
}

func TestProxyFreezeHoldsRequestsAndDeliversThemLater(t *testing.T) {
	proxy, received := proxied(t)
	c := dial(t, proxy)
	c.say(t, "a")
	c.hear(t, "a")
	<-received
	proxy.Freeze()
	c.say(t, "held")
	must(t, c.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
	if got, err := c.lines.ReadString('\n'); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("heard %q, %v through a frozen proxy", got, err)
	}
	select {
	case line := <-received:
		t.Fatalf("the server got %q through a frozen proxy", line)
	default:
	}
	must(t, proxy.Restore())
	c.hear(t, "held")
}

func TestProxyCutEndsAFrozenConnection(t *testing.T) {
	proxy, _ := proxied(t)
	c := dial(t, proxy)
	c.say(t, "a")
	c.hear(t, "a")
	proxy.Freeze()
	c.say(t, "held")
	proxy.Cut()
	c.hearEnd(t)
}

func TestProxyDropResponsesLetsTheRequestTakeEffect(t *testing.T) {
	proxy, received := proxied(t)
	c := dial(t, proxy)
	proxy.DropResponses()
	c.say(t, "a")
	if got := <-received; got != "a" {
		t.Errorf("the server got %q", got)
	}
	c.hearEnd(t)
	if !proxy.WaitDropped(1) {
		t.Error("no answer was counted as dropped")
	}
}

func TestProxyLatencyDelaysBothWays(t *testing.T) {
	proxy, _ := proxied(t)
	const delay = 50 * time.Millisecond
	proxy.SetLatency(delay)
	c := dial(t, proxy)
	began := time.Now()
	c.say(t, "a")
	c.hear(t, "a")
	if took := time.Since(began); took < 2*delay {
		t.Errorf("there and back took %v, want at least %v", took, 2*delay)
	}
}

func TestProxyClosesTheClientWhenItsTargetIsNotThere(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := listener.Addr().String()
	listener.Close()
	proxy, err := harness.NewProxy(address)
	must(t, err)
	defer proxy.Close()
	dial(t, proxy).hearEnd(t)
}

func TestProxySwallowLosesBytesForGood(t *testing.T) {
	proxy, received := proxied(t)
	c := dial(t, proxy)
	c.say(t, "a")
	c.hear(t, "a")
	<-received
	proxy.Swallow()
	c.say(t, "lost")
	young := dial(t, proxy)
	young.say(t, "lost too")
	must(t, c.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
	if got, err := c.lines.ReadString('\n'); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("heard %q, %v from a black hole", got, err)
	}
	must(t, proxy.Restore())
	again := dial(t, proxy)
	again.say(t, "b")
	again.hear(t, "b")
	// The old connections are open and dead.
	c.say(t, "lost again")
	again.say(t, "c")
	again.hear(t, "c")
	for _, want := range []string{"b", "c"} {
		if got := <-received; got != want {
			t.Errorf("the server got %q, want %q", got, want)
		}
	}
	if n := proxy.Connections(); n != 3 {
		t.Errorf("%d connections, want 3", n)
	}
}

func TestProxyRetargetSendsNewConnectionsElsewhere(t *testing.T) {
	proxy, first := proxied(t)
	address, second := echo(t)
	before := dial(t, proxy)
	before.say(t, "one")
	before.hear(t, "one")
	proxy.Retarget(address)
	before.hearEnd(t)
	after := dial(t, proxy)
	after.say(t, "two")
	after.hear(t, "two")
	if got := []string{<-first, <-second}; got[0] != "one" || got[1] != "two" {
		t.Errorf("received %q", got)
	}
}
