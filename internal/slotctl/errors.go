package slotctl

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/slotmon"
)

// RefusedError says that a check found a reason not to act. Nothing was
// changed.
type RefusedError struct {
	Slot    string
	Message string // what is in the way
	Cure    string // what to do next
	Cause   error  // the server's own words, if it was the server that refused
}

func (e *RefusedError) Error() string {
	text := "slot " + e.Slot + " " + e.Message
	if e.Cure != "" {
		text += "; " + e.Cure
	}
	return text
}

func (e *RefusedError) Unwrap() error { return e.Cause }

// RightsError says which right the role lacks.
type RightsError struct {
	What  string // what was not allowed
	Cure  string
	Cause error
}

func (e *RightsError) Error() string {
	return fmt.Sprintf("%s: not allowed (%s); %s", e.What, serverText(e.Cause), e.Cure)
}

func (e *RightsError) Unwrap() error { return e.Cause }

// serverText is a server's message without severity and SQLSTATE; any other
// error as it is.
func serverText(err error) string {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return refused.Message
	}
	return err.Error()
}

// SQLSTATEs that decide.
const (
	insufficientPrivilege = "42501"
	objectInUse           = "55006"
	undefinedObject       = "42704"
	wrongState            = "55000" // object_not_in_prerequisite_state
	limitExceeded         = "53400" // configuration_limit_exceeded
	queryCanceled         = "57014"
	invalidName           = "42602"
	operatorIntervention  = "57" // a class: somebody ended or cancelled it
)

// sqlState is the server's code for the error, empty if it is not the server's.
func sqlState(err error) string {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

// replicationRight explains why the role may not work with slots.
func replicationRight(conn *pgx.Conn, what string, err error) error {
	role := pgx.Identifier{conn.Config().User}.Sanitize()
	return &RightsError{What: what, Cause: err, Cure: "as a superuser: ALTER ROLE " + role + " REPLICATION"}
}

// Holder describes the process that has a slot, as far as the role may see it:
// pid 4711, application_name "cdcpub", user cdc, from 10.0.0.7, connected since
// 2026-01-02 03:04:05 UTC.
func Holder(h *slotmon.Holder) string {
	parts := []string{fmt.Sprintf("pid %d, application_name %q", h.PID, h.ApplicationName)}
	if h.User != "" {
		parts = append(parts, "user "+h.User)
	}
	if h.Address != "" {
		parts = append(parts, "from "+h.Address)
	}
	if h.Since != nil {
		parts = append(parts, "connected since "+h.Since.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	return strings.Join(parts, ", ")
}

// held describes who holds an active slot.
func held(slot *slotmon.Slot) string {
	if slot.Holder == nil {
		return "is held by a process that cannot be seen"
	}
	return "is held by " + Holder(slot.Holder)
}

// active refuses because somebody holds the slot.
func active(slot *slotmon.Slot, cause error) *RefusedError {
	refused := &RefusedError{Slot: slot.Name, Message: held(slot), Cause: cause,
		Cure: fmt.Sprintf("stop that process first, or end it with `cdcpub slot takeover %s`", slot.Name)}
	if slot.Temporary {
		refused.Cure = "it is a temporary slot and goes when that session ends"
	}
	return refused
}
