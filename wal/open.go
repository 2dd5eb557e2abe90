package wal

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
)

// Config says which slot to read and what must be there.
type Config struct {
	// Connect says how to reach the database of the slot, without replication
	// settings. It is asked anew for each connection, so that passwords and
	// certificates may change: the replication connection, and short looks at
	// the server. It must be safe for calls from two goroutines, and may take
	// its time, but for the end of the context.
	Connect     func(context.Context) (*ConnConfig, error)
	Slot        string
	Publication string
	// Tables are the outbox tables.
	Tables []Table
	// Columns are the columns that every outbox table must publish.
	Columns []string
	// WALSenderTimeout is set on the server for our own walsender and is our
	// own limit of silence. Zero means 15 s.
	WALSenderTimeout time.Duration
	// StatusInterval is the time between status updates when nothing else
	// causes one. Zero means a third of WALSenderTimeout.
	StatusInterval time.Duration
	// Previous is the identity of this process's last stream, nil for the
	// first. A difference that may mean a gap stops the stream. Without a
	// Publication only the server is compared.
	Previous *Identity
	// BeforeStart is asked when the slot is free, before it is taken. Its error
	// ends Open. Nil for none.
	BeforeStart func() error
	// Unreadable is how an earlier stream of this process ended, if that was a
	// RowUnreadable, or nil. A stream that comes to the same transaction ends in
	// the same way, before it hands over that transaction's rows once more.
	Unreadable *StopError

	user, database string // for messages
}

// ConnConfig is the driver's.
type ConnConfig = pgconn.Config

// Table is the qualified name of an outbox table.
type Table struct{ Schema, Name string }

func (t Table) String() string { return t.Schema + "." + t.Name }

// sessionSettings fix how a value is printed, and that nothing ends the session
// in the middle of its work: roles and databases may override every one of them,
// and then the same row has other bytes. What a client asks for at its start wins
// over both (PostgreSQL documentation, "Setting Parameters"). Every supported
// version must know them; an unknown one is refused.
func (c *Config) sessionSettings() map[string]string {
	return map[string]string{
		"replication":                 "database",
		"datestyle":                   "ISO, YMD",
		"timezone":                    "UTC",
		"intervalstyle":               "postgres",
		"extra_float_digits":          "3",
		"bytea_output":                "hex",
		"client_encoding":             "UTF8",
		"lc_monetary":                 "C",
		"search_path":                 "pg_catalog, pg_temp", // how regclass is printed, and whose functions are called
		"quote_all_identifiers":       "off",
		"client_min_messages":         "notice",
		"standard_conforming_strings": "on",
		"lock_timeout":                "0",
		"statement_timeout":           "0",
		"idle_session_timeout":        "0",
		"wal_sender_timeout":          strconv.FormatInt(c.WALSenderTimeout.Milliseconds(), 10) + "ms",
	}
}

// slotName is what PostgreSQL allows; pglogrepl pastes it unquoted.
var slotName = regexp.MustCompile(`^[a-z0-9_]{1,63}$`)

// Open connects, checks everything that could lose rows later, and starts
// replication at the slot's confirmed_flush_lsn. Start, reconnect and recovery
// are the same call. ctx bounds Open only.
//
// Errors: *StopError when a human must act, *SlotInUseError when another
// process reads the slot; anything else may be gone at the next try.
func Open(ctx context.Context, config Config) (*Stream, error) {
	if config.WALSenderTimeout == 0 {
		config.WALSenderTimeout = 15 * time.Second
	}
	if config.StatusInterval == 0 {
		config.StatusInterval = config.WALSenderTimeout / 3
	}
	if !slotName.MatchString(config.Slot) {
		return nil, config.stop(SlotUnusable, nil, "choose a name of lower-case letters, digits and underscores, at most 63",
			"%q is not a legal slot name", config.Slot)
	}
	conn, err := config.Connect(ctx)
	if err != nil {
		return nil, err
	}
	config.user, config.database = conn.User, conn.Database
	link, watch, err := dial(ctx, conn, config.sessionSettings())
	if err != nil {
		return nil, config.unconnected(conn, watch, err)
	}
	listening, end := link.unlessSilent(ctx, config.WALSenderTimeout)
	defer end()
	stream, err := config.begin(listening, link)
	if err != nil {
		link.close()
		return nil, silentOr(listening, err)
	}
	return stream, nil
}

