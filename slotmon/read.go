package slotmon

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Question says what a sample should hold besides the slots.
type Question struct {
	// Expected, if set, names the publication to look at. It is looked at only
	// over a connection to Expected.Database, since publications belong to a
	// database.
	Expected *Expected
	// Volume says how the volume of pg_wal is measured.
	Volume VolumeSource
}

// Read takes a sample. It needs no right at all; what the role may not see is
// named in Sample.Unseen.
//
// It asks in two round trips, each a read-only transaction of its own with a
// search_path of its own, and changes nothing on the server. conn is an
// ordinary connection, not one for replication; it must not be in a transaction
// and must be used by nobody else meanwhile. When ctx ends, so does the
// connection. An error means that there is no sample: it wraps the
// driver's, a *pgconn.PgError if the server refused.
func Read(ctx context.Context, conn *pgx.Conn, q Question) (*Sample, error) {
	r := reading{ctx: ctx, conn: conn.PgConn()}
	first, err := r.first(q.Expected)
	if err != nil {
		return nil, fmt.Errorf("take a sample: %w", err)
	}
	second, err := r.second(&first.rights)
	if err != nil {
		return nil, fmt.Errorf("take a sample: %w", err)
	}
	sample := &Sample{
		Taken:        time.Now(),
		Server:       first.server(second),
		Transactions: first.transactions,
		Unseen:       first.unseen(q.Volume.measures() && near(r.conn.Conn())),
		Slots:        make([]Slot, 0, len(first.slots)),
	}
	for i := range first.slots {
		sample.Slots = append(sample.Slots, first.slots[i].slot(first.end))
	}
	if first.published != nil {
		sample.Publication = first.published.compare(q.Expected)
	}
	pgWAL, why := "", ""
	if q.Volume.measures() {
		pgWAL, why = locate(r.conn.Conn(), first.claim(second))
	}
	sample.Server.Volume = q.Volume.Look(ctx, pgWAL, why, sample.Server.WALDirectoryBytes)
	return sample, nil
}

// answers are those of the first round trip.
type answers struct {
	rights       rights
	settings     settings
	transactions []Transaction
	published    *published // nil: not asked for, or another database
	slots        []slotRow
	end          walEnd
}

// first asks for everything that every role may ask for. The end of WAL is
// asked for after the slots, in a statement of its own: whatever a slot had
// confirmed is then before it, however fast somebody writes and confirms. In
// the other order a busy slot seems to be ahead of the WAL in one sample of
// ten; within one statement the order would be the planner's.
func (r reading) first(expected *Expected) (*answers, error) {
	var a answers
	b := r.begin()
	own := ask[rights](b, "its role and version", rightsSQL)
	set := ask[setting](b, "its settings", settingsSQL)
	open := ask[Transaction](b, "the open transactions", transactionsSQL)
	var content *[]published
	if expected != nil {
		content = askPublication(b, r.conn.ParameterStatus("server_version"), expected)
	}
	slots := ask[slotRow](b, "the replication slots", slotsSQL)
	end := ask[walEnd](b, "the end of WAL", walEndSQL)
	if err := b.run(); err != nil {
		return nil, err
	}
	if len(*own) != 1 || len(*end) != 1 {
		return nil, fmt.Errorf("the server gave %d rows for its role and %d for the end of WAL instead of one", len(*own), len(*end))
	}
	a.rights, a.transactions, a.slots, a.end = (*own)[0], *open, *slots, (*end)[0]
	if content != nil && len(*content) > 0 {
		a.published = &(*content)[0]
	}
	var err error
	a.settings, err = newSettings(*set)
	return &a, err
}

// extras are the answers of the second round trip.
type extras struct {
	WALDirectoryBytes *int64 `json:"wal_directory_bytes"`
	SystemID          string `json:"system_id"`
}

// second calls the functions that not every role may call. PostgreSQL checks
// the right when it plans, so they cannot stand in a CASE of the first.
func (r reading) second(may *rights) (*extras, error) {
	var columns []string
	if may.WALDirectory {
		columns = append(columns, "(SELECT coalesce(sum(size), 0)::int8 FROM pg_catalog.pg_ls_waldir()) AS wal_directory_bytes")
	}
	if may.Control {
		columns = append(columns, "(SELECT system_identifier::text FROM pg_catalog.pg_control_system()) AS system_id")
	}
	if len(columns) == 0 {
		return &extras{}, nil
	}
	b := r.begin()
	rows := ask[extras](b, "the size of pg_wal and the system identifier",
		"SELECT pg_catalog.row_to_json(x) FROM (SELECT "+strings.Join(columns, ", ")+") x")
	if err := b.run(); err != nil {
		return nil, err
	}
	if len(*rows) != 1 {
		return nil, fmt.Errorf("the server gave %d rows for its system identifier instead of one", len(*rows))
	}
	return &(*rows)[0], nil
}
