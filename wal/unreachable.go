package wal

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/cdcpub/cdcpub/internal/peercert"
)

// tlsRefused is the server's answer to a request for TLS that it does not have
// (PostgreSQL documentation, "SSL Session Encryption").
const tlsRefused = 'N'

// errNoTLS: sslmode demands TLS, and the server has none.
var errNoTLS = errors.New("the server has no TLS")

// unreachable makes one line of a connection that failed before the server
// could refuse it: the driver's own text has one per address and TLS mode.
func (c *Config) unreachable(conn *ConnConfig, err error) error {
	return &UnreachableError{Address: addresses(conn), Text: reasonOf(err, time.Now()), Cause: err}
}

// addresses lists where the driver has tried.
func addresses(conn *ConnConfig) string {
	all := []string{fmt.Sprintf("%s:%d", conn.Host, conn.Port)}
	for _, other := range conn.Fallbacks {
		if address := fmt.Sprintf("%s:%d", other.Host, other.Port); !slices.Contains(all, address) {
			all = append(all, address)
		}
	}
	return strings.Join(all, ", ")
}

func reasonOf(err error, now time.Time) string {
	var network *net.OpError
	var name *net.DNSError
	cause := err
	if fault := peercert.Read(err, now); fault != nil {
		return "the server " + fault.Text + "; " + certificateCure(fault.Kind)
	}
	switch isNetwork := errors.As(err, &network); {
	case errors.Is(err, errNoTLS):
		return "the server has no TLS, and sslmode demands it; set ssl = on in postgresql.conf, or state sslmode=disable where you trust the network"
	case isNetwork && network.Op == "remote error": // an alert, as crypto/tls marks it
		return fmt.Sprintf("the server ends the TLS connection (%v); it may not accept the client certificate: see sslcert, sslkey, and ssl_ca_file of the server", network.Err)
	case errors.As(err, &name):
		cause = name
	case isNetwork:
		cause = network
	}
	return strings.Join(strings.Fields(cause.Error()), " ")
}

func certificateCure(kind peercert.Kind) string {
	switch kind {
	case peercert.Untrusted:
		return "name a file with the certificate of its authority: sslrootcert in postgres.url"
	case peercert.Expired:
		return "renew it on the server"
	case peercert.NotYetValid:
		return "correct the clock, or renew it on the server"
	case peercert.WrongName:
		return "connect by a name that it has, or have another one made (sslmode=verify-ca does not look at the name)"
	}
	return "have another one made for the server"
}
