package scenarios

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

var shared harness.Shared

func TestMain(m *testing.M) {
	shared.AtEnd(func() error { printVerdicts(); return nil })
	harness.Main(m, &shared)
}

// patience bounds every wait of a scenario. It is long: a slow machine is no
// failure, and nothing waits longer than it must.
const patience = 120 * time.Second

// options say how a stand differs from the usual one.
type options struct {
	postgres *pgserver.Server // nil: the shared server
	kafka    *harness.Cluster // nil: the shared cluster
	binary   string           // "": the shared build, with the race detector
	// partitions of the one topic; 0 means 3.
	partitions int
	replicas   int
	topic      map[string]string // its configuration
	// brokers for cdcpub; nil: the cluster's.
	brokers []string
	// address of PostgreSQL for cdcpub as host:port; "": the server's own.
	address string
	// sections holds further lines of the configuration file, indented by two
	// spaces: {"kafka": "  linger: 0s\n"}; "" holds lines of the top level.
	sections map[string]string
	// unprepared leaves init to the scenario.
	unprepared bool
	// patience for waits; 0 means the usual.
	patience time.Duration
}

// stand is one publisher's world: a database and a topic of its own, the
// oracle of its outbox, and what was seen while it worked.
type stand struct {
	t       testing.TB
	ctx     context.Context
	options options
	pg      *pgserver.Server
	kafka   *harness.Cluster
	url     string // of the database
	slot    string
	topic   string
	oracle  *harness.Oracle
	sql     *pgx.Conn
	next    int // number of the next event of load

	started  int // processes
	logs     []*harness.Process
	restarts []verify.Sample
	sampler  sampler
	rows     []verify.Row // of the history, as far as it was read
}

const aggregates = 50

func newStand(t testing.TB, o options) *stand {
	t.Helper()
	s := &stand{t: t, options: o, pg: o.postgres, kafka: o.kafka}
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	t.Cleanup(cancel)
	s.ctx = ctx
	if s.pg == nil {
		s.pg = shared.Postgres(t, "")
	}
	if s.kafka == nil {
		s.kafka = shared.Kafka(t, harness.KafkaOptions{})
	}
	if s.options.patience == 0 {
		s.options.patience = patience
	}
	if s.options.binary == "" {
		s.options.binary = shared.Binary(t, harness.BuildOptions{Race: true})
	}
	database := harness.Database(t, s.pg)
	s.url, s.slot = s.pg.URL(database), database
	s.topic = fmt.Sprintf("scenario.%s.order", database)
	partitions, replicas := max(o.partitions, 3), max(o.replicas, 1)
	if o.partitions > 0 {
		partitions = o.partitions
	}
	s.options.partitions = partitions
	s.no(s.kafka.CreateTopic(ctx, s.topic, partitions, replicas, o.topic))
	if !o.unprepared {
		s.prepare()
	}
	return s
}

// prepare runs `cdcpub init` and creates the oracle, before any load.
func (s *stand) prepare() {
	s.t.Helper()
	p := s.command("init", "-c", "{config}")
	if code, err := p.Wait(s.ctx); code != 0 || err != nil {
		s.t.Fatalf("cdcpub init: exit %d %v\n%s", code, err, p.Stderr())
	}
	s.oracle = harness.NewOracle(s.t, s.url, harness.OracleOptions{Tables: []string{"public.outbox"}})
	s.sql = s.connect()
	s.sampler.begin(s)
}

// config is the configuration file.
func (s *stand) config() string {
	url := s.url
	if s.options.address != "" {
		url = strings.Replace(url, fmt.Sprintf("127.0.0.1:%d", s.pg.Port()), s.options.address, 1)
	}
	brokers := s.options.brokers
	if brokers == nil {
		brokers = s.kafka.Brokers()
	}
	extra := s.options.sections
	return fmt.Sprintf("postgres:\n  url: %s\n  slot: %s\n  publication: %s\n%s", url, s.slot, s.slot, extra["postgres"]) +
		"outbox:\n  tables: [public.outbox]\n" + extra["outbox"] +
		fmt.Sprintf("kafka:\n  brokers: [%s]\n  topic: scenario.%s.{aggregate_type}\n%s", strings.Join(brokers, ", "), s.slot, extra["kafka"]) +
		"http:\n  listen: off\n" + extra[""]
}

// no fails the scenario on an error that the scenario did not provoke.
func (s *stand) no(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stand) command(args ...string) *harness.Process {
	return harness.StartProcess(s.t, harness.ProcessOptions{Binary: s.options.binary, Args: args, Config: s.config()})
}

// run starts `cdcpub run` and waits until it reads the slot.
func (s *stand) run() *harness.Process {
	s.t.Helper()
	p := s.launch()
	s.awaitLog(p, "resumed")
	return p
}

// launch starts `cdcpub run` and does not wait.
func (s *stand) launch() *harness.Process {
	s.started++
	p := s.command("run", "-c", "{config}")
	s.logs = append(s.logs, p)
	return p
}

func (s *stand) awaitLog(p *harness.Process, event string) harness.LogLine {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, s.options.patience)
	defer cancel()
	line, err := p.WaitForLog(ctx, event)
	if err != nil {
		s.t.Fatalf("%v\n%s", err, p.Stderr())
	}
	return line
}

// exit waits for the end of the process and returns its exit code.
func (s *stand) exit(p *harness.Process) int {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, s.options.patience)
	defer cancel()
	code, err := p.Wait(ctx)
	if err != nil {
		s.t.Fatalf("the process does not end: %v\n%s", err, p.Stderr())
	}
	return code
}

