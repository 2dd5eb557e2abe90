package scenarios

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

// sample reads the slot's position first and the topics' ends afterwards, when
// the brokers agree on them.
func (s *stand) sample(ctx context.Context, conn *pgx.Conn) (verify.Sample, error) {
	var sample verify.Sample
	err := conn.QueryRow(ctx, "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = $1", s.slot).Scan(&sample.Confirmed)
	if err != nil {
		return sample, err
	}
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		if sample.End, err = harness.AgreedEndOffsets(ctx, s.brokers.Direct(), s.topics...); err == nil {
			return sample, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return sample, err
		}
	}
}

// sampler takes samples in the background while servers let it.
type sampler struct {
	mu      sync.Mutex
	samples []verify.Sample
}

const (
	maxSamples  = 300
	sampleEvery = 200 * time.Millisecond
)

func (m *sampler) begin(s *stand) {
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for m.count() < maxSamples && ctx.Err() == nil {
			m.watch(ctx, s)
		}
	}()
	s.t.Cleanup(func() { cancel(); <-done })
}

// watch takes samples on one connection until something fails. A server that
// is down has nothing to tell.
func (m *sampler) watch(ctx context.Context, s *stand) {
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	conn, err := pgx.Connect(ctx, s.url)
	if err == nil {
		defer conn.Close(context.Background())
	}
	for m.count() < maxSamples {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if err != nil || m.take(ctx, s, conn) != nil {
			return
		}
	}
}

// take adds a sample.
func (m *sampler) take(ctx context.Context, s *stand, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	sample, err := s.sample(ctx, conn)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.samples = append(m.samples, sample)
	return nil
}

func (m *sampler) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.samples)
}

func (m *sampler) taken() []verify.Sample {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]verify.Sample(nil), m.samples...)
}

// history reads what was committed since the last look, and returns it. It
// becomes part of what is judged.
func (s *stand) history() []verify.Row {
	s.t.Helper()
	before := len(s.rows)
	s.no(s.oracle.Each(s.ctx, func(row verify.Row) error {
		s.rows = append(s.rows, row)
		return nil
	}))
	return s.rows[before:]
}

// judge compares the topics with the history and returns the verdict. adjust,
// if not nil, changes what is expected.
func (s *stand) judge(adjust func(*verify.Options)) verify.Report {
	s.t.Helper()
	s.history()
	opts := verify.Options{
		Partitions: map[string]int32{},
		Expect:     verify.Expectation{Topic: func(verify.Row) string { return s.topic }},
		Rewinds:    max(s.sessions()-1, 0),
		Confirmed:  s.sampler.taken(),
		Restarts:   s.restarts,
	}
	for _, topic := range s.topics {
		opts.Partitions[topic] = int32(s.options.partitions)
	}
	if adjust != nil {
		adjust(&opts)
	}
	checker := verify.NewChecker(s.rows, opts)
	s.no(harness.ReadEach(s.ctx, s.brokers.Direct(), s.topics, func(r verify.Record) error {
		checker.Add(r)
		return nil
	}))
	return checker.Report()
}

// check is judge for scenarios in which every guarantee must hold.
func (s *stand) check(adjust func(*verify.Options)) verify.Report {
	s.t.Helper()
	report := s.judge(adjust)
	record(s.t.Name(), time.Since(s.began), report)
	if !report.OK() {
		s.t.Fatalf("the guarantees do not hold:\n%s", report.Table())
	}
	return report
}
