package wal

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/internal/pgfault"
)

// unconnected gives a failed connect its meaning. What the server has refused
// for good is a *StopError, what may be cured by itself an *UnreachableError:
// one line, where the driver's own text has one per address and TLS mode.
func (c *Config) unconnected(conn *ConnConfig, watch *pgfault.Watch, err error) error {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		var known *StopError
		if explained := c.explain(refused); errors.As(explained, &known) {
			return explained
		}
	}
	target := pgfault.Target{Stated: "postgres.url", User: c.user, Database: c.database, Replication: true}
	fault := watch.Read(err, target, time.Now())
	if fault.Refused {
		return c.stop(AccessDenied, nil, fault.Cure, "PostgreSQL at %s does not let user %s in: %s", addresses(conn), c.user, fault.Text)
	}
	return &UnreachableError{Address: addresses(conn), Text: fault.String(), Cause: err}
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
