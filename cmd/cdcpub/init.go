package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/internal/provision"
)

type initCommand struct {
	configFile
	Print       bool          `help:"Print the SQL instead, for review, and connect to nothing."`
	AdminURL    string        `name:"admin-url" placeholder:"URL" help:"Connection string of the tables' owner or a superuser, in place of postgres.url, which then needs no rights but its own and is tried at the end."`
	CreateRoles bool          `help:"Also create the roles that are missing: the user of postgres.url, who may read slots, and the monitor. They get no password."`
	MonitorRole string        `default:"cdcpub_monitor" placeholder:"NAME" help:"Role for those who only look at slots, for --create-roles and --print; none leaves it out. By default ${default}."`
	Failover    bool          `help:"Have standbys keep a copy of the slot, so that it survives a failover (PostgreSQL 17 and newer)."`
	Types       []string      `placeholder:"TYPE" help:"Aggregate types whose topics are needed, besides those of kafka.topics; kafka.create_topics creates them."`
	Timeout     time.Duration `default:"60s" help:"How long to wait for running write transactions when the slot is created."`
}

// Help is shown below the flags' overview.
func (initCommand) Help() string {
	return `Creates outbox tables, publication and slot where they are missing, in this order,
and with kafka.create_topics the topics. What exists is never altered, except that
missing tables are added to the publication; if it does not fit, init says all that
is wrong and creates nothing. It may be run again at any time.

Exit code: 0 everything is there; 1 another try may cure it; 2 usage or
configuration; 3 something that exists does not fit, a right is missing, or the
server refuses the login.

Examples:

    cdcpub init -c cdcpub.yaml --print > init.sql
    cdcpub init -c cdcpub.yaml --admin-url postgres://postgres@db.internal/shop --create-roles
    cdcpub init -c cdcpub.yaml --types order,customer`
}

func (c *initCommand) Run(ctx context.Context, p *process) error {
	loaded, err := c.load(p)
	if err != nil {
		return err
	}
	s, err := c.setup(p, loaded)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	if c.Print {
		return s.print()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case received := <-p.signals:
			cancel(fmt.Errorf("ended by %s before everything was created; run it again", received))
		case <-ctx.Done():
		}
	}()
	err = s.create(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// setup is one run of init.
type setup struct {
	*initCommand
	p      *process
	config *config.Config
	plan   provision.Plan
	topics []string
	// service is the role of postgres.url, database the one that it goes to.
	service, database string
}

// setup finds out what is needed. It touches no network.
func (c *initCommand) setup(p *process, loaded *config.Config) (*setup, error) {
	service, err := loaded.Postgres.ConnConfigWithoutSecret()
	if err != nil {
		return nil, err
	}
	s := &setup{initCommand: c, p: p, config: loaded, service: service.User, database: service.Database}
	if s.database == "" {
		s.database = service.User // as the server does
	}
	if s.topics, err = neededTopics(loaded, c.Types); err != nil {
		return nil, fmt.Errorf("--types: %w", err)
	}
	s.plan = plan(loaded, c.Timeout)
	s.plan.Failover = c.Failover
	if c.CreateRoles || c.Print {
		s.plan.Roles = s.roles()
	}
	return s, nil
}

func (s *setup) roles() []provision.Role {
	roles := []provision.Role{{Name: s.service, Right: provision.Publish}}
	if s.MonitorRole != noRole && s.MonitorRole != s.service {
		roles = append(roles, provision.Role{Name: s.MonitorRole, Right: provision.Monitor})
	}
	return roles
}

// noRole is a name that no role can have (PostgreSQL documentation, "CREATE
// ROLE").
const noRole = "none"

func (s *setup) print() error {
	_, err := fmt.Fprint(s.p.stdout, s.plan.Script(s.database), s.topicCommands())
	return err
}

func (s *setup) create(ctx context.Context) error {
	if err := s.createInPostgres(ctx); err != nil {
		return err
	}
	return s.createTopics(ctx)
}

func (s *setup) createInPostgres(ctx context.Context) error {
	admin, err := s.admin()
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	conn, err := admin.connect(ctx)
	if err != nil {
		return withExitCode(err)
	}
	defer closeConn(conn)
	if err := s.reachKafka(ctx); err != nil {
		return err
	}
	if err := provision.Run(ctx, conn, s.plan, s.report); err != nil {
		return s.explain(err)
	}
	if s.AdminURL == "" {
		return nil
	}
	return s.tryService(ctx, conn)
}

// report prints a step, and below it what is left to a human.
func (s *setup) report(step provision.Step) {
	fmt.Fprintf(s.p.stdout, "%-40s %s\n", step.Object, step.Done)
	if step.Next != "" {
		fmt.Fprintf(s.p.stdout, "    next: %s\n", step.Next)
	}
}

// explain gives an error of PostgreSQL its exit code and the cure.
func (s *setup) explain(err error) error {
	var problems *provision.ProblemsError
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &problems):
		return &exitError{code: exitRefused, err: err}
	case errors.As(err, &refused) && refused.Code == "42501" && s.CreateRoles: // insufficient_privilege
		return &exitError{code: exitRefused, err: fmt.Errorf("%w; creating roles with REPLICATION takes a superuser, or the administrator of a managed server: give its connection with --admin-url, or have the output of --print run by whoever has it", err)}
	case errors.As(err, &refused) && refused.Code == "42501":
		return &exitError{code: exitRefused, err: fmt.Errorf("%w; init needs the rights of the tables' owner and REPLICATION, the service itself only the latter: give the owner's connection with --admin-url, or have the output of --print run by whoever has the rights", err)}
	}
	return withExitCode(err)
}

