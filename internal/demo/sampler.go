package demo

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/internal/witness"
)

// sampleInterval is how often the slot is compared with the topic.
const sampleInterval = 500 * time.Millisecond

// sampler looks again and again at what the slot has confirmed and then at what
// the topic holds: what was confirmed first must be there.
type sampler struct {
	cancel context.CancelFunc
	done   chan struct{}
	// Written by the goroutine of startSampler, read after done is closed.
	samples []verify.Sample
	err     error
}

// startSampler samples until stop. It calls fail at the first error.
func startSampler(ctx context.Context, stage *stage, fail context.CancelCauseFunc) *sampler {
	ctx, cancel := context.WithCancel(ctx)
	s := &sampler{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		if s.err = s.run(ctx, stage); s.err != nil {
			fail(s.err)
		}
	}()
	return s
}

// stop returns the samples. It may be called again.
func (s *sampler) stop() ([]verify.Sample, error) {
	s.cancel()
	<-s.done
	return s.samples, s.err
}

func (s *sampler) run(ctx context.Context, stage *stage) error {
	conn, err := connect(ctx, stage.database.sql)
	if err != nil {
		return unlessDone(ctx, err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	ticker := time.NewTicker(sampleInterval)
	defer ticker.Stop()
	var last pglogrepl.LSN
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
		sample, err := sample(ctx, conn, stage.broker)
		if err != nil {
			return unlessDone(ctx, err)
		}
		// A later sample of the same position says less: topics only grow.
		if sample.Confirmed > last {
			last = sample.Confirmed
			s.samples = append(s.samples, sample)
		}
	}
}

// unlessDone drops the error of a call that the end of ctx broke off.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// sample reads the slot first and the topic afterwards, as verify.Sample asks.
func sample(ctx context.Context, conn *pgx.Conn, b *broker) (verify.Sample, error) {
	position, err := readSlot(ctx, conn)
	if err != nil {
		return verify.Sample{}, err
	}
	end, err := witness.EndOffsets(ctx, b.addresses, b.topic)
	return verify.Sample{Confirmed: position.confirmed, End: end}, err
}

// slotPosition is what the server says about the publisher's slot.
type slotPosition struct {
	confirmed pglogrepl.LSN
	retained  int64 // bytes of WAL from restart_lsn to the current position
}

func readSlot(ctx context.Context, conn *pgx.Conn) (slotPosition, error) {
	const query = `SELECT confirmed_flush_lsn::text, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint
		FROM pg_replication_slots WHERE slot_name = $1`
	var confirmed string
	var position slotPosition
	err := conn.QueryRow(ctx, query, objectName).Scan(&confirmed, &position.retained)
	if err == nil {
		position.confirmed, err = pglogrepl.ParseLSN(confirmed)
	}
	if err != nil {
		return slotPosition{}, fmt.Errorf("read slot %s: %w", objectName, err)
	}
	return position, nil
}

// readerPoll is how often awaitReader looks.
const readerPoll = 10 * time.Millisecond

// awaitReader waits until somebody reads the slot. Otherwise the first
// latencies would tell how long the publisher took to connect. When ctx ends it
// returns the cause.
func awaitReader(ctx context.Context, settings *pgx.ConnConfig) error {
	conn, err := connect(ctx, settings)
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for {
		var active bool
		if err := conn.QueryRow(ctx, "SELECT active FROM pg_replication_slots WHERE slot_name = $1", objectName).Scan(&active); err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		if active {
			return nil
		}
		select {
		case <-time.After(readerPoll):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
