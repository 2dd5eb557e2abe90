package slotctl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// stream is a walsender that reads a slot. One goroutine uses it.
type stream struct {
	conn     *pgconn.PgConn
	received pglogrepl.LSN
	sent     time.Time // when the last status update went out
	// skipping is set by the notice that rows of a missing publication are
	// skipped.
	skipping bool
}

// event is a pgoutput message, or without one a position up to which the
// server has read its WAL.
type event struct {
	data []byte // valid until the next event
	end  pglogrepl.LSN
}

// statusInterval is how often the server is told that somebody is there, and
// asked how far it is: an idle one says nothing by itself.
const statusInterval = 250 * time.Millisecond

// errOlderThanPublication: the slot's WAL begins before the publication was
// created.
var errOlderThanPublication = errors.New("the slot is older than the publication")

// openStream starts replication at the slot's own position.
func openStream(ctx context.Context, server *pgconn.Config, slot string, publications []string) (*stream, error) {
	s := &stream{}
	config := server.Copy()
	config.RuntimeParams["replication"] = "database"
	config.RuntimeParams["wal_sender_timeout"] = "60s"
	config.RuntimeParams["client_min_messages"] = "notice"
	config.RuntimeParams["statement_timeout"] = "0"
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) {
		// PostgreSQL 18 says so and goes on; others refuse with an error.
		if notice.Code == wrongState && notice.Routine == "LoadPublications" {
			s.skipping = true
		}
	}
	var err error
	if s.conn, err = pgconn.ConnectConfig(ctx, config); err != nil {
		return nil, timely(ctx, err)
	}
	names := make([]string, len(publications))
	for i, name := range publications {
		names[i] = pgx.Identifier{name}.Sanitize()
	}
	// A list of identifiers, within a string literal.
	list := "'" + strings.ReplaceAll(strings.Join(names, ","), "'", "''") + "'"
	err = pglogrepl.StartReplication(ctx, s.conn, slot, 0, pglogrepl.StartReplicationOptions{
		Mode: pglogrepl.LogicalReplication, PluginArgs: []string{"proto_version '1'", "publication_names " + list}})
	if err != nil {
		s.close()
		return nil, timely(ctx, err)
	}
	return s, nil
}

func (s *stream) pid() int { return int(s.conn.PID()) }

// next returns what the server sends next, and meanwhile sends status updates
// that confirm flush; 0 confirms nothing. ctx's cause is the error when it ends.
func (s *stream) next(ctx context.Context, flush pglogrepl.LSN) (event, error) {
	for {
		if time.Since(s.sent) >= statusInterval {
			if err := s.status(flush); err != nil {
				return event{}, err
			}
		}
		patience, cancel := context.WithDeadline(ctx, s.sent.Add(statusInterval))
		message, err := s.conn.ReceiveMessage(patience)
		cancel()
		switch {
		case s.skipping:
			return event{}, errOlderThanPublication
		case ctx.Err() != nil:
			return event{}, context.Cause(ctx)
		case pgconn.Timeout(err):
			continue
		case err != nil:
			return event{}, err
		}
		switch message := message.(type) {
		case *pgproto3.CopyData:
			e, err := s.parse(message.Data)
			if err != nil || e.data != nil || e.end != 0 {
				return e, err
			}
		case *pgproto3.ErrorResponse:
			err := pgconn.ErrorResponseToPgError(message)
			if err.Code == undefinedObject { // the slot was found a moment ago
				return event{}, errOlderThanPublication
			}
			return event{}, err
		case *pgproto3.CopyDone, *pgproto3.CommandComplete:
			return event{}, errors.New("the server ended the stream: it is shutting down")
		}
	}
}

func (s *stream) parse(data []byte) (event, error) {
	if len(data) == 0 {
		return event{}, errors.New("empty replication message")
	}
	switch data[0] {
	case pglogrepl.XLogDataByteID:
		log, err := pglogrepl.ParseXLogData(data[1:])
		if err != nil {
			return event{}, err
		}
		s.received = max(s.received, log.WALStart)
		return event{data: log.WALData}, nil
	case pglogrepl.PrimaryKeepaliveMessageByteID:
		keepalive, err := pglogrepl.ParsePrimaryKeepaliveMessage(data[1:])
		if err != nil {
			return event{}, err
		}
		s.received = max(s.received, keepalive.ServerWALEnd)
		return event{end: keepalive.ServerWALEnd}, nil
	}
	return event{}, fmt.Errorf("unknown replication message %q", data[0])
}

// postgresEpoch is 2000-01-01.
var postgresEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// status sends a standby status update that asks for an answer. A flush
// position of 0 is sent as it is: the slot stays.
func (s *stream) status(flush pglogrepl.LSN) error {
	update := make([]byte, 0, 34)
	update = append(update, pglogrepl.StandbyStatusUpdateByteID)
	for _, lsn := range []pglogrepl.LSN{s.received, flush, flush} {
		update = binary.BigEndian.AppendUint64(update, uint64(lsn))
	}
	update = binary.BigEndian.AppendUint64(update, uint64(time.Since(postgresEpoch).Microseconds()))
	update = append(update, 1)
	encoded, err := (&pgproto3.CopyData{Data: update}).Encode(nil)
	if err != nil {
		return err
	}
	s.sent = time.Now()
	if err := s.conn.Frontend().SendUnbufferedEncodedCopyData(encoded); err != nil {
		return fmt.Errorf("send status update: %w", err)
	}
	return nil
}

// close cuts the connection. The server lets go of the slot when it notices.
func (s *stream) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.conn.Close(ctx)
}

// timely replaces the error of a call that was ended by its context.
func timely(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
