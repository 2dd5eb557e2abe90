package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/IBM/sarama"
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
	if c.TLS != nil {
		base.Net.TLS.Enable, base.Net.TLS.Config = true, c.TLS
	}
	if c.SASL != nil {
		base.Net.SASL.Enable = true
		base.Net.SASL.Mechanism = sarama.SASLMechanism(c.SASL.Mechanism)
		base.Net.SASL.User, base.Net.SASL.Password = c.SASL.User, c.SASL.Password
	}
	return &dialer{config: c, base: *base}
}

// connect opens a connection to address, TLS and SASL included. When ctx ends,
// even later, the connection is cut. gate, if not nil, is asked before every
// write.
func (d *dialer) connect(ctx context.Context, address string, gate func() error) (*sarama.Broker, error) {
	dialing, cancel := context.WithTimeout(ctx, d.config.DialTimeout)
	defer cancel()
	conn, err := d.config.Dial(dialing, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotSent, err)
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	config := d.base
	config.Net.Proxy.Enable = true
	config.Net.Proxy.Dialer = readyConn{gatedConn{conn, gate}}
	broker := sarama.NewBroker(address)
	if err := broker.Open(&config); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("%w: %w", errNotSent, err)
	}
	if ok, err := broker.Connected(); !ok {
		_ = conn.Close()
		if err == nil {
			err = errors.New("the broker closed the connection")
		}
		return nil, fmt.Errorf("%w: %s: %w", errNotSent, address, err)
	}
	return broker, nil
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
