package bench

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/twmb/franz-go/pkg/kgo"
)

// warmUp is written before the part that counts, so that no subject is measured
// while it starts, or its JVM compiles.
const warmUp = 10 // seconds

// steadyRounds is the most rounds of a steady load: one is long, and has
// thousands of events to take percentiles of.
const steadyRounds = 2

// measureSteady lets each subject follow the same rate of single-row
// transactions.
func measureSteady(b *testing.B, s *stand, l load) []result {
	subjects := []string{cdcpub}
	if *earlier != "" {
		subjects = append(subjects, cdcpubBefore)
	}
	if l.jvm && *withJVM {
		subjects = append(subjects, debeziumWarm)
	}
	subjects = chosen(subjects)
	var results []result
	for round := range min(*rounds, steadyRounds) {
		for i, subject := range subjects {
			slot := fmt.Sprintf("%s%d_%d_%d", l.Letter, l.Rate, round, i)
			k := s.newBacklog(b, l, []string{slot})
			st := &steady{stand: s, backlog: k, place: place{slot, topics{"bench." + slot, l.Topics, l.Partitions}}}
			r := st.measure(b, subject)
			r.Load, r.Subject, r.Round = l.Name, subject, round
			results = append(results, r)
			b.Log(r)
			k.release(b)
		}
	}
	return results
}

type steady struct {
	*stand
	*backlog
	place

	// sent is when the writer of event i was about to send COMMIT, committed when
	// it had the answer, seen when a poll returned the record; all in nanoseconds
	// after epoch.
	epoch                 time.Time
	began                 time.Time // of the writers
	sent, committed, seen []atomic.Int64
	left                  atomic.Int64 // records that were not seen yet
	arrived               chan struct{}
}

func (s *steady) measure(b *testing.B, subject string) result {
	rate := s.load.Rate
	total := rate * (warmUp + s.load.Seconds)
	s.epoch, s.arrived = time.Now(), make(chan struct{})
	s.sent, s.committed, s.seen = make([]atomic.Int64, total), make([]atomic.Int64, total), make([]atomic.Int64, total)
	s.left.Store(int64(total))
	s.create(b, s.topics)
	defer s.remove(b, s.topics)
	stopConsumer := s.consume(b)
	defer stopConsumer()

	var r running
	switch subject {
	case cdcpub:
		r = s.startCDCPub(b, s.backlog, s.place, s.binary, s.kafka.Brokers()[0])
	case cdcpubBefore:
		r = s.startCDCPub(b, s.backlog, s.place, *earlier, s.kafka.Brokers()[0])
	default:
		r = s.startConnect(b, s.backlog, s.place, true)
	}
	defer r.stop(b)
	s.untilReading(b, r)
	sender := followWalsender(b, s.url, s.slot)
	s.began = time.Now()
	var m result
	var writers sync.WaitGroup
	failed := make(chan error, s.writers())
	for w := range s.writers() {
		writers.Go(func() { failed <- s.write(b.Context(), w) })
	}
	time.Sleep(warmUp * time.Second)
	used, served := cpuOf(r.pid()), cpuOf(s.kafka.PID(0))
	allocated := r.allocations()
	writers.Wait()
	m.Seconds = time.Since(s.began).Seconds() - warmUp
	m.Subjects, m.Broker, m.PeakRSS = (cpuOf(r.pid()) - used).Seconds(), (cpuOf(s.kafka.PID(0)) - served).Seconds(), peakOf(r.pid())
	m.Allocations = r.allocations() - allocated
	m.Walsender = sender.end().Seconds()
	for range s.writers() {
		if err := <-failed; err != nil {
			b.Fatal(err)
		}
	}
	select {
	case <-s.arrived:
	case <-time.After(time.Minute):
		b.Fatalf("%d of %d records have not arrived", s.left.Load(), total)
	}
	m.Rows, m.Payload = rate*s.load.Seconds, s.load.Payload
	m.Latency, m.Commit = s.latencies(s.seen, rate*warmUp), s.latencies(s.committed, rate*warmUp)
	return m
}