// adminTimeout is for a connection, and for each statement but those that have
// limits of their own.
const adminTimeout = 15 * time.Second

const initApplication = "cdcpub init"

// admin is the server that things are created on, by --admin-url if there is
// one. A connection string without a database goes to the service's.
func (s *setup) admin() (*sqlServer, error) {
	if s.AdminURL == "" {
		return publishedServer(s.config, initApplication, adminTimeout)
	}
	const stated = "--admin-url"
	url := config.ConnString(s.AdminURL)
	where, err := url.ConnConfig(stated)
	if err != nil {
		return nil, err
	}
	if where.Database == "" {
		where.Database = s.database
	}
	if where.Database != s.database {
		return nil, fmt.Errorf("--admin-url goes to database %s and postgres.url to %s: what is created in one is not seen in the other; name the same database in both", where.Database, s.database)
	}
	source := func(_ context.Context, extra ...config.Param) (*pgconn.Config, error) {
		settings, err := url.ConnConfig(stated, extra...)
		if err == nil {
			settings.Database = s.database
		}
		return settings, err
	}
	return newSQLServer(where, stated, initApplication, adminTimeout, source), nil
}

// closeConn also waits until a statement that was given up has been cancelled
// on the server.
func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	_ = conn.Close(ctx)
	select {
	case <-conn.PgConn().CleanupDone():
	case <-ctx.Done():
	}
}

func plan(c *config.Config, timeout time.Duration) provision.Plan {
	columns := c.Outbox.Columns
	plan := provision.Plan{
		Publication: c.Postgres.Publication, Slot: c.Postgres.Slot, SlotTimeout: timeout,
		Columns: provision.Columns{
			EventID: columns.EventID, AggregateType: columns.AggregateType, AggregateID: columns.AggregateID,
			AggregateVersion: columns.AggregateVersion, EventType: columns.EventType, Payload: columns.Payload,
			SchemaVersion: columns.SchemaVersion, Headers: columns.Headers,
			Timestamp: columns.Timestamp, OccurredAt: columns.OccurredAt,
		},
		Required:       requiredColumns(c),
		ConventionOnly: c.Outbox.Preset == config.PresetDebezium,
	}
	// A topic cannot be made of NULL.
	for _, name := range topicColumns(c) {
		plan.Extra = append(plan.Extra, provision.Column{Name: name, Type: "text", Constraint: "NOT NULL"})
	}
	for _, header := range c.Outbox.Headers {
		plan.Extra = append(plan.Extra, provision.Column{Name: header.Column, Type: "text"})
	}
	for _, table := range c.Outbox.Tables {
		plan.Tables = append(plan.Tables, provision.Table{Schema: table.Schema, Name: table.Name})
	}
	return plan
}
