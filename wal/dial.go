package wal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/cdcpub/cdcpub/internal/hedge"
	"github.com/cdcpub/cdcpub/internal/pause"
	"github.com/cdcpub/cdcpub/internal/pgfault"
)

// dialing: while a connection is not there after some seconds, which is longer
// than a network takes to repeat a lost SYN once, and servers to delay a refused
// password (unless auth_delay has more, when it counts twice), another one is
// tried beside it. The first goes on, since the server may only be slow. A server has max_wal_senders connections to give, and those on
// which its answer was lost cost one for a minute or longer: hence so few.
var dialing = hedge.Policy{Interval: 3 * time.Second, Most: 2}

// dial opens the connection with the session settings that make a row's text
// the same whatever the role, the database or the server is set to. A host that
// takes the connection and says nothing does not hold up what others can offer,
// or it itself on another connection.
//
// The watch is for what an error does not tell.
func dial(ctx context.Context, base *pgconn.Config, settings map[string]string) (*link, *pgfault.Watch, error) {
	var first *pgfault.Watch
	l, err := hedge.Do(ctx, dialing, func(ctx context.Context, number int) (*link, error) {
		own := base.Copy()
		own.AfterConnect = nil // for the one that is taken
		if number > 0 {
			ctx, cancel := context.WithTimeout(ctx, redialLimit) // a later one may be luckier
			defer cancel()
			own.DialFunc = knocked(own.DialFunc)
			return dialOnce(ctx, own, settings)
		}
		first = pgfault.Begin(own)
		return dialOnce(ctx, own, settings)
	}, (*link).close)
	if err == nil && base.AfterConnect != nil {
		if err = base.AfterConnect(ctx, l.pg); err != nil {
			l.close()
		}
	}
	if err != nil {
		return nil, first, err
	}
	return l, nil, nil
}

func dialOnce(ctx context.Context, base *pgconn.Config, settings map[string]string) (*link, error) {
	config := base.Copy()
	apply(config, settings)
	// The driver dials once per address. Later, when a read has failed, it would
	// dial again in the background to cancel what it takes for a query.
	var dialed *link
	connected := false
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if connected {
			return nil, net.ErrClosed
		}
		conn, err := base.DialFunc(ctx, network, address)
		if err != nil {
			return nil, err
		}
		dialed = &link{Conn: conn, place: place{network, address}, began: time.Now()}
		return dialed, nil
	}
	pg, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	connected = true
	dialed.pg = pg
	dialed.touch()
	return dialed, nil
}

// apply makes settings those that the session begins with.
func apply(config *pgconn.Config, settings map[string]string) {
	for name, value := range settings {
		// The same name in other letters would be sent too, in random order.
		maps.DeleteFunc(config.RuntimeParams, func(given, _ string) bool { return strings.EqualFold(given, name) })
		config.RuntimeParams[name] = value
	}
}

// redialLimit bounds the tries beside the first.
const redialLimit = 10 * time.Second

// knockLimit bounds the wait for one byte that costs the server nothing.
const knockLimit = 2 * time.Second

// knocked dials addresses at which a server answers now, as a connection before
// has shown. To find that out takes none of the server's places.
func knocked(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := knock(ctx, dial, network, address); err != nil {
			return nil, fmt.Errorf("knock at %s: %w", address, err)
		}
		return dial(ctx, network, address)
	}
}

// knock asks for TLS, which a server answers with one byte, whether it has TLS or
// not, and before anything else (PostgreSQL documentation, "Message Flow", SSL
// Session Encryption). A proxy that is told of TLS in no other way than by TLS
// itself does not answer, and is left with the first try.
func knock(ctx context.Context, dial pgconn.DialFunc, network, address string) error {
	ctx, cancel := context.WithTimeout(ctx, knockLimit)
	defer cancel()
	conn, err := dial(ctx, network, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	question, err := (&pgproto3.SSLRequest{}).Encode(nil)
	if err != nil {
		return err
	}
	if _, err := conn.Write(question); err != nil {
		return err
	}
	var answer [1]byte
	_, err = io.ReadFull(conn, answer[:])
	return err
}

// minOpening bounds from below how long a server may say nothing to a question
// before the stream: it reads catalogs, where a keepalive is at hand.
const minOpening = 10 * time.Second

// unlessSilent returns a context that ends when the server says nothing for limit,
// and what releases it. The server itself gives up on a walsender after about as
// long.
func (l *link) unlessSilent(ctx context.Context, limit time.Duration) (context.Context, func()) {
	limit = max(limit, minOpening)
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for silence := l.silence(); silence < limit; silence = l.silence() {
			if pause.For(ctx, limit-silence) != nil {
				return
			}
		}
		cancel(&UnreachableError{
			Address: l.place.address, Cause: ErrSilent,
			Text: fmt.Sprintf("it has taken the connection and then said nothing for %s; check its load, and what is between: firewall, container network, VPN", limit),
		})
	}()
	return ctx, func() { cancel(nil) }
}

// silentOr is the end of a context that unlessSilent made, or else err.
func silentOr(listening context.Context, err error) error {
	if silent, ok := errors.AsType[*UnreachableError](context.Cause(listening)); ok {
		return silent
	}
	return err
}
