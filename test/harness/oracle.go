package harness

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/verify"
)

// OracleOptions say what the oracle looks at.
type OracleOptions struct {
	// Tables are the outbox tables as PostgreSQL would quote them:
	// "public.outbox". Of a partitioned table name the leaves.
	Tables []string
	// Columns maps the default column names to those of the tables, where they
	// differ: {"event_id": "id"}.
	Columns map[string]string
	// AllColumns fills Row.Columns. It costs memory.
	AllColumns bool
}

// Oracle tells what was committed to the outbox, independently of cdcpub:
// from a logical slot of its own, by PostgreSQL's test_decoding plugin and
// plain SQL. Create it before the load. Its slot retains WAL and can be lost
// like any other.
type Oracle struct {
	url, slot string
	options   OracleOptions
	tables    map[string]bool
	// last is the end of the newest transaction that was handed out. After a
	// crash a slot may go back; what came before is not told twice.
	last pglogrepl.LSN
}

// NewOracle creates the oracle's slot, which is dropped with the test.
func NewOracle(t testing.TB, url string, o OracleOptions) *Oracle {
	t.Helper()
	oracle := &Oracle{url: url, slot: unique("oracle"), options: o, tables: map[string]bool{}}
	for _, table := range o.Tables {
		oracle.tables[table] = true
	}
	if len(oracle.tables) == 0 {
		t.Fatal("OracleOptions.Tables is empty")
	}
	err := execute(t.Context(), url, "SELECT pg_create_logical_replication_slot('"+oracle.slot+"', 'test_decoding')")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err := execute(ctx, url, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = '"+oracle.slot+"'")
		if err != nil {
			t.Logf("the slot %s stays: %v", oracle.slot, err)
		}
	})
	return oracle
}

// Read returns the rows that were committed since the last Read and up to now,
// in commit order and in row order within a transaction.
func (o *Oracle) Read(ctx context.Context) ([]verify.Row, error) {
	var rows []verify.Row
	err := o.Each(ctx, func(r verify.Row) error {
		rows = append(rows, r)
		return nil
	})
	return rows, err
}

// chunk bounds how many changes the server materialises for one query. It
// never splits a transaction.
const chunk = 20_000

// Each is Read for histories that do not fit into memory; one transaction
// must. After an error the oracle has lost its place: make no further calls.
func (o *Oracle) Each(ctx context.Context, each func(verify.Row) error) error {
	config, err := pgx.ParseConfig(o.url)
	if err != nil {
		return err
	}
	// The same text as a publisher gets, whatever the role's settings are.
	for name, value := range map[string]string{
		"datestyle": "ISO", "timezone": "UTC", "intervalstyle": "postgres",
		"extra_float_digits": "3", "bytea_output": "hex", "client_encoding": "UTF8",
	} {
		config.RuntimeParams[name] = value
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var end string
	if err := conn.QueryRow(ctx, "SELECT pg_current_wal_flush_lsn()::text").Scan(&end); err != nil {
		return err
	}
	for more := true; more; {
		if more, err = o.readChunk(ctx, conn, end, each); err != nil {
			return fmt.Errorf("oracle slot %s: %w", o.slot, err)
		}
	}
	return nil
}

func (o *Oracle) readChunk(ctx context.Context, conn *pgx.Conn, end string, each func(verify.Row) error) (more bool, err error) {
	lines, err := conn.Query(ctx,
		`SELECT lsn::text, data FROM pg_logical_slot_get_changes($1, $2::pg_lsn, $3, 'include-xids', '0', 'include-timestamp', '1')`,
		o.slot, end, chunk)
	if err != nil {
		return false, err
	}
	defer lines.Close()
	var open []verify.Row // rows of the transaction that is being read
	for lines.Next() {
		more = true
		var position, data string
		if err := lines.Scan(&position, &data); err != nil {
			return false, err
		}
		stamp, isCommit := strings.CutPrefix(data, "COMMIT (at ")
		switch {
		case data == "BEGIN":
			open = open[:0]
		case isCommit:
			if err := o.commit(position, strings.TrimSuffix(stamp, ")"), open, each); err != nil {
				return false, err
			}
		default:
			row, ok, err := o.row(data)
			if err != nil {
				return false, err
			}
			if ok {
				open = append(open, row)
			}
		}
	}
	return more, lines.Err()
}

// commit hands out the rows of a transaction. The lsn of a COMMIT line is the
// end of the commit record, which is what a publisher confirms: the server
// sets it from txn->end_lsn (commit_cb_wrapper in logical.c).
func (o *Oracle) commit(position, stamp string, rows []verify.Row, each func(verify.Row) error) error {
	end, err := pglogrepl.ParseLSN(position)
	if err != nil {
		return err
	}
	if end <= o.last {
		return nil
	}
	o.last = end
	at, err := time.Parse("2006-01-02 15:04:05.999999-07", stamp)
	if err != nil {
		return fmt.Errorf("commit time: %w", err)
	}
	for _, row := range rows {
		row.CommitEnd, row.CommitTime = end, at.UTC()
		if err := each(row); err != nil {
			return err
		}
	}
	return nil
}

func (o *Oracle) row(data string) (verify.Row, bool, error) {
	change, ok, err := parseInsert(data)
	if err != nil || !ok || !o.tables[change.table] {
		return verify.Row{}, false, err
	}
	row := verify.Row{
		EventID:       o.text(change, "event_id"),
		AggregateType: o.text(change, "aggregate_type"),
		AggregateID:   o.text(change, "aggregate_id"),
		EventType:     o.text(change, "event_type"),
	}
	if o.options.AllColumns {
		row.Columns = change.columns
	}
	if payload := change.columns[o.column("payload")]; payload != nil {
		row.Payload = []byte(*payload)
	}
	if v := change.columns[o.column("aggregate_version")]; v != nil {
		if row.Version, err = strconv.ParseInt(*v, 10, 64); err != nil {
			return verify.Row{}, false, errors.Join(fmt.Errorf("aggregate version of event %s", row.EventID), err)
		}
	}
	return row, true, nil
}

func (o *Oracle) column(name string) string {
	if other, ok := o.options.Columns[name]; ok {
		return other
	}
	return name
}

// text is a column's value, "" for NULL.
func (o *Oracle) text(change insert, name string) string {
	if v := change.columns[o.column(name)]; v != nil {
		return *v
	}
	return ""
}

// ConfirmedFlushLSN reads a slot's confirmed position.
func ConfirmedFlushLSN(ctx context.Context, url, slot string) (pglogrepl.LSN, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var position *string
	err = conn.QueryRow(ctx, "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = $1", slot).Scan(&position)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, fmt.Errorf("slot %s does not exist", slot)
	case err != nil:
		return 0, err
	case position == nil:
		return 0, fmt.Errorf("slot %s has no confirmed_flush_lsn", slot)
	}
	return pglogrepl.ParseLSN(*position)
}
