package wal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

const (
	fakeSlot       = "outbox_slot"
	walsenderPID   = 4711
	walsenderBegan = "1700000000.000001"
	slotConfirmed  = 0x1000
	serverWALEnd   = 0x9000
)

// fakeServer answers over net.Pipe what a test wants it to. A pipe holds no
// bytes, so a client that does not read stops the server's writes at once.
type fakeServer struct {
	t *testing.T
	// answers is asked first for each query of the preflight.
	answers map[string]answer
	// then replaces answers that were given once.
	then map[string]answer
	// admit is called before a connection is let in, numbered from 0.
	admit func(number int)
	// look says how a short look at the server ends.
	look func() lookResult
	// started is closed once streaming began.
	started chan struct{}
	// again is closed once another connection holds the slot.
	again chan struct{}
	// previous and unreadable are what the client remembers.
	previous   *Identity
	unreadable *StopError

	mu      sync.Mutex
	startup map[string]string // of the replication connection
	queries []string
	looks   []time.Time
	stream  *walsender
	held    *walsender // of the connection that holds the slot again
	dialed  int
	asked   int // how many wanted to be let in
	closed  sync.WaitGroup
	reads   atomic.Int64 // of the sockets, by the client
	open    atomic.Int64 // sockets that the client has not closed
}

// countingConn counts for the client's side.
type countingConn struct {
	net.Conn
	reads, open *atomic.Int64
	once        sync.Once
}

func (c *countingConn) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

func (c *countingConn) Read(p []byte) (int, error) {
	c.reads.Add(1)
	return c.Conn.Read(p)
}

type answer struct {
	rows [][]string
	err  *pgproto3.ErrorResponse
	none bool // the question is heard, and that is all
}

// lookResult is what the second connection finds.
type lookResult struct {
	refused *pgproto3.ErrorResponse
	dialErr error
	holder  string // active_pid, empty for NULL
	began   string // the holder's backend_start; empty: that of walsenderPID
	gone    bool
	hangs   bool // says nothing
}

var (
	lookAlive   = lookResult{holder: fmt.Sprint(walsenderPID)}
	unreachable = lookResult{dialErr: errors.New("no route to host")}
)

func newFakeServer(t *testing.T) *fakeServer {
	s := &fakeServer{t: t, answers: map[string]answer{}, started: make(chan struct{}), again: make(chan struct{}), look: func() lookResult { return lookAlive }}
	s.setSlot(map[string]string{})
	s.answers["'transaction_timeout'"] = answer{}
	s.answers["IDENTIFY_SYSTEM"] = answer{rows: [][]string{{"7000000000000000001", "1", "0/9000", "shop"}}}
	s.answers["pg_publication p WHERE pubname"] = answer{rows: [][]string{{`{"row":{"pubinsert":true,"pubviaroot":false},"oid":"500","xmin":"700"}`}}}
	s.answers["pg_publication_tables"] = answer{rows: [][]string{{`{"schemaname":"app","tablename":"outbox","oid":1,"attnames":["id","payload","note"],"rowfilter":null}`}}}
	s.answers["pg_partition_tree"] = answer{rows: [][]string{{
		`{"schema":"app","name":"outbox","oid":1,"tree":[1],"leaves":[{"name":"app.outbox","persistence":"p","ancestors":[1]}],"columns":["id","payload","note"]}`}}}
	s.answers["CASE c.relkind"] = answer{}
	s.answers["pg_publication_rel"] = answer{rows: [][]string{{`"600:701"`}}}
	s.answers["pg_publication_namespace') IS NOT NULL"] = answer{rows: [][]string{{"true"}}}
	s.answers["pg_publication_namespace p"] = answer{}
	s.answers["pg_catalog.pg_backend_pid()"] = answer{rows: [][]string{{fmt.Sprintf(`{"pid":%d,"began":%q}`, walsenderPID, walsenderBegan)}}}
	return s
}

// setSlot changes fields of the slot's row; values are JSON.
func (s *fakeServer) setSlot(change map[string]string) {
	fields := map[string]string{
		"plugin": `"pgoutput"`, "slot_type": `"logical"`, "database": `"shop"`, "active": "false", "active_pid": "null",
		"restart_lsn": `"0/800"`, "confirmed_flush_lsn": `"0/1000"`, "wal_status": `"reserved"`, "two_phase": "false", "invalidation_reason": "null",
	}
	var row []string
	for name, value := range fields {
		if changed, ok := change[name]; ok {
			value = changed
		}
		row = append(row, fmt.Sprintf("%q:%s", name, value))
	}
	s.answers["pg_replication_slots s"] = answer{rows: [][]string{{"{" + strings.Join(row, ",") + "}"}}}
}

// config reaches the fake server. Its URL overrides nothing.
func (s *fakeServer) config() Config {
	return Config{
		Previous: s.previous, Unreadable: s.unreadable,
		Slot: fakeSlot, Publication: `Out"box`, Tables: []Table{{"app", "outbox"}}, Columns: []string{"id", "payload"},
		Connect: func(context.Context) (*ConnConfig, error) {
			return s.connConfig("postgres://cdcpub@fake/shop?sslmode=disable")
		},
	}
}

func (s *fakeServer) connConfig(url string) (*ConnConfig, error) {
	config, err := pgconn.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.LookupFunc = func(context.Context, string) ([]string, error) { return []string{"192.0.2.1"}, nil }
	config.DialFunc = func(context.Context, string, string) (net.Conn, error) { return s.dial() }
	return config, nil
}

