package wal

import (
	"context"
	"errors"
	"net"
)

// place is an address as the driver dials it: of a Unix socket, or an IP address
// with a port.
type place struct{ network, address string }

// errElsewhere: the stream is connected to another of the configured hosts.
var errElsewhere = errors.New("the stream is not connected there")

// only returns the configuration for another connection to the same server. A
// connection string may name several hosts, a name may have several addresses,
// and either may lead to another server by now, where our walsender cannot be
// seen. Every host is kept, since its name is what the certificate is checked
// for, but all of them lead to the place; what kind of server it is does not
// matter any more.
func (p place) only(base *ConnConfig) *ConnConfig {
	config := base.Copy()
	config.ValidateConnect = nil
	config.LookupFunc = func(context.Context, string) ([]string, error) {
		if p.network == "unix" {
			return nil, errElsewhere
		}
		return []string{p.address}, nil
	}
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if address != p.address {
			return nil, errElsewhere
		}
		return base.DialFunc(ctx, network, address)
	}
	return config
}
