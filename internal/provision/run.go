package provision

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/slotctl"
)

// Run creates what is missing and reports each step when it is done. It uses
// conn alone until it returns. Errors: *ProblemsError, and those of
// slotctl.Create.
func Run(ctx context.Context, conn *pgx.Conn, plan Plan, report func(Step)) error {
	found, err := plan.look(ctx, conn)
	if err != nil {
		return err
	}
	if problems := plan.judge(found); len(problems) > 0 {
		return &ProblemsError{problems}
	}
	r := &runner{Plan: &plan, found: found, conn: conn, report: report}
	for i := range plan.Roles {
		if err := r.role(ctx, i); err != nil {
			return err
		}
	}
	for i := range plan.Tables {
		if err := r.table(ctx, i); err != nil {
			return err
		}
	}
	if err := r.publish(ctx); err != nil {
		return err
	}
	return r.createSlot(ctx)
}

// runner carries out a plan whose server was looked at.
type runner struct {
	*Plan
	found  *found
	conn   *pgx.Conn
	report func(Step)
}

// role creates the role, all of it or nothing.
func (r *runner) role(ctx context.Context, i int) error {
	wanted := r.Roles[i]
	object := "role " + wanted.Name
	if r.found.roles[i].Exists {
		r.report(Step{Object: object, Done: "exists"})
		return nil
	}
	err := pgx.BeginFunc(ctx, r.conn, func(tx pgx.Tx) error {
		for _, sql := range append(wanted.createSQL(r.found.server.RDS), wanted.connectSQL(r.found.server.Database)) {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		// Who may not grant gets a warning, not an error.
		var may bool
		if err := tx.QueryRow(ctx, "SELECT has_database_privilege($1::name, current_database(), 'CONNECT')", wanted.Name).Scan(&may); err != nil {
			return err
		}
		if !may {
			return &ProblemsError{[]Problem{{object, "could not be given CONNECT on database " + r.found.server.Database, "run init as the owner of the database or as a superuser"}}}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("create %s: %w", object, err)
	}
	next := "set one: \\password " + identifier(wanted.Name) + " in psql; or let it in by certificate or cloud token (pg_hba.conf)"
	if wanted.Right == Publish {
		next += "; so that alerts name who holds the slot and its WAL: " + wanted.monitorSQL()
	}
	r.report(Step{object, "created, without a password", next})
	return nil
}

func (r *runner) table(ctx context.Context, i int) error {
	wanted := r.Tables[i]
	object := "table " + wanted.String()
	if r.found.tables[i].Exists {
		r.report(Step{Object: object, Done: "exists"})
		return nil
	}
	if _, err := r.conn.Exec(ctx, r.TableSQL(wanted)); err != nil {
		return fmt.Errorf("create %s: %w", object, err)
	}
	r.report(Step{object, "created", "let your application write to it: GRANT INSERT ON " + wanted.sql() + " TO <its role>"})
	return nil
}

func (r *runner) publish(ctx context.Context) error {
	object := "publication " + r.Publication
	if r.found.publication == nil {
		if _, err := r.conn.Exec(ctx, r.PublicationSQL()); err != nil {
			return fmt.Errorf("create %s: %w", object, err)
		}
		r.report(Step{Object: object, Done: "created"})
		return nil
	}
	r.report(Step{Object: object, Done: "exists" + r.remarks()})
	for i, wanted := range r.Tables {
		if r.found.tables[i].Published {
			continue
		}
		if _, err := r.conn.Exec(ctx, r.addTableSQL(wanted)); err != nil {
			return fmt.Errorf("add table %s to %s: %w", wanted, object, err)
		}
		r.report(Step{Object: object, Done: "table " + wanted.String() + " added"})
	}
	return nil
}

// remarks say how an existing publication differs from a new one, where that
// does no harm.
func (r *runner) remarks() string {
	var others []string
	found := r.found.publication
	for _, other := range []struct {
		published bool
		name      string
	}{{found.Update, "update"}, {found.Delete, "delete"}, {found.Truncate, "truncate"}} {
		if other.published {
			others = append(others, other.name)
		}
	}
	var remarks []string
	if len(others) > 0 {
		remarks = append(remarks, "it also publishes "+strings.Join(others, ", ")+", which cdcpub ignores")
	}
	for i := range r.Tables {
		if !found.ViaRoot && r.found.tables[i].Kind == "p" {
			remarks = append(remarks, "it publishes partitions of "+r.Tables[i].String()+" under their own names, which cdcpub follows")
		}
	}
	if len(remarks) == 0 {
		return ""
	}
	return " (" + strings.Join(remarks, "; ") + ")"
}

// olderThanPublication is for a slot whose publication was created just now.
func (r *runner) olderThanPublication() string {
	answer := "PostgreSQL " + r.found.server.Version + ` answers "publication does not exist" (42704) at the first row, and cdcpub stands still`
	if r.found.server.VersionNum >= 180000 {
		answer = "PostgreSQL " + r.found.server.Version + " passes over the first row with a notice, which cdcpub takes for an error and stands still"
	}
	return fmt.Sprintf("the slot is older than publication %s: %s; unless nothing was written since, stop cdcpub, save the rows that are not in Kafka, then `cdcpub slot drop %s` and init again: README, \"A slot older than its publication\"", r.Publication, answer, r.Slot)
}

func (r *runner) createSlot(ctx context.Context) error {
	object := "slot " + r.Slot
	switch found := r.found.slot; {
	case found != nil && found.Creating:
		return fmt.Errorf("%s: another session is creating it at this moment; try again when it has finished", object)
	case found != nil:
		step := Step{Object: object, Done: "exists"}
		if r.found.publication == nil {
			step.Next = r.olderThanPublication()
		}
		r.report(step)
		return nil
	}
	lsn, err := slotctl.Create(ctx, r.conn, slotctl.New{Name: r.Slot, Failover: r.Failover, Timeout: r.SlotTimeout})
	if err != nil {
		return fmt.Errorf("create %s: %w", object, err)
	}
	created := Step{Object: object, Done: "created at LSN " + lsn.String()}
	if r.Failover {
		created.Done = "created as a failover slot at LSN " + lsn.String()
		created.Next = "a standby has it only when `cdcpub slot status " + r.Slot + "` says so: an unread failover slot may never become ready, so start `cdcpub run` soon (`cdcpub slot create --failover` waits for a standby)"
	}
	r.report(created)
	return r.unpublished(ctx)
}
