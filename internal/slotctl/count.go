package slotctl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Count is how many rows an advance would skip. A row counts once for each
// change that the publications send: its INSERT, each UPDATE, its DELETE.
type Count struct {
	Rows         int64        `json:"rows"`
	Transactions int64        `json:"transactions"`
	Tables       []TableCount `json:"tables,omitempty"`
	// Incomplete says why there may be more rows; empty if the count is exact.
	Incomplete string `json:"incomplete,omitempty"`
}

// Exact tells if there are no more rows.
func (c Count) Exact() bool { return c.Incomplete == "" }

// CountLimits bound a count.
type CountLimits struct {
	Rows int64
	Time time.Duration
}

// Count reads the slot up to the target without confirming anything. server
// says how to reach the slot's database; conn is a connection to it. Afterwards
// nobody holds the slot.
//
// What the server cannot decode makes an incomplete count, not an error.
// Errors: *RefusedError if the slot is taken or a publication is missing,
// *RightsError.
func (a *Advance) Count(ctx context.Context, conn *pgx.Conn, server *pgconn.Config, publications []string, limits CountLimits) (Count, error) {
	if a.From >= a.To {
		return Count{}, nil
	}
	if a.Slot.Plugin != "pgoutput" {
		return Count{Incomplete: fmt.Sprintf("its plugin is %s: only pgoutput can be counted", a.Slot.Plugin)}, nil
	}
	missing, err := missingPublications(ctx, conn, publications)
	if err != nil {
		return Count{}, err
	}
	if len(missing) > 0 {
		return Count{Incomplete: "publication " + strings.Join(missing, ", ") + " does not exist"}, nil
	}
	limited, cancel := context.WithTimeoutCause(ctx, limits.Time, errTimeLimit)
	defer cancel()
	s, err := openStream(limited, server, a.Slot.Name, publications)
	if err != nil {
		return a.uncountable(ctx, conn, Count{}, err)
	}
	counted, err := a.read(limited, s, limits)
	s.close()
	if _, waitErr := AwaitRelease(ctx, conn, a.Slot.Name, s.pid()); waitErr != nil {
		return Count{}, fmt.Errorf("wait until the count has let go of slot %s: %w", a.Slot.Name, waitErr)
	}
	if err != nil {
		return a.uncountable(ctx, conn, counted, err)
	}
	return counted, nil
}

var errTimeLimit = errors.New("the time limit was reached")

// read counts until the target, a limit, or the end of the stream.
func (a *Advance) read(ctx context.Context, s *stream, limits CountLimits) (Count, error) {
	counter := newCounter(a.To, limits.Rows)
	for {
		event, err := s.next(ctx, 0)
		if err != nil {
			return counter.count(), err
		}
		next := goOn
		switch {
		case event.data != nil:
			if next, err = counter.message(event.data); err != nil {
				return counter.count(), &unreadableError{err}
			}
		case event.end >= a.To:
			next = through
		}
		switch next {
		case through:
			return counter.count(), nil
		case capped:
			count := counter.count()
			count.Incomplete = fmt.Sprintf("stopped at the limit of %d rows", limits.Rows)
			return count, nil
		}
	}
}

// unreadableError says that a message of the stream could not be read.
type unreadableError struct{ cause error }

func (e *unreadableError) Error() string { return e.cause.Error() }
func (e *unreadableError) Unwrap() error { return e.cause }

// uncountable makes of an error an incomplete count, if the error tells
// something about the slot's WAL, and otherwise explains it.
func (a *Advance) uncountable(ctx context.Context, conn *pgx.Conn, count Count, err error) (Count, error) {
	var unreadable *unreadableError
	var refused *pgconn.PgError
	switch {
	case ctx.Err() != nil:
		return Count{}, context.Cause(ctx)
	case errors.Is(err, errTimeLimit):
		count.Incomplete = "stopped at the time limit"
		return count, nil
	case errors.Is(err, errOlderThanPublication):
		count.Incomplete = "the slot is older than the publication, and the WAL before that cannot be decoded with it"
		return count, nil
	case errors.As(err, &unreadable):
		count.Incomplete = unreadable.Error()
		return count, nil
	case slices.Contains([]string{objectInUse, undefinedObject, insufficientPrivilege}, sqlState(err)):
		return Count{}, changed(ctx, conn, a.Slot.Name, "read", err)
	case errors.As(err, &refused) && !strings.HasPrefix(refused.Code, operatorIntervention):
		count.Incomplete = "the server cannot decode it: " + refused.Message
		return count, nil
	}
	return Count{}, fmt.Errorf("count what slot %s would skip: %w", a.Slot.Name, err)
}
