package slots

import (
	"context"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// reader holds a slot and confirms whatever it gets, as a healthy publisher
// without rows would.
type reader struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

// read takes the slot ours, once the walsender of the reader before has noticed
// that it was left.
func (s *stand) read() *reader {
	s.t.Helper()
	s.until("nobody holds the slot", func() bool {
		var free bool
		err := s.sql.QueryRow(s.ctx, "SELECT NOT active FROM pg_replication_slots WHERE slot_name = 'ours'").Scan(&free)
		return err == nil && free
	})
	conn := s.replication()
	args := []string{"proto_version '1'", "publication_names 'cdcpub'"}
	if err := pglogrepl.StartReplication(s.ctx, conn, "ours", 0, pglogrepl.StartReplicationOptions{PluginArgs: args}); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.ctx)
	r := &reader{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		defer conn.Close(context.Background())
		confirmAll(ctx, conn)
	}()
	s.t.Cleanup(r.kill)
	return r
}

func (s *stand) replication() *pgconn.PgConn {
	s.t.Helper()
	conn, err := pgconn.Connect(s.ctx, s.pg.URL("postgres")+"&replication=database&application_name=reader")
	if err != nil {
		s.t.Fatal(err)
	}
	return conn
}

// confirmAll returns when ctx ends or the connection does.
func confirmAll(ctx context.Context, conn *pgconn.PgConn) {
	var at pglogrepl.LSN
	for {
		waiting, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		message, err := conn.ReceiveMessage(waiting)
		cancel()
		if ctx.Err() != nil || err != nil && !pgconn.Timeout(err) {
			return
		}
		if data, ok := message.(*pgproto3.CopyData); ok {
			switch data.Data[0] {
			case pglogrepl.XLogDataByteID:
				x, err := pglogrepl.ParseXLogData(data.Data[1:])
				if err != nil {
					return
				}
				at = max(at, x.ServerWALEnd)
			case pglogrepl.PrimaryKeepaliveMessageByteID:
				k, err := pglogrepl.ParsePrimaryKeepaliveMessage(data.Data[1:])
				if err != nil {
					return
				}
				at = max(at, k.ServerWALEnd)
			}
		}
		if at != 0 {
			if confirm(ctx, conn, at) != nil {
				return
			}
		}
	}
}

func confirm(ctx context.Context, conn *pgconn.PgConn, at pglogrepl.LSN) error {
	return pglogrepl.SendStandbyStatusUpdate(ctx, conn, pglogrepl.StandbyStatusUpdate{
		WALWritePosition: at, WALFlushPosition: at, WALApplyPosition: at,
	})
}

// kill ends the reader as a crash would.
func (r *reader) kill() {
	r.cancel()
	<-r.ended
}

// confirmImpossible confirms a position far beyond the WAL, which the server
// believes.
func (s *stand) confirmImpossible() {
	s.t.Helper()
	conn := s.replication()
	defer conn.Close(context.Background())
	args := []string{"proto_version '1'", "publication_names 'cdcpub'"}
	if err := pglogrepl.StartReplication(s.ctx, conn, "ours", 0, pglogrepl.StartReplicationOptions{PluginArgs: args}); err != nil {
		s.t.Fatal(err)
	}
	if err := confirm(s.ctx, conn, 0xFFFF<<32); err != nil {
		s.t.Fatal(err)
	}
	s.until("the server has believed it", func() bool {
		var ahead bool
		err := s.sql.QueryRow(s.ctx, "SELECT confirmed_flush_lsn = 'FFFF/0' FROM pg_replication_slots WHERE slot_name = 'ours'").Scan(&ahead)
		return err == nil && ahead
	})
}