// settle is what depends on the server, after the start of the session.
//
// Decoding is a transaction of its own, which transaction_timeout (17) would end.
//
// In a database with the encoding SQL_ASCII PostgreSQL can convert nothing, and
// refuses to send bytes that are not UTF-8 to a session that wants UTF-8: the
// stream would end without a word about which row it was. So the bytes are taken
// as they are. Whoever makes records of them must look.
func settle(cat *catalog) error {
	settings := "SELECT to_json(pg_catalog.set_config(name, '0', false)) FROM pg_catalog.pg_settings WHERE name = 'transaction_timeout'"
	if cat.conn.ParameterStatus("server_encoding") == "SQL_ASCII" {
		settings += " UNION ALL SELECT to_json(pg_catalog.set_config('client_encoding', 'SQL_ASCII', false))"
	}
	if _, err := query[string](cat, settings); err != nil {
		return fmt.Errorf("settle the session: %w", err)
	}
	return nil
}

func (c *Config) begin(ctx context.Context, l *link) (*Stream, error) {
	catalog := catalog{ctx: ctx, conn: l.pg}
	if err := settle(&catalog); err != nil {
		return nil, c.explain(err)
	}
	system, err := pglogrepl.IdentifySystem(ctx, l.pg)
	if err != nil {
		return nil, c.explain(fmt.Errorf("identify system: %w", err))
	}
	identity := Identity{SystemID: system.SystemID, Timeline: system.Timeline}
	if c.Previous != nil && c.Previous.SystemID != identity.SystemID {
		return nil, c.stop(ServerChanged, nil,
			"make sure that the right server is configured and that the gap is known, then restart cdcpub, standbys too",
			"another server answers: system identifier %s, before %s; what was committed on the old one and not published is not in this slot", identity.SystemID, c.Previous.SystemID)
	}
	if c.Previous == nil || c.Previous.Timeline != identity.Timeline {
		c.Unreadable = nil // its LSN may be another transaction's now
	}
	slot, err := c.checkSlot(&catalog, system)
	if err != nil {
		return nil, seenAt(system.SystemID, err)
	}
	known, err := c.checkPublication(&catalog)
	if err != nil {
		return nil, err
	}
	identity.Publication = known.fingerprint
	if c.Previous != nil && c.Previous.Publication != "" && c.Previous.Publication != identity.Publication {
		return nil, c.stop(PublicationChanged, nil,
			"compare the outbox with the topics for that time, then restart cdcpub to go on from here",
			"publication %s was changed while cdcpub was running: outbox rows written while it did not publish the outbox are not in the stream", c.Publication)
	}
	walsender, err := catalog.backend()
	if err != nil {
		return nil, err
	}
	if c.BeforeStart != nil {
		if err := c.BeforeStart(); err != nil {
			return nil, err
		}
	}
	if err := c.startReplication(ctx, l, 0); err != nil {
		return nil, seenAt(system.SystemID, err)
	}
	l.sent, l.trust = time.Now(), c.WALSenderTimeout*3/4
	s := &Stream{
		config: *c, identity: identity, link: l, start: slot.confirmed, received: slot.confirmed,
		decoder: NewDecoder(known), free: make(chan *Batch, 4),
		pacer:  pacer{interval: c.StatusInterval, last: time.Now()},
		probes: prober{timeout: c.WALSenderTimeout, look: c.lookAtSlot(l.place, walsender), asked: make(chan chan<- error, 1)},
		wake:   make(chan struct{}, 1), finish: make(chan struct{}), ended: make(chan struct{}),
	}
	s.batch = s.newBatch()
	s.confirmed.Store(uint64(slot.confirmed))
	s.counters.received.Store(uint64(slot.confirmed))
	return s, nil
}