// stop ends the process as a supervisor does and expects a clean end.
func (s *stand) stop(p *harness.Process) {
	s.t.Helper()
	s.no(p.Signal(syscall.SIGTERM))
	if code := s.exit(p); code != 0 {
		s.t.Fatalf("exit %d after SIGTERM\n%s", code, p.Stderr())
	}
}

// betweenRuns notes the slot's position and the topic's end while no publisher
// runs: nothing that was confirmed by now may be sent again.
func (s *stand) betweenRuns() {
	s.t.Helper()
	sample, err := s.sample(s.ctx, s.sql)
	s.no(err)
	s.restarts = append(s.restarts, sample)
}

// sessions counts the replication connections of all processes so far.
func (s *stand) sessions() int {
	n := 0
	for _, p := range s.logs {
		for _, line := range p.Log() {
			if line.Event() == "resumed" {
				n++
			}
		}
	}
	return n
}

func (s *stand) connect() *pgx.Conn {
	s.t.Helper()
	conn, err := pgx.Connect(s.ctx, s.url)
	s.no(err)
	s.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (s *stand) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.sql.Exec(s.ctx, sql, args...); err != nil {
		s.t.Fatalf("%v\n%s", err, sql)
	}
}

// load writes transactions of the given number of rows, one after the other.
// Every row goes to the next aggregate in turn, with its next version.
func (s *stand) load(transactions, rows int) {
	s.t.Helper()
	s.exec(fmt.Sprintf(`DO $$ BEGIN FOR t IN 0..%d LOOP
		INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type, payload)
		SELECT 'order', 'o-' || i %% %d, i / %d, 'OrderChanged', jsonb_build_object('number', i, 'text', repeat('x', 100))
		FROM generate_series(%d + t * %d, %d + (t + 1) * %d - 1) i;
		COMMIT; END LOOP; END $$`, transactions-1, aggregates, aggregates, s.next, rows, s.next, rows))
	s.next += transactions * rows
}

// delivered waits until everything written so far is confirmed.
func (s *stand) delivered() {
	s.t.Helper()
	var target pglogrepl.LSN
	s.no(s.sql.QueryRow(s.ctx, "SELECT pg_current_wal_lsn()").Scan(&target))
	s.until("everything up to "+target.String()+" is confirmed", func() bool {
		lsn, err := harness.ConfirmedFlushLSN(s.ctx, s.url, s.slot)
		return err == nil && lsn >= target
	})
}

// arrived waits until the consumer has n records.
func (s *stand) arrived(consumer *harness.Consumer, n int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, s.options.patience)
	defer cancel()
	if _, err := consumer.WaitN(ctx, n); err != nil {
		s.t.Fatalf("%v%s", err, s.lastLines())
	}
}

// until waits for a condition that only a look can tell.
func (s *stand) until(what string, done func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, s.options.patience)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			s.t.Fatalf("waited in vain until %s%s", what, s.lastLines())
		}
	}
}

func (s *stand) lastLines() string {
	if len(s.logs) == 0 {
		return ""
	}
	return "\n" + s.logs[len(s.logs)-1].Stderr()
}

// sample reads the slot's position first and the topic's end afterwards.
func (s *stand) sample(ctx context.Context, conn *pgx.Conn) (verify.Sample, error) {
	var sample verify.Sample
	err := conn.QueryRow(ctx, "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = $1", s.slot).Scan(&sample.Confirmed)
	if err != nil {
		return sample, err
	}
	sample.End, err = harness.EndOffsets(ctx, s.kafka.Direct(), s.topic)
	return sample, err
}

// sampler takes samples in the background while servers let it.
type sampler struct {
	mu      sync.Mutex
	samples []verify.Sample
}

const maxSamples = 300

func (m *sampler) begin(s *stand) {
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		for m.count() < maxSamples {
			select {
			case <-ticker.C:
				m.take(ctx, s)
			case <-ctx.Done():
				return
			}
		}
	}()
	s.t.Cleanup(func() { cancel(); <-done })
}

// take adds a sample. A server that is down has nothing to tell.
func (m *sampler) take(ctx context.Context, s *stand) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return
	}
	defer conn.Close(ctx)
	if sample, err := s.sample(ctx, conn); err == nil {
		m.mu.Lock()
		m.samples = append(m.samples, sample)
		m.mu.Unlock()
	}
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

// judge compares the topic with the history and returns the verdict. adjust,
// if not nil, changes what is expected.
func (s *stand) judge(adjust func(*verify.Options)) verify.Report {
	s.t.Helper()
	more, err := s.oracle.Read(s.ctx)
	s.no(err)
	s.rows = append(s.rows, more...)
	opts := verify.Options{
		Partitions: map[string]int32{s.topic: int32(s.options.partitions)},
		Expect:     verify.Expectation{Topic: func(verify.Row) string { return s.topic }},
		Rewinds:    max(s.sessions()-1, 0),
		Confirmed:  s.sampler.taken(),
		Restarts:   s.restarts,
	}
	if adjust != nil {
		adjust(&opts)
	}
	checker := verify.NewChecker(s.rows, opts)
	s.no(harness.ReadEach(s.ctx, s.kafka.Direct(), []string{s.topic}, func(r verify.Record) error {
		checker.Add(r)
		return nil
	}))
	return checker.Report()
}

// check is judge for scenarios in which every guarantee must hold.
func (s *stand) check(adjust func(*verify.Options)) verify.Report {
	s.t.Helper()
	report := s.judge(adjust)
	record(s.t.Name(), report)
	if !report.OK() {
		s.t.Fatalf("the guarantees do not hold:\n%s", report.Table())
	}
	return report
}
