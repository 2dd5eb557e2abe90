package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/internal/provision"
	"github.com/cdcpub/cdcpub/internal/witness"
)

// objectName is the name of the schema, the publication and the slot.
const objectName = "cdcpub_demo"

const (
	oracleSlot  = objectName + "_oracle"
	outboxTable = objectName + ".outbox"
)

// slotLimit bounds the creation of a slot, which waits for every write
// transaction that is running on the user's server.
const slotLimit = 30 * time.Second

// database is a PostgreSQL database with the shop's tables and slots.
type database struct {
	url     config.ConnString
	sql     *pgx.ConnConfig
	server  *pgserver.Server // nil on a server of the user
	version string
	created bool            // the schema, and thereby everything else, is ours
	oracle  *witness.Oracle // nil until it was made
}

func openDatabase(ctx context.Context, o Options) (*database, error) {
	d := &database{url: o.Postgres}
	if d.url == "" {
		server, err := pgserver.Start(ctx, pgserver.Options{
			Password: rand.Text()[:16], // others on this machine must not get in
			Progress: func(line string) { fmt.Fprintln(o.Notes, line) },
		})
		if err != nil {
			return nil, err
		}
		d.server, d.url = server, config.ConnString(server.URL("postgres"))
	}
	if err := d.create(ctx); err != nil {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		return nil, errors.Join(err, d.close(closing))
	}
	return d, nil
}

// sqlConfig leads to the same server as the publisher's connections.
func sqlConfig(p config.Postgres) (*pgx.ConnConfig, error) {
	base, err := p.ConnConfig()
	if err != nil {
		return nil, err
	}
	settings, err := pgx.ParseConfig("")
	if err != nil {
		return nil, err
	}
	settings.Config = *base
	return settings, nil
}

// connect opens a plain SQL connection.
func connect(ctx context.Context, settings *pgx.ConnConfig) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	return pgx.ConnectConfig(ctx, settings)
}

func (d *database) create(ctx context.Context) (err error) {
	if d.sql, err = sqlConfig(config.Postgres{URL: d.url}); err != nil {
		return err
	}
	conn, err := connect(ctx, d.sql)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	d.version, _, _ = strings.Cut(conn.PgConn().ParameterStatus("server_version"), " ")
	if err := refuseLeftovers(ctx, conn); err != nil {
		return err
	}
	// Whoever creates the schema owns all the other names.
	if _, err := conn.Exec(ctx, "CREATE SCHEMA "+objectName); err != nil {
		return fmt.Errorf("create schema %s: %w", objectName, err)
	}
	d.created = true
	if _, err := conn.Exec(ctx, shopTables); err != nil {
		return fmt.Errorf("create the shop's tables: %w", err)
	}
	if err := provision.Run(ctx, conn, plan(), func(provision.Step) {}); err != nil {
		return err
	}
	creating, cancel := context.WithTimeout(ctx, slotLimit)
	defer cancel()
	d.oracle, err = witness.NewOracle(creating, d.sql, witness.OracleOptions{
		Slot: oracleSlot, Temporary: true, Tables: []string{outboxTable},
	})
	return err
}

// plan is what `cdcpub init` would do for the default configuration, without
// the optional columns.
func plan() provision.Plan {
	columns := config.Default().Outbox.Columns
	return provision.Plan{
		Tables: []provision.Table{{Schema: objectName, Name: "outbox"}},
		Columns: provision.Columns{
			EventID: columns.EventID, AggregateType: columns.AggregateType, AggregateID: columns.AggregateID,
			AggregateVersion: columns.AggregateVersion, EventType: columns.EventType, Payload: columns.Payload,
		},
		Publication: objectName, Slot: objectName, SlotTimeout: slotLimit,
	}
}

func refuseLeftovers(ctx context.Context, conn *pgx.Conn) error {
	found := &LeftoversError{}
	for _, object := range []struct{ name, exists, removal string }{
		{"slot " + objectName, "SELECT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = '" + objectName + "')", dropSlot},
		{"slot " + oracleSlot, "SELECT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = '" + oracleSlot + "')",
			"SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = '" + oracleSlot + "';"},
		{"publication " + objectName, "SELECT EXISTS (SELECT FROM pg_publication WHERE pubname = '" + objectName + "')", dropPublication},
		{"schema " + objectName, "SELECT to_regnamespace('" + objectName + "') IS NOT NULL", dropSchema},
	} {
		var exists bool
		if err := conn.QueryRow(ctx, object.exists).Scan(&exists); err != nil {
			return fmt.Errorf("look for %s: %w", object.name, err)
		}
		if exists {
			found.Objects = append(found.Objects, object.name)
			found.Removal = append(found.Removal, object.removal)
		}
	}
	if len(found.Objects) > 0 {
		return found
	}
	return nil
}

// What removes the demo's objects; each may be repeated.
const (
	dropSlot        = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = '" + objectName + "';"
	dropPublication = "DROP PUBLICATION IF EXISTS " + objectName + ";"
	dropSchema      = "DROP SCHEMA IF EXISTS " + objectName + " CASCADE;"
)

func (d *database) close(ctx context.Context) error {
	var errs []error
	if d.oracle != nil {
		errs = append(errs, d.oracle.Close(ctx))
	}
	switch {
	case d.server != nil:
		errs = append(errs, d.server.Close())
	case d.created:
		if err := d.remove(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%w; what is left can be removed with\n  %s\n  %s\n  %s", err, dropSlot, dropPublication, dropSchema))
		}
	}
	return errors.Join(errs...)
}

// remove drops what the demo created on a server of the user.
func (d *database) remove(ctx context.Context) error {
	conn, err := connect(ctx, d.sql)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return errors.Join(dropOwnSlot(ctx, conn), execute(ctx, conn, dropPublication), execute(ctx, conn, dropSchema))
}

func execute(ctx context.Context, conn *pgx.Conn, sql string) error {
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%s %w", sql, err)
	}
	return nil
}

// dropOwnSlot ends the connection that still holds the slot, if any, and drops
// the slot as soon as it is free.
func dropOwnSlot(ctx context.Context, conn *pgx.Conn) error {
	const release = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = '" + objectName + "' AND active"
	for {
		err := execute(ctx, conn, dropSlot)
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != "55006" { // object_in_use
			return err
		}
		if err := execute(ctx, conn, release); err != nil {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
}

// describe names the server for a person. The password of a server of our own
// is told, since it is good for nothing else than to look around with psql.
func (d *database) describe() string {
	if d.server == nil {
		return fmt.Sprintf("%s, schema %s", d.url, objectName)
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword(d.sql.User, d.sql.Password), Host: fmt.Sprintf("%s:%d", d.sql.Host, d.sql.Port), Path: d.sql.Database}
	return u.String()
}
