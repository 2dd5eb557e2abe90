package provision

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Lacks says what the role is missing, with the statement that gives it, in
// the connection's database. It changes nothing.
func (r Role) Lacks(ctx context.Context, conn *pgx.Conn) ([]Problem, error) {
	at, err := lookAtServer(ctx, conn)
	if err != nil {
		return nil, err
	}
	found, err := r.look(ctx, conn, at.RDS)
	if err != nil {
		return nil, fmt.Errorf("look at role %s: %w", r.Name, err)
	}
	if !found.Exists {
		return []Problem{{"role " + r.Name, "does not exist", r.createSQL(at.RDS)[0]}}, nil
	}
	return r.judge(&found, &at), nil
}
