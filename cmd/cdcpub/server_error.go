package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/internal/human"
	"github.com/cdcpub/cdcpub/internal/pgfault"
)

// serverError says in one line why the server could not be asked.
type serverError struct {
	server, text, cure string
	// refused: the server will go on to refuse until somebody has changed
	// something.
	refused bool
	cause   error
}

func (e *serverError) Error() string {
	return fmt.Sprintf("PostgreSQL at %s: %s", e.server, e.reason())
}

// reason is the error without the server's name.
func (e *serverError) reason() string {
	if e.cure != "" {
		return e.text + "; " + e.cure
	}
	return e.text
}

func (e *serverError) Unwrap() error { return e.cause }

// unconnected says why there is no connection. ctx is the one that it was tried
// with.
func (s *sqlServer) unconnected(ctx context.Context, watch *pgfault.Watch, replication bool, err error) error {
	if ended := context.Cause(ctx); ended != nil {
		err = fmt.Errorf("%w: %w", ended, err) // the driver says so in its own terms
	}
	target := pgfault.Target{Stated: s.stated, User: s.user, Database: s.database, Replication: replication, Timeout: s.timeout}
	if target.Database == "" {
		target.Database = s.user // as the server does
	}
	fault := watch.Read(err, target, time.Now())
	return &serverError{server: s.name, text: fault.Text, cure: fault.Cure, refused: fault.Refused, cause: err}
}

// explain says why a statement failed. ctx is the one that the server was asked
// with.
func (s *sqlServer) explain(ctx context.Context, err error) error {
	var before *serverError
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &before):
		return err
	case errors.As(err, &refused):
		return &serverError{server: s.name, text: fmt.Sprintf("%s (SQLSTATE %s)", human.OneLine(refused.Message), refused.Code),
			cure: s.cure(refused.Code), refused: refused.Code == "42501", cause: err}
	case ctx.Err() != nil:
		return &serverError{server: s.name, text: human.OneLine(context.Cause(ctx).Error()), cause: err}
	}
	return &serverError{server: s.name, text: "the connection broke before the answer was there", cure: "try again; the log of PostgreSQL says if the server has ended it", cause: err}
}

// cure is what to do about a statement that the server has refused.
func (s *sqlServer) cure(code string) string {
	switch code {
	case "42501": // insufficient_privilege
		return fmt.Sprintf("as a superuser: GRANT pg_monitor TO %s", pgx.Identifier{s.user}.Sanitize())
	case "57014": // query_canceled
		return "raise slot_monitor.timeout if the server is that slow"
	}
	return ""
}
