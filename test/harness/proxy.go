package harness

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/cdcpub/cdcpub/internal/pgserver"
)

// Proxy forwards TCP connections to a target and can do to them what networks
// do. Its methods are safe from any goroutine.
type Proxy struct {
	addr string

	mu       sync.Mutex
	changed  sync.Cond // on mu: any change of the fields below
	target   string
	listener net.Listener // nil while cut or closed
	pairs    map[*pair]struct{}
	frozen   bool
	held     int // chunks that Freeze holds back
	swallows bool
	dropping bool
	dropped  int
	latency  time.Duration
	closed   bool

	running sync.WaitGroup
}

// pair is one connection through the proxy.
type pair struct {
	client, server net.Conn
	mute           bool // on Proxy.mu: bytes of it were swallowed
}

func (p *pair) close() {
	p.client.Close()
	p.server.Close()
}

// NewProxy listens on a free port of 127.0.0.1 and forwards to target. The
// target need not exist yet.
func NewProxy(target string) (*Proxy, error) {
	ports, err := pgserver.FreePorts(1)
	if err != nil {
		return nil, err
	}
	p := &Proxy{addr: loopback(ports[0]), target: target, pairs: map[*pair]struct{}{}}
	p.changed.L = &p.mu
	return p, p.Restore()
}

// Addr is where clients connect. It never changes.
func (p *Proxy) Addr() string { return p.addr }

// Retarget closes all connections and forwards new ones to another target.
func (p *Proxy) Retarget(target string) {
	p.update(func() {
		p.target = target
		p.closePairs()
	})
}

// Cut closes all connections and refuses new ones.
func (p *Proxy) Cut() {
	p.update(func() {
		if p.listener != nil {
			p.listener.Close()
			p.listener = nil
		}
		p.closePairs()
	})
}

// Restore forwards as at the beginning: it ends Cut, Freeze, Swallow,
// DropResponses and SetLatency. What Freeze held back is delivered.
func (p *Proxy) Restore() error {
	var err error
	p.update(func() {
		p.frozen, p.swallows, p.dropping, p.latency = false, false, false, 0
		if p.closed || p.listener != nil {
			return
		}
		var listener net.Listener
		if listener, err = net.Listen("tcp", p.addr); err != nil {
			return
		}
		p.listener = listener
		p.running.Go(func() { p.accept(listener) })
	})
	return err
}

// Freeze holds all bytes in both directions; connections stay open and new
// ones are accepted, as if a packet filter dropped everything.
func (p *Proxy) Freeze() { p.update(func() { p.frozen = true }) }

// Held is how many chunks of bytes Freeze holds back now. The end of the
// connection that one came from does not take it away.
func (p *Proxy) Held() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// Swallow takes the bytes of both directions and forwards none: a black hole.
// Connections stay open and new ones are accepted. A connection that has lost
// bytes stays mute after Restore too, half-open as behind a packet filter that
// has forgotten it.
func (p *Proxy) Swallow() { p.update(func() { p.swallows = true }) }

// DropResponses forwards requests. The first bytes of an answer are thrown
// away and end their connection: what the client sees as failed took effect.
func (p *Proxy) DropResponses() { p.update(func() { p.dropping = true }) }

// WaitDropped waits until n answers were thrown away since the proxy was made.
// It returns false if the proxy was closed first.
func (p *Proxy) WaitDropped(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.dropped < n && !p.closed {
		p.changed.Wait()
	}
	return p.dropped >= n
}

// SetLatency delays each chunk of bytes, in both directions. Chunks of one
// connection wait one after the other, so it limits the throughput too.
func (p *Proxy) SetLatency(d time.Duration) { p.update(func() { p.latency = d }) }

// Connections is the number of open connections.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pairs)
}

// Close closes everything and waits for the proxy's goroutines.
func (p *Proxy) Close() error {
	p.Cut()
	p.update(func() { p.closed = true })
	p.running.Wait()
	return nil
}

func (p *Proxy) update(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.changed.Broadcast()
}

func (p *Proxy) closePairs() {
	for pair := range p.pairs {
		pair.close()
		delete(p.pairs, pair)
	}
}

func (p *Proxy) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return // cut or closed
		}
		p.running.Go(func() { p.serve(listener, client) })
	}
}

// serve forwards one connection. The client is accepted before the target is
// known to answer; when it does not, the client sees a closed connection.
func (p *Proxy) serve(listener net.Listener, client net.Conn) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.DialTimeout("tcp", target, 5*time.Second)
	if err != nil {
		client.Close()
		return
	}
	both := &pair{client: client, server: server}
	p.mu.Lock()
	if p.listener != listener || p.target != target { // cut meanwhile
		p.mu.Unlock()
		both.close()
		return
	}
	p.pairs[both] = struct{}{}
	p.mu.Unlock()

	var requests sync.WaitGroup
	requests.Go(func() {
		p.forward(both, server, client, false)
	})
	p.forward(both, client, server, true)
	requests.Wait()
	p.update(func() { delete(p.pairs, both) })
}

// errDropped ends a connection whose answer was thrown away.
var errDropped = errors.New("the answer was dropped")

func (p *Proxy) forward(both *pair, to io.Writer, from io.Reader, answers bool) {
	defer both.close() // the other direction ends too
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			forward, err := p.pass(both, answers)
			if err != nil {
				return
			}
			if forward {
				if _, err := to.Write(buffer[:n]); err != nil {
					return
				}
			}
		}
		if err != nil {
			return
		}
	}
}

// pass waits until a chunk may go on, and says whether it is forwarded. An
// error ends the connection.
func (p *Proxy) pass(both *pair, answer bool) (forward bool, err error) {
	p.mu.Lock()
	latency := p.latency
	p.mu.Unlock()
	if latency > 0 {
		time.Sleep(latency)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen {
		p.held++
		defer func() { p.held-- }()
	}
	for p.frozen {
		if _, open := p.pairs[both]; !open {
			return false, fmt.Errorf("%w while it was frozen", net.ErrClosed)
		}
		p.changed.Wait()
	}
	if both.mute = both.mute || p.swallows; both.mute {
		return false, nil
	}
	if answer && p.dropping {
		p.dropped++
		p.changed.Broadcast()
		return false, errDropped
	}
	return true, nil
}
