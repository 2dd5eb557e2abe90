package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/internal/witness"
)

// evidence is everything that the verdict rests on.
type evidence struct {
	rows       []verify.Row
	records    []verify.Record
	samples    []verify.Sample
	position   slotPosition // after the publisher's end
	topic      string
	partitions int32
	sessions   int
	rolledBack int64

	postgres    string
	interrupted bool
}

// readLimit bounds the wait for records that the broker says it has.
const readLimit = 30 * time.Second

// gather reads the slot, the topic to its end, and the history. The publisher
// has ended.
func (p *performance) gather(ctx context.Context, consumer *witness.Consumer, samples []verify.Sample) (*evidence, error) {
	database, broker := p.stage.database, p.stage.broker
	e := &evidence{topic: broker.topic, partitions: broker.partitions, postgres: database.version}
	conn, err := connect(ctx, database.sql)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	last, err := sample(ctx, conn, broker)
	if err != nil {
		return nil, err
	}
	e.samples = append(samples, last)
	if e.position, err = readSlot(ctx, conn); err != nil {
		return nil, err
	}
	reading, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	if e.records, err = consumer.WaitN(reading, count(last.End)); err != nil {
		return nil, fmt.Errorf("read topic %s to its end: %w", broker.topic, err)
	}
	if e.rows, err = database.oracle.Read(ctx); err != nil {
		return nil, err
	}
	return e, nil
}

// count is how many records there are. The topic was made for this demo, so
// that offsets begin at 0, and its records are not transactional, so that each
// offset is a record.
func count(ends map[verify.TopicPartition]int64) int {
	total := 0
	for _, end := range ends {
		total += int(end)
	}
	return total
}

// judge compares the records with the history.
func (e *evidence) judge(l *ledger) *Summary {
	report := verify.Check(e.rows, e.records, verify.Options{
		Partitions: map[string]int32{e.topic: e.partitions},
		Expect:     verify.Expectation{Topic: func(verify.Row) string { return e.topic }},
		Rewinds:    max(0, e.sessions-1),
		Confirmed:  e.samples,
	})
	unconfirmed := 0
	for _, row := range e.rows {
		if row.CommitEnd > e.position.confirmed {
			unconfirmed++
		}
	}
	return &Summary{
		OK: report.OK(), Interrupted: e.interrupted,
		Events: report.Events, Aggregates: report.Aggregates, Partitions: report.Partitions, Records: report.Records,
		Lost: report.Lost, OutOfOrder: report.OutOfOrder, VersionInverted: report.VersionInverted,
		Repeated: report.Repeated, Foreign: report.Foreign, Altered: report.Altered, WrongPartition: report.WrongPartition,
		ExcessRewinds: report.ExcessRewinds, EarlyConfirmed: report.EarlyConfirmed, ConfirmedSamples: report.ConfirmedSamples,
		RolledBack:   e.rolledBack,
		ConfirmedLSN: e.position.confirmed.String(), Unconfirmed: unconfirmed, RetainedWAL: e.position.retained,
		EventsPerSecond: round(l.throughput()), P50: milliseconds(l.percentile(50)), P99: milliseconds(l.percentile(99)),
		PostgreSQL: e.postgres, Violations: report.Violations,
	}
}
