package kafka

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"os"
	"time"

	"github.com/IBM/sarama"

	"github.com/cdcpub/cdcpub/internal/hedge"
)

// dialer opens broker connections. Read only after it was made.
type dialer struct {
	config *Config
	base   sarama.Config
}

// protocolVersion is the newest set of request versions we speak: Produce 9,
// Metadata 11 (with topic ids), InitProducerID 4. Each connection goes down to
// what its broker offers.
var protocolVersion = sarama.V2_8_0_0

func newDialer(c *Config) *dialer {
	base := sarama.NewConfig()
	base.ClientID = c.ClientID
	base.Version = protocolVersion
	base.MetricRegistry = noMetrics{}
	base.Net.DialTimeout = c.DialTimeout
	base.Net.ReadTimeout = c.RequestTimeout + c.RequestTimeout/2
	base.Net.WriteTimeout = base.Net.ReadTimeout
	// The producer counts the requests itself, so that sending never waits
	// for a free slot.
	base.Net.MaxOpenRequests = c.MaxInFlightPerBroker + 1
	return &dialer{config: c, base: *base}
}

// connect opens a connection to address, TLS and SASL included. When ctx ends,
// even later, the connection is cut. gate, if not nil, is asked before every
// write. An error is an errNotSent; what is not the gate's is a *connectError.
//
// A network that swallows bytes leaves connections that stay mute when it is
// healthy again. So the first try has long for its answers, since the broker may
// be slow, but it is not the only one. The interval is longer than a network takes
// to repeat a lost SYN once, and than brokers delay a refused password, so that
// hardly one of those counts twice.
//
// Certificates, password and token are read anew, so a changed one counts from
// the next connection on.
func (d *dialer) connect(ctx context.Context, address string, gate func() error) (*sarama.Broker, error) {
	return d.connectAny(ctx, []string{address}, gate)
}

// connectAny is connect to the first of the addresses. What is tried beside it
// goes to the others too, in turn.
func (d *dialer) connectAny(ctx context.Context, addresses []string, gate func() error) (*sarama.Broker, error) {
	policy := hedge.Policy{Interval: d.config.RedialInterval, Most: 2}
	return hedge.Do(ctx, policy, func(ctx context.Context, number int) (*sarama.Broker, error) {
		if number == 0 {
			return d.connectOnce(ctx, addresses[0], gate)
		}
		return d.connectSoon(ctx, addresses[number%len(addresses)], gate)
	}, func(b *sarama.Broker) { _ = b.Close() })
}

// connectSoon is over before the next try is due, since it may be mute too.
func (d *dialer) connectSoon(ctx context.Context, address string, gate func() error) (*sarama.Broker, error) {
	ctx, cut := context.WithCancelCause(ctx)
	timer := time.AfterFunc(d.config.RedialInterval*5/6, func() { cut(os.ErrDeadlineExceeded) })
	broker, err := d.connectOnce(ctx, address, gate)
	if err == nil && !timer.Stop() {
		_ = broker.Close()
		return nil, os.ErrDeadlineExceeded
	}
	return broker, err
}

func (d *dialer) connectOnce(ctx context.Context, address string, gate func() error) (*sarama.Broker, error) {
	conn, err := d.dial(ctx, address, gate)
	if err != nil {
		return nil, err
	}
	broker, err := d.introduce(ctx, address, conn)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return broker, nil
}

// dial opens the connection, TLS included: sarama would leave the handshake to
// the first request.
func (d *dialer) dial(ctx context.Context, address string, gate func() error) (net.Conn, error) {
	dialing, cancel := context.WithTimeout(ctx, d.config.DialTimeout)
	defer cancel()
	raw, err := d.config.Dial(dialing, "tcp", address)
	if err != nil {
		return nil, unreachable(address, err)
	}
	context.AfterFunc(ctx, func() { _ = raw.Close() })
	conn := gatedConn{raw, gate}
	if d.config.TLS == nil {
		return &soundConn{Conn: conn}, nil
	}
	secured, err := d.encrypt(ctx, address, conn)
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	return secured, nil
}

// encrypt makes the TLS handshake.
func (d *dialer) encrypt(ctx context.Context, address string, conn net.Conn) (net.Conn, error) {
	config, err := d.config.TLS()
	if err != nil {
		return nil, &connectError{text: oneLine(err), class: classOperator, cause: err}
	}
	if config.ServerName == "" {
		config = config.Clone()
		config.ServerName, _, _ = net.SplitHostPort(address)
	}
	shaking, cancel := context.WithTimeout(ctx, d.config.DialTimeout)
	defer cancel()
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(shaking); err != nil {
		return nil, unencrypted(address, err)
	}
	return secured, nil
}

// introductions is how many times DialTimeout the first requests on a
// connection may take: those for versions and for SASL.
const introductions = 2

// introduce makes conn a broker that has said what it speaks and knows who we
// are.
func (d *dialer) introduce(ctx context.Context, address string, conn net.Conn) (*sarama.Broker, error) {
	config := d.base
	if d.config.SASL != nil {
		if err := d.config.SASL.prepare(ctx, &config); err != nil {
			return nil, &connectError{text: oneLine(err), class: classOperator, cause: err}
		}
	}
	config.Net.Proxy.Enable = true
	config.Net.Proxy.Dialer = readyConn{conn}
	// Alone, sarama would ask a broker that hangs twice, and take its silence
	// for an old version.
	limit := introductions * d.config.DialTimeout
	timer := time.AfterFunc(limit, func() { _ = conn.Close() })
	broker := sarama.NewBroker(address)
	if err := broker.Open(&config); err != nil {
		timer.Stop()
		return nil, unreachable(address, err)
	}
	ok, err := broker.Connected()
	switch {
	case !timer.Stop():
		_ = broker.Close()
		return nil, mute(address, limit)
	case ok:
		return broker, nil
	case err == nil:
		err = io.EOF
	}
	return nil, d.unauthenticated(address, err)
}

// readyConn hands sarama a connection that is open already: sarama would hold
// the broker's lock while it dials.
type readyConn struct{ conn net.Conn }

// Dial implements proxy.Dialer.
func (r readyConn) Dial(string, string) (net.Conn, error) { return r.conn, nil }

// gatedConn asks gate before every write. It is the last line before the
// system call, so a process that was frozen in between still asks.
type gatedConn struct {
	net.Conn
	gate func() error
}

// Write implements net.Conn.
func (c gatedConn) Write(b []byte) (int, error) {
	if c.gate != nil {
		if err := c.gate(); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(b)
}
