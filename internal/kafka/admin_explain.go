package kafka

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/IBM/sarama"
)

// explain is one sentence that says why the server at address is of no use.
func explain(address string, err error) string {
	var (
		failed   *connectError
		code     sarama.KError
		name     *net.DNSError
		foreign  *foreignError
		deadline = errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
	)
	switch {
	case errors.Is(err, errNoAnswer):
		// The connection was cut for that, whatever the rest of err says.
		return fmt.Sprintf("%s accepts the connection but does not answer in time", address)
	case errors.As(err, &failed):
		return failed.text
	case errors.As(err, &name) && name.IsNotFound:
		return fmt.Sprintf("the name %s does not resolve here", name.Name)
	case errors.As(err, &name):
		return fmt.Sprintf("the name %s could not be looked up: %s", name.Name, name.Err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("%s refuses the connection: nothing listens on that port", address)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return fmt.Sprintf("there is no route to %s", address)
	case errors.As(err, &foreign):
		return address + " " + foreign.Error()
	case errors.Is(err, errController):
		return fmt.Sprintf("%s is the port of a KRaft controller, which serves no clients: use the port of a broker's listener", address)
	case errors.As(err, &code):
		return fmt.Sprintf("%s answers with %s", address, classify(code))
	case deadline && errors.Is(err, errNotSent):
		return fmt.Sprintf("%s does not answer: no connection within the time limit, so a firewall may drop the packets or the host may be down", address)
	case deadline:
		return fmt.Sprintf("%s accepts the connection but does not answer in time", address)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return fmt.Sprintf("%s closes the connection: the port may want TLS or SASL where cdcpub is configured without, or refuse the user, or it is no Kafka broker", address)
	default:
		return fmt.Sprintf("%s cannot be used: %s", address, strings.TrimPrefix(oneLine(err), address+": "))
	}
}

// oneLine is the text of an error without the marks of this package.
func oneLine(err error) string {
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	return strings.TrimPrefix(text, errNotSent.Error()+": ")
}

// foreignError: the first bytes of an answer are not Kafka's.
type foreignError struct{ what string }

func (e *foreignError) Error() string { return e.what }

// soundConn looks at the first bytes that come in over a connection without
// TLS. sarama takes whatever comes for the length of an answer and allocates
// that much.
type soundConn struct {
	net.Conn
	head []byte
	// foreign is set once: nothing goes over the connection any more, since
	// sarama would try another version of its request.
	foreign atomic.Pointer[foreignError]
}

// headBytes is the length that begins every answer of a broker.
const headBytes = 4

// Read implements net.Conn. One goroutine at a time reads.
func (c *soundConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if missing := headBytes - len(c.head); missing > 0 && n > 0 {
		c.head = append(c.head, b[:min(n, missing)]...)
		c.foreign.CompareAndSwap(nil, foreignHead(c.head))
	}
	if foreign := c.foreign.Load(); foreign != nil {
		return 0, foreign
	}
	return n, err
}

// Write implements net.Conn.
func (c *soundConn) Write(b []byte) (int, error) {
	if foreign := c.foreign.Load(); foreign != nil {
		return 0, foreign
	}
	return c.Conn.Write(b)
}

// foreignHead judges the first bytes of the answer to our first request, whose
// list of versions is a few kilobytes at most.
func foreignHead(head []byte) *foreignError {
	const most = 1 << 20
	switch {
	case len(head) >= 3 && (head[0] == 0x15 || head[0] == 0x16) && head[1] == 3 && head[2] <= 4:
		return &foreignError{"speaks TLS, and kafka.tls is not configured"}
	case bytes.HasPrefix(head, []byte("HTTP")):
		return &foreignError{"is an HTTP server, no Kafka broker: correct host and port in kafka.brokers"}
	case len(head) == headBytes && (binary.BigEndian.Uint32(head) > most || binary.BigEndian.Uint32(head) < headBytes):
		return &foreignError{"does not speak the Kafka protocol: correct host and port in kafka.brokers"}
	default:
		return nil
	}
}