// untilReading waits until the subject holds the slot.
func (s *steady) untilReading(b *testing.B, r running) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for active := false; !active; <-ticker.C {
		if err := r.failed(); err != nil {
			b.Fatal(err)
		}
		if err := s.sql.QueryRow(b.Context(), "SELECT active FROM pg_replication_slots WHERE slot_name = $1", s.slot).Scan(&active); err != nil {
			b.Fatal(err)
		}
	}
}

// writers is enough of them for the rate on a disk that needs some milliseconds
// for a commit.
func (s *steady) writers() int { return max(4, s.load.Rate/250) }

// write commits every writers()th event at its time, or as soon as it can.
func (s *steady) write(ctx context.Context, writer int) error {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	const insert = `INSERT INTO outbox (event_id, aggregate_type, aggregate_id, aggregate_version, event_type, payload)
		VALUES ($1, 'type0', $2, $3, 'OrderChanged', jsonb_build_object('number', $3::bigint, 'note', $4::text))`
	note := strings.Repeat("x", s.load.Payload)
	interval := time.Second / time.Duration(s.load.Rate)
	for n := writer; n < len(s.sent); n += s.writers() {
		if early := time.Until(s.began.Add(time.Duration(n) * interval)); early > 0 {
			time.Sleep(early)
		}
		var batch pgx.Batch
		batch.Queue("BEGIN")
		batch.Queue(insert, eventID(n), fmt.Sprintf("order-%d", n%s.load.Aggregates), n, note)
		if err := conn.SendBatch(ctx, &batch).Close(); err != nil {
			return err
		}
		s.sent[n].Store(int64(time.Since(s.epoch)))
		if _, err := conn.Exec(ctx, "COMMIT"); err != nil {
			return err
		}
		s.committed[n].Store(int64(time.Since(s.epoch)))
	}
	return nil
}

// eventID is a UUID that carries the number of the event.
func eventID(n int) pgtype.UUID {
	id := pgtype.UUID{Valid: true}
	binary.BigEndian.PutUint64(id.Bytes[8:], uint64(n))
	return id
}

func numberOf(id []byte) (int, error) {
	raw, err := hex.DecodeString(strings.ReplaceAll(string(id), "-", ""))
	if err != nil || len(raw) != 16 {
		return 0, fmt.Errorf("event id %q", id)
	}
	return int(binary.BigEndian.Uint64(raw[8:])), nil
}

// consume notes when each record comes.
func (s *steady) consume(b *testing.B) (stop func()) {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.kafka.Brokers()...), kgo.ConsumeTopics(s.topics.name(0)),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMinBytes(1))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			records := client.PollFetches(ctx).Records()
			now := int64(time.Since(s.epoch))
			for _, record := range records {
				for _, h := range record.Headers {
					if h.Key != "id" {
						continue
					}
					n, err := numberOf(h.Value)
					if err != nil || n >= len(s.seen) {
						b.Errorf("a record that nobody wrote: %v", err)
						return
					}
					if s.seen[n].CompareAndSwap(0, now) && s.left.Add(-1) == 0 {
						close(s.arrived)
					}
				}
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
		client.Close()
	}
}

// latencies are those of the events from number first on, until they were there.
func (s *steady) latencies(there []atomic.Int64, first int) *latency {
	var all []time.Duration
	for n := first; n < len(s.sent); n++ {
		all = append(all, time.Duration(there[n].Load()-s.sent[n].Load()))
	}
	slices.Sort(all)
	return &latency{P50: percentile(all, 0.5), P99: percentile(all, 0.99), P999: percentile(all, 0.999), Max: percentile(all, 1)}
}

// percentile is the smallest value that a share of the sorted ones does not
// exceed, in milliseconds.
func percentile(sorted []time.Duration, share float64) float64 {
	i := int(share*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)].Seconds() * 1000
}
