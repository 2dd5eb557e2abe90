package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/provision"
)

// tryService tries whether the service can do its work with postgres.url. If
// not, that is a warning: what is missing may come later, such as a password.
func (s *setup) tryService(ctx context.Context, admin *pgx.Conn) error {
	ctx, cancel := context.WithTimeoutCause(ctx, adminTimeout, fmt.Errorf("no answer within %s", adminTimeout))
	defer cancel()
	problem, err := s.serviceProblem(ctx, admin)
	if err != nil {
		return err
	}
	object := "role " + s.service
	if problem == "" {
		s.report(provision.Step{Object: object, Done: "can connect by postgres.url and read slots"})
		return nil
	}
	fmt.Fprintf(s.p.stderr, "warning: %s cannot publish by postgres.url yet: %s\n", object, problem)
	return nil
}

// serviceProblem says what is in the way of the service, empty if nothing is.
func (s *setup) serviceProblem(ctx context.Context, admin *pgx.Conn) (string, error) {
	lacks, err := provision.Role{Name: s.service, Right: provision.Publish}.Lacks(ctx, admin)
	if err != nil {
		return "", err
	}
	if len(lacks) > 0 {
		var texts []string
		for _, problem := range lacks {
			texts = append(texts, fmt.Sprintf("it %s (%s)", problem.What, problem.Cure))
		}
		return strings.Join(texts, "; ") + "; init --create-roles creates a missing role", nil
	}
	server, err := publishedServer(s.config, initApplication, adminTimeout)
	if err != nil {
		return err.Error(), nil
	}
	system, err := server.identify(ctx)
	if err != nil {
		return err.Error(), nil
	}
	// Not every managed server lets its administrator look.
	var here *string
	const identifier = `SELECT CASE WHEN has_function_privilege('pg_control_system()', 'EXECUTE')
		THEN (SELECT system_identifier::text FROM pg_control_system()) END`
	if err := admin.QueryRow(ctx, identifier).Scan(&here); err != nil {
		return "", fmt.Errorf("look at the server: %w", err)
	}
	if here != nil && system != *here {
		return fmt.Sprintf("it leads to another server than --admin-url (system identifier %s, not %s)", system, *here), nil
	}
	return "", nil
}

// identify opens a replication connection, as run does, and returns the
// identifier of the server.
func (s *sqlServer) identify(ctx context.Context) (string, error) {
	conn, err := s.connectForReplication(ctx)
	if err != nil {
		return "", err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing)
	}()
	system, err := pglogrepl.IdentifySystem(ctx, conn)
	if err != nil {
		return "", fmt.Errorf("the connection cannot be used for replication: %w", s.explain(ctx, err))
	}
	return system.SystemID, nil
}
