package slotmon_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/cdcpub/cdcpub/slotmon"
)

const busySamples = 60

// busySlot samples while others write, and confirm at once whatever the server
// has sent or has flushed. With the end of WAL read before the slots, one sample
// of ten or so shows a slot ahead of it.
func busySlot(t *testing.T, c *cluster) {
	c.newSlot(t, "streamed", logical("streamed"))
	c.newSlot(t, "advanced", logical("advanced"))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 3)
	writer, mover := connect(t, c.server.URL("shop")), connect(t, c.server.URL("shop"))
	go func() { ended <- repeat(ctx, writer, "INSERT INTO orders VALUES (1)") }()
	go func() {
		ended <- repeat(ctx, mover, "SELECT pg_replication_slot_advance('advanced', pg_current_wal_flush_lsn())")
	}()
	stream := c.hold(t, "streamed", "busy")
	go func() { ended <- follow(ctx, stream) }()

	conn := connect(t, c.server.URL("shop"))
	first := read(t, conn, slotmon.Question{}).FindSlot("streamed")
	var last *slotmon.Slot
	moved := 0
	for range busySamples {
		sample := read(t, conn, slotmon.Question{})
		for _, name := range []string{"streamed", "advanced"} {
			s := sample.FindSlot(name)
			if s == nil || s.ConfirmedLagBytes == nil || s.RetainedBytes == nil {
				t.Fatalf("slot %s: %+v", name, s)
			}
			if *s.ConfirmedLagBytes < 0 || *s.RetainedBytes < 0 {
				t.Errorf("slot %s: WAL ends at %s, confirmed is %s, lag %d", name, sample.Server.WAL, s.ConfirmedFlushLSN, *s.ConfirmedLagBytes)
			}
		}
		if s := sample.FindSlot("streamed"); last != nil && *s.ConfirmedFlushLSN != *last.ConfirmedFlushLSN {
			moved++
		}
		last = sample.FindSlot("streamed")
	}
	stop()
	for range 3 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("a part of the load ended: %v", err)
		}
	}
	if moved < busySamples/10 {
		t.Errorf("the slot moved between %d of %d samples, from %s to %s: the load was none", moved, busySamples, first.ConfirmedFlushLSN, last.ConfirmedFlushLSN)
	}
}

func repeat(ctx context.Context, conn *pgx.Conn, sql string) error {
	for ctx.Err() == nil {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
	}
	return ctx.Err()
}

// follow confirms every position as soon as the server names it.
func follow(ctx context.Context, conn *pgconn.PgConn) error {
	var newest pglogrepl.LSN
	for {
		message, err := conn.ReceiveMessage(ctx)
		if err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		data, ok := message.(*pgproto3.CopyData)
		if !ok {
			return fmt.Errorf("the server sent %+v", message)
		}
		switch data.Data[0] {
		case pglogrepl.PrimaryKeepaliveMessageByteID:
			alive, err := pglogrepl.ParsePrimaryKeepaliveMessage(data.Data[1:])
			if err != nil {
				return err
			}
			newest = max(newest, alive.ServerWALEnd)
		case pglogrepl.XLogDataByteID:
			xlog, err := pglogrepl.ParseXLogData(data.Data[1:])
			if err != nil {
				return err
			}
			newest = max(newest, xlog.ServerWALEnd)
		}
		err = pglogrepl.SendStandbyStatusUpdate(ctx, conn, pglogrepl.StandbyStatusUpdate{
			WALWritePosition: newest, WALFlushPosition: newest, WALApplyPosition: newest, ClientTime: time.Now(), ReplyRequested: true})
		if err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
	}
}
