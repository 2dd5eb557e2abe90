package wal

import (
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// receive reads one message and decodes it into the batch.
func (s *Stream) receive() error {
	message, err := s.link.receive()
	if err != nil {
		return s.config.explain(err) // a FATAL ErrorResponse comes as an error
	}
	switch message := message.(type) {
	case *pgproto3.CopyData:
		return s.copyData(message.Data)
	case *pgproto3.ErrorResponse:
		return s.unreadable(pgconn.ErrorResponseToPgError(message))
	case *pgproto3.NoticeResponse:
		return s.notice(message)
	case *pgproto3.ParameterStatus:
		return nil
	case *pgproto3.CopyDone, *pgproto3.CommandComplete:
		return ErrServerEnded
	default:
		return &MalformedError{LSN: s.received, Cause: fmt.Errorf("unexpected %T within the replication stream", message)}
	}
}

// unreadable explains an error that the server meets while it decodes.
func (s *Stream) unreadable(refused *pgconn.PgError) error {
	switch refused.Code {
	case "22021", "22P05": // character_not_in_repertoire, untranslatable_character
		where := ""
		if open := s.decoder.open; open != 0 {
			where = fmt.Sprintf(" in the transaction committed at LSN %s", open)
		}
		stop := s.config.stop(RowUnreadable, refused,
			"the row is in the WAL as it is: give its transaction up knowingly, see README, 'A row that cannot be published', in a session with client_encoding = SQL_ASCII, which shows it unconverted; then keep such characters out of the outbox, or move the database to UTF8",
			"PostgreSQL cannot convert a text%s to UTF-8, so that slot %s cannot be decoded further (%s); what was committed before is delivered and confirmed, nothing behind that text is sent", where, s.config.Slot, refused.Where)
		stop.CommitLSN = s.decoder.open
		return stop
	}
	return s.config.explain(refused)
}

// copyData handles XLogData and primary keepalives.
func (s *Stream) copyData(data []byte) error {
	in := reader{rest: data}
	switch kind := in.byte(); kind {
	case 'w':
		start := in.lsn()
		in.uint64() // the server's current end of WAL
		in.uint64() // its clock
		if in.err != nil {
			return &MalformedError{LSN: start, Type: kind, Cause: in.err}
		}
		s.stall.Store(nil)
		if err := s.decoder.Decode(start, in.rest, s.batch); err != nil {
			return err
		}
		s.receivedUpTo(start)
		if known := s.config.Unreadable; known != nil && s.decoder.InTransaction() && s.decoder.open == known.CommitLSN {
			return known
		}
	case 'k':
		end := in.lsn()
		in.uint64()
		reply := in.byte()
		if in.end(); in.err != nil {
			return &MalformedError{LSN: end, Type: kind, Cause: in.err}
		}
		if end > s.received {
			s.stall.Store(nil)
		}
		s.receivedUpTo(end)
		if reply == 1 {
			s.pacer.replyRequested()
		}
		// Inside a transaction the position says nothing that may be confirmed.
		if !s.decoder.InTransaction() {
			s.batch.keepalive(end)
		}
	default:
		return &MalformedError{LSN: s.received, Type: kind, Cause: fmt.Errorf("unknown replication message")}
	}
	return nil
}

// receivedUpTo keeps the maximum: relations carry LSN 0, and a later
// transaction may begin at a lower LSN than an earlier one ended.
func (s *Stream) receivedUpTo(lsn pglogrepl.LSN) { s.received = max(s.received, lsn) }

// notice handles warnings that mean more than they say. The Routine decides,
// never the text: one SQLSTATE serves several of them.
func (s *Stream) notice(n *pgproto3.NoticeResponse) error {
	switch n.Routine {
	case "LoadPublications", "pgoutput_load_publications":
		return s.config.publicationTooNew(errors.New(n.Message))
	case "StandbySlotsHaveCaughtup":
		if s.stall.Load() == nil {
			s.stall.Store(&Stall{Since: time.Now(), Cause: "PostgreSQL waits for a standby of synchronized_standby_slots: " + n.Message + " " + n.Detail})
		}
	}
	return nil
}