func (s *fakeServer) dial() (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dialed++
	look := lookResult{}
	if s.dialed > 1 {
		s.looks = append(s.looks, time.Now())
		if look = s.look(); look.dialErr != nil {
			return nil, look.dialErr
		}
	}
	client, server := net.Pipe()
	s.closed.Add(1)
	go func() {
		defer s.closed.Done()
		defer server.Close()
		s.serve(server, look)
	}()
	s.open.Add(1)
	return &countingConn{Conn: client, reads: &s.reads, open: &s.open}, nil
}

// serve is one server process. It ends when the client closes.
func (s *fakeServer) serve(conn net.Conn, look lookResult) {
	backend := pgproto3.NewBackend(conn, conn)
	first, err := backend.ReceiveStartupMessage()
	if err != nil {
		return
	}
	if look.hangs {
		_, _ = io.Copy(io.Discard, conn)
		return
	}
	if _, ok := first.(*pgproto3.SSLRequest); ok {
		_, _ = conn.Write([]byte("N"))
		if first, err = backend.ReceiveStartupMessage(); err != nil {
			return
		}
	}
	startup, ok := first.(*pgproto3.StartupMessage)
	if !ok {
		return // a cancel request
	}
	s.mu.Lock()
	number := s.asked
	s.asked++
	s.mu.Unlock()
	if s.admit != nil {
		s.admit(number)
	}
	replication := startup.Parameters["replication"] == "database"
	if look.refused != nil {
		reply(backend, look.refused)
		return
	}
	reply(backend, &pgproto3.AuthenticationOk{}, &pgproto3.BackendKeyData{ProcessID: walsenderPID, SecretKey: []byte{1, 2, 3, 4}}, &pgproto3.ReadyForQuery{TxStatus: 'I'})
	if replication {
		s.mu.Lock()
		s.startup = startup.Parameters
		s.mu.Unlock()
	}
	for {
		message, err := backend.Receive()
		if err != nil {
			return
		}
		switch message := message.(type) {
		case *pgproto3.Terminate:
			return
		case *pgproto3.Query:
			if strings.Contains(message.String, "s.active_pid") {
				table(backend, look.rows())
			} else if s.query(conn, backend, message.String) {
				return
			}
		}
	}
}

// query answers one query; true means that the stream began and has ended.
func (s *fakeServer) query(conn net.Conn, backend *pgproto3.Backend, sql string) bool {
	s.mu.Lock()
	s.queries = append(s.queries, sql)
	var found *answer
	for part, a := range s.answers {
		if strings.Contains(sql, part) {
			found = &a
			if next, ok := s.then[part]; ok {
				s.answers[part] = next
			}
		}
	}
	s.mu.Unlock()
	switch {
	case found != nil && found.none:
	case found != nil && found.err != nil:
		reply(backend, found.err, &pgproto3.ReadyForQuery{TxStatus: 'I'})
	case strings.HasPrefix(sql, "START_REPLICATION"):
		sender := &walsender{conn: conn, backend: backend, gone: make(chan struct{})}
		s.mu.Lock()
		began := s.started
		if s.stream == nil {
			s.stream = sender
		} else {
			s.held, began = sender, s.again
		}
		s.mu.Unlock()
		reply(backend, &pgproto3.CopyBothResponse{})
		close(began)
		sender.listen()
		return true
	case found != nil:
		table(backend, found.rows)
	default:
		s.t.Errorf("unexpected query %q", sql)
	}
	return false
}

func (s *fakeServer) lookTimes() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Time(nil), s.looks...)
}

// looksAre changes how connections beside the stream end from now on.
func (s *fakeServer) looksAre(look func() lookResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look = look
}

func (s *fakeServer) lastQuery() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queries[len(s.queries)-1]
}

func reply(backend *pgproto3.Backend, messages ...pgproto3.BackendMessage) {
	for _, m := range messages {
		backend.Send(m)
	}
	_ = backend.Flush()
}

func table(backend *pgproto3.Backend, rows [][]string) {
	width := 1
	if len(rows) > 0 {
		width = len(rows[0])
	}
	fields := make([]pgproto3.FieldDescription, width)
	for i := range fields {
		fields[i] = pgproto3.FieldDescription{Name: fmt.Append(nil, "c", i), DataTypeOID: 25, DataTypeSize: -1, TypeModifier: -1}
	}
	messages := []pgproto3.BackendMessage{&pgproto3.RowDescription{Fields: fields}}
	for _, row := range rows {
		data := &pgproto3.DataRow{}
		for _, value := range row {
			data.Values = append(data.Values, []byte(value))
		}
		messages = append(messages, data)
	}
	reply(backend, append(messages, &pgproto3.CommandComplete{CommandTag: []byte("SELECT")}, &pgproto3.ReadyForQuery{TxStatus: 'I'})...)
}

// rows is what a look is told.
func (l lookResult) rows() [][]string {
	switch {
	case l.gone:
		return nil
	case l.holder == "":
		return [][]string{{`{"pid":null,"began":null}`}}
	}
	return [][]string{{fmt.Sprintf(`{"pid":%s,"began":%q}`, l.holder, cmp.Or(l.began, walsenderBegan))}}
}