// seenAt adds the server to a *SlotInUseError.
func seenAt(systemID string, err error) error {
	var inUse *SlotInUseError
	if errors.As(err, &inUse) {
		inUse.SystemID = systemID
	}
	return err
}

// startReplication starts at 0/0 to read, which means the slot's own position:
// never at a position of ours, since the server believes any.
func (c *Config) startReplication(ctx context.Context, l *link, at pglogrepl.LSN) error {
	// publication_names is a list of identifiers, within a string literal.
	name := quoteLiteral(quoteIdentifier(c.Publication))
	err := pglogrepl.StartReplication(ctx, l.pg, c.Slot, at, pglogrepl.StartReplicationOptions{
		Mode:       pglogrepl.LogicalReplication,
		PluginArgs: []string{"proto_version '1'", "publication_names " + name},
	})
	if err == nil {
		return nil
	}
	var refused *pgconn.PgError
	switch err = fmt.Errorf("start replication on slot %s: %w", c.Slot, err); {
	case errors.As(err, &refused) && refused.Code == "42704":
		return err // the slot was dropped since it was looked at; the next look says so
	default:
		return c.explain(err)
	}
}

func quoteIdentifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func quoteLiteral(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func (c *Config) stop(reason Reason, cause error, cure, format string, args ...any) *StopError {
	return &StopError{Reason: reason, Slot: c.Slot, Message: fmt.Sprintf(format, args...), Cure: cure, Cause: cause}
}

func (c *Config) publicationMissing() *StopError {
	return c.stop(PublicationMissing, nil,
		"create it with `cdcpub init -c <your config>`; if it existed before and was dropped, the slot is then older than the publication and must be created again after it: see README, \"A slot older than its publication\"",
		"publication %s does not exist in database %s: outbox rows cannot be decoded; nothing was skipped", c.Publication, c.database)
}

// publicationTooNew: the catalogs have the publication, but it did not exist
// yet where the slot reads.
func (c *Config) publicationTooNew(cause error) *StopError {
	return c.stop(PublicationTooNew, cause,
		fmt.Sprintf("the slot must be created again, after the publication: save the outbox rows that are not in Kafka yet, then `cdcpub slot drop %s` and `cdcpub init -c <your config>`; see README, \"A slot older than its publication\"", c.Slot),
		"slot %s is older than publication %s, which did not exist yet at the WAL that the slot reads: it cannot be decoded, and nothing was skipped", c.Slot, c.Publication)
}

// explain gives a server's refusal its meaning. SQLSTATE decides, never text;
// where one SQLSTATE has several causes the catalogs were read before.
func (c *Config) explain(err error) error {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return err
	}
	user, database := c.user, c.database
	switch refused.Code {
	case "28P01": // invalid_password
		return c.stop(AccessDenied, err,
			"check the user name and the password (postgres.password_file, postgres.password_command, PGPASSWORD, passfile)",
			"PostgreSQL does not let user %s in", user)
	case "28000": // invalid_authorization_specification
		return c.stop(AccessDenied, err,
			"check the user name, and pg_hba.conf of the server, which decides by user, database, address, encryption and client certificate (sslcert, sslkey)",
			"PostgreSQL does not let user %s in", user)
	case "42501": // insufficient_privilege
		return c.stop(AccessDenied, err,
			fmt.Sprintf("as a superuser: ALTER ROLE %s REPLICATION; GRANT CONNECT ON DATABASE %s TO %s", quoteIdentifier(user), quoteIdentifier(database), quoteIdentifier(user)),
			"user %s may not read slot %s in database %s", user, c.Slot, database)
	case "3D000": // invalid_catalog_name
		return c.stop(AccessDenied, err, "correct the database in postgres.url", "database %s does not exist", database)
	case "55006": // object_in_use
		return &SlotInUseError{Slot: c.Slot, Cause: err}
	case "42704": // undefined_object: the catalogs had slot and publication a moment ago
		return c.publicationTooNew(err)
	}
	return err
}
