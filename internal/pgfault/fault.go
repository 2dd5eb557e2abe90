package pgfault

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/internal/human"
	"github.com/cdcpub/cdcpub/internal/peercert"
)

// Target is what was connected to, as the operator has stated it.
type Target struct {
	// Stated is where the connection string comes from: "postgres.url", "--url".
	Stated string
	// User and Database are those of the connection.
	User, Database string
	// Timeout is how long it was tried, 0 if that is not known.
	Timeout time.Duration
	// Replication tells if it was to be a replication connection.
	Replication bool
}

// Fault is why there is no connection. Both texts are clauses without a full
// stop.
type Fault struct {
	// Text follows the server's address and a colon.
	Text string
	// Cure is what to do; never empty.
	Cure string
	// SQLState is the code of a server that has refused; empty if none did.
	SQLState string
	// Refused tells that the server lets this connection in only when somebody
	// has changed something: a password, a right, a name.
	Refused bool
}

// String is both texts.
func (f *Fault) String() string { return f.Text + "; " + f.Cure }

// Read says what is behind an error of the driver. w may be nil. now is this
// machine's time, for certificates.
func (w *Watch) Read(err error, target Target, now time.Time) *Fault {
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused):
		return target.refusal(refused)
	case errors.Is(err, pgconn.ErrReadOnlyConnection), errors.Is(err, pgconn.ErrStandbyConnection):
		return &Fault{Text: "target_session_attrs wants a primary, and no server that answers is one",
			Cure: "name the primary in " + target.Stated + ", or wait until a standby has been promoted"}
	case errors.Is(err, pgconn.ErrReadWriteConnection), errors.Is(err, pgconn.ErrPrimaryConnection):
		return &Fault{Text: "target_session_attrs wants a standby, and no server that answers is one",
			Cure: "name a standby in " + target.Stated + ", or correct target_session_attrs there"}
	}
	if fault := peercert.Read(err, now); fault != nil {
		return &Fault{Text: "the server " + fault.Text, Cure: certificateCure(fault.Kind, target)}
	}
	if w != nil {
		if what := w.foreign.Load(); what != nil {
			return &Fault{Text: "what answers there is " + *what + ", not PostgreSQL", Cure: "correct host and port in " + target.Stated}
		}
		if w.noTLS.Load() {
			return &Fault{Text: "the server has no TLS, and sslmode demands it",
				Cure: "set ssl = on in postgresql.conf, or state sslmode=disable in " + target.Stated + " where you trust the network"}
		}
	}
	return target.network(err)
}

// network is a fault on the way to the server.
func (t Target) network(err error) *Fault {
	var (
		name    *net.DNSError
		network *net.OpError
		plain   tls.RecordHeaderError
	)
	check := "check host and port in " + t.Stated + ", and what is between: firewall, container network, VPN"
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return &Fault{Text: fmt.Sprintf("the name %s does not resolve here", name.Name), Cure: "correct the host in " + t.Stated + ", or the resolver of this machine"}
	case errors.As(err, &name):
		return &Fault{Text: fmt.Sprintf("the name %s could not be looked up (%s)", name.Name, name.Err), Cure: "check the resolver of this machine"}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &Fault{Text: "connection refused: nothing listens there", Cure: "start PostgreSQL, or correct host and port in " + t.Stated}
	case errors.Is(err, fs.ErrNotExist):
		return &Fault{Text: "there is no such socket on this machine", Cure: "start PostgreSQL, or correct host (the directory of the socket) and port in " + t.Stated}
	case errors.Is(err, fs.ErrPermission):
		return &Fault{Text: "this process may not connect to it (permission denied)", Cure: "let the user of this process use the socket, or name another host in " + t.Stated}
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return &Fault{Text: "there is no route to it", Cure: check}
	case errors.As(err, &network) && network.Op == "remote error": // an alert, as crypto/tls marks it
		return &Fault{Text: fmt.Sprintf("the server ends the TLS connection (%v)", network.Err),
			Cure: "it may not accept the client certificate: see sslcert and sslkey in " + t.Stated + ", and ssl_ca_file of the server"}
	case errors.As(err, &plain):
		return &Fault{Text: "what answers there does not speak TLS", Cure: "correct host, port and sslmode in " + t.Stated}
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return &Fault{Text: "no answer " + t.within(), Cure: check}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return &Fault{Text: "what answers there closes the connection without a word", Cure: "see that it is PostgreSQL (host and port in " + t.Stated + "), and not a proxy that has lost its server"}
	}
	return &Fault{Text: human.OneLine(innermost(err).Error()), Cure: check}
}

func (t Target) within() string {
	if t.Timeout <= 0 {
		return "in time"
	}
	return "within " + t.Timeout.String()
}

// innermost leaves out what the driver puts before a cause: user, database and
// one line per address.
func innermost(err error) error {
	for {
		switch inner := err.(type) {
		case interface{ Unwrap() error }:
			next := inner.Unwrap()
			if next == nil {
				return err
			}
			err = next
		case interface{ Unwrap() []error }:
			all := inner.Unwrap()
			if len(all) == 0 {
				return err
			}
			err = all[0]
		default:
			return err
		}
	}
}

func certificateCure(kind peercert.Kind, t Target) string {
	switch kind {
	case peercert.Untrusted:
		return "name a file with the certificate of its authority: sslrootcert in " + t.Stated
	case peercert.Expired:
		return "renew it on the server"
	case peercert.NotYetValid:
		return "correct the clock, or renew it on the server"
	case peercert.WrongName:
		return "connect by a name that it has, or have another one made (sslmode=verify-ca does not look at the name)"
	}
	return "have another one made for the server"
}
