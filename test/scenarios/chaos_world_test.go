package scenarios

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

// chaosWorld is one run of a schedule. Its goroutine starts processes and
// judges; each fault has a goroutine that begins and ends it.
type chaosWorld struct {
	*stand
	schedule   chaosSchedule
	publishers []*chaosPublisher
	exits      chan *chaosPublisher
	places     map[string]*sync.Mutex

	mu       sync.Mutex
	timeline []string
	active   int      // faults
	calms    []calm   // when no fault was active any more
	samples  []looked // of the slot
	stalls   map[string]bool
	problems []string
}

// chaosPublisher is a process that is started again when it ends, as a
// supervisor would.
type chaosPublisher struct {
	id     int
	link   *harness.Proxy
	listen string

	mu      sync.Mutex
	process *harness.Process
}

// calm is a moment at which the last active fault had ended, and how far the
// WAL was.
type calm struct {
	at      time.Time
	written pglogrepl.LSN
	// disturbed is when the next fault began; zero if none did.
	disturbed time.Time
}

type looked struct {
	at        time.Time
	confirmed pglogrepl.LSN
}

// chaosSections scale the timeouts, so that half a minute is long.
var chaosSections = map[string]string{
	"postgres": "  wal_sender_timeout: 4s\n  status_interval: 1s\n",
	"kafka":    "  request_timeout: 2s\n",
	"":         "window: {records: 2000}\nshutdown_timeout: 3s\n",
}

const chaosWindow = 2000

// chaosOutcome is what a run left for the report.
type chaosOutcome struct {
	schedule chaosSchedule
	report   verify.Report
	sessions int
	// bound of the repeats, 0 when there is none.
	bound    int
	recovery time.Duration // the slowest, of those that no fault disturbed
	stalls   []string
	hash     string
	problems []string
	log      string
}

func (o *chaosOutcome) ok() bool { return o.report.OK() && len(o.problems) == 0 }

// runChaos runs a schedule on servers of its shape.
func runChaos(t testing.TB, schedule chaosSchedule, binary string) *chaosOutcome {
	t.Helper()
	w := newChaosWorld(t, schedule, binary)
	defer func() {
		for _, p := range w.publishers {
			w.no(p.link.Close())
		}
	}()
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	watching.Go(func() { w.watchSlot(ctx) })
	watching.Go(func() { w.watchStatus(ctx) })
	w.sampler.begin(w.stand)

	for _, p := range w.publishers {
		w.start(p)
	}
	load, endLoad := context.WithTimeout(ctx, chaosLoad)
	defer endLoad()
	began := time.Now()
	writing := w.writers(load, 3)
	faults := make(chan error, len(schedule.faults))
	for _, f := range schedule.faults {
		go func() { faults <- w.happen(ctx, began, f) }()
	}
	w.keepRunning(func() bool { return len(faults) == cap(faults) && load.Err() != nil })
	writing.Wait()
	for range schedule.faults {
		if err := <-faults; err != nil {
			w.problem("a fault could not be made: %v", err)
		}
	}
	w.calmDown(ctx)
	w.awaitDelivery()
	w.endPublishers()
	return w.outcome()
}

func newChaosWorld(t testing.TB, schedule chaosSchedule, binary string) *chaosWorld {
	t.Helper()
	pg := shared.Postgres(t, schedule.version, "wal_sender_timeout=4s", "max_wal_size=256MB", "application_name=chaos")
	cluster := shared.Kafka(t, harness.KafkaOptions{Brokers: schedule.brokers, ViaProxy: true})
	o := options{postgres: pg, kafka: cluster, binary: binary, partitions: 4, replicas: schedule.brokers, sections: chaosSections}
	if schedule.brokers == 3 {
		o.topic = map[string]string{"min.insync.replicas": "2"}
	}
	w := &chaosWorld{
		stand: newStand(t, o), schedule: schedule, exits: make(chan *chaosPublisher, 100),
		places: map[string]*sync.Mutex{}, stalls: map[string]bool{},
	}
	w.exec("CREATE TABLE aggregates (id text PRIMARY KEY, version bigint NOT NULL)")
	w.exec("CREATE TABLE noise (text text)")
	for i := range schedule.publishers {
		link, err := harness.NewProxy(fmt.Sprintf("127.0.0.1:%d", pg.Port()))
		w.no(err)
		w.publishers = append(w.publishers, &chaosPublisher{id: i, link: link, listen: w.freeAddress()})
	}
	return w
}

func (w *chaosWorld) start(p *chaosPublisher) {
	w.options.address, w.listen = p.link.Addr(), p.listen
	process := w.launch()
	p.mu.Lock()
	p.process = process
	p.mu.Unlock()
	go func() {
		if _, err := process.Wait(w.ctx); err == nil {
			w.exits <- p
		}
	}()
}

func (w *chaosWorld) process(i int) *harness.Process {
	p := w.publishers[i]
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process
}

func (w *chaosWorld) link(f chaosFault) *harness.Proxy { return w.publishers[f.target].link }

// keepRunning starts what ends, until done.
func (w *chaosWorld) keepRunning(done func() bool) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case p := <-w.exits:
			w.ended(p)
			w.start(p)
		case <-ticker.C:
		case <-w.ctx.Done():
			w.t.Fatalf("the run does not end\n%s", w.log())
		}
	}
}

// ended notes an end. 2 and 3 are wrong at any time: nothing that happens here
// is a matter of configuration.
func (w *chaosWorld) ended(p *chaosPublisher) {
	code, _ := p.process.Wait(w.ctx)
	w.note("publisher %d ended with %d", p.id, code)
	if code == 2 || code == 3 {
		w.problem("publisher %d ended with %d\n%s", p.id, code, p.process.Stderr())
	}
}

// happen makes one fault.
func (w *chaosWorld) happen(ctx context.Context, began time.Time, f chaosFault) error {
	pause(ctx, time.Until(began.Add(f.at)))
	kind := chaosKinds[f.kind]
	alone := w.placeOf(kind.place, f.target)
	alone.Lock()
	defer alone.Unlock()
	w.faultBegins(f)
	defer w.faultEnds(ctx, f)
	if err := kind.begin(w, f); err != nil {
		return fmt.Errorf("%s: %w", f, err)
	}
	if kind.end == nil {
		return nil
	}
	pause(ctx, f.lasts)
	if err := kind.end(w, f); err != nil {
		return fmt.Errorf("%s: end: %w", f, err)
	}
	return nil
}

func (w *chaosWorld) placeOf(p chaosPlace, target int) *sync.Mutex {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := fmt.Sprint(p, target)
	if w.places[key] == nil {
		w.places[key] = &sync.Mutex{}
	}
	return w.places[key]
}

func (w *chaosWorld) faultBegins(f chaosFault) {
	w.note("%s %d", f.kind, f.target)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.active++; len(w.calms) > 0 && w.calms[len(w.calms)-1].disturbed.IsZero() {
		w.calms[len(w.calms)-1].disturbed = time.Now()
	}
}

func (w *chaosWorld) faultEnds(ctx context.Context, f chaosFault) {
	w.note("%s %d is over", f.kind, f.target)
	w.mu.Lock()
	w.active--
	calm := w.active == 0
	w.mu.Unlock()
	if calm {
		w.calmDown(ctx)
	}
}

// calmDown notes that no fault is active.
func (w *chaosWorld) calmDown(ctx context.Context) {
	c := calm{at: time.Now()}
	err := w.again(func() error {
		conn, err := pgx.Connect(ctx, w.url)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(ctx))
		return conn.QueryRow(ctx, "SELECT pg_current_wal_insert_lsn()").Scan(&c.written)
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && w.active == 0 {
		w.calms = append(w.calms, c)
	}
}

func (w *chaosWorld) watchSlot(ctx context.Context) {
	for ctx.Err() == nil {
		if lsn, err := harness.ConfirmedFlushLSN(ctx, w.url, w.slot); err == nil {
			w.mu.Lock()
			w.samples = append(w.samples, looked{time.Now(), lsn})
			w.mu.Unlock()
		}
		pause(ctx, 100*time.Millisecond)
	}
}

// awaitDelivery waits until all that was written is confirmed.
func (w *chaosWorld) awaitDelivery() {
	w.sql = w.connect()
	target := w.written()
	deadline := time.Now().Add(w.options.patience)
	w.keepRunning(func() bool {
		if time.Now().After(deadline) {
			w.t.Fatalf("not everything was delivered %s after the last fault\n%s", w.options.patience, w.log())
		}
		lsn, err := harness.ConfirmedFlushLSN(w.ctx, w.url, w.slot)
		return err == nil && lsn >= target
	})
}

// endPublishers ends them as a supervisor does.
func (w *chaosWorld) endPublishers() {
	for _, p := range w.publishers {
		w.no(p.process.Signal(syscall.SIGTERM))
	}
	for range w.publishers {
		select {
		case p := <-w.exits:
			// 1: it had just learned that it has no slot any more.
			if code, _ := p.process.Wait(w.ctx); code != 0 && code != 1 {
				w.problem("publisher %d ended with %d after SIGTERM\n%s", p.id, code, p.process.Stderr())
			}
		case <-w.ctx.Done():
			w.problem("a publisher does not end")
		}
	}
}

func (w *chaosWorld) outcome() *chaosOutcome {
	report := w.judge(func(o *verify.Options) { o.Rewinds = -1 })
	o := &chaosOutcome{
		schedule: w.schedule, report: report, sessions: w.sessions(), recovery: w.slowestRecovery(),
		problems: w.problems, log: w.log(),
	}
	for cause := range w.stalls {
		o.stalls = append(o.stalls, cause)
	}
	sum := sha256.Sum256([]byte(o.log))
	o.hash = hex.EncodeToString(sum[:4])
	if o.bound = w.bound(); o.bound > 0 && report.Repeated > o.bound {
		o.problems = append(o.problems, fmt.Sprintf("%d records were repeated, %d sessions explain %d", report.Repeated, o.sessions, o.bound))
	}
	return o
}

// bound is how many repeats the sessions explain: each begins at what was
// confirmed, behind which there is a window, the rest of a transaction that was
// cut off, and what was confirmed to us but not yet to the server.
func (w *chaosWorld) bound() int {
	for _, f := range w.schedule.faults {
		if chaosKinds[f.kind].repeats {
			return 0
		}
	}
	const largestTransaction, reporting = 300, 2000
	return (w.sessions() - 1 + w.brokerFaults()) * (chaosWindow + largestTransaction + reporting)
}

func (w *chaosWorld) brokerFaults() (n int) {
	for _, f := range w.schedule.faults {
		if chaosKinds[f.kind].place == onBroker {
			n++
		}
	}
	return n
}

// slowestRecovery is how long it took at most, after the last active fault had
// ended, until what had been written by then was confirmed.
func (w *chaosWorld) slowestRecovery() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	var slowest time.Duration
	for _, c := range w.calms {
		for _, s := range w.samples {
			if s.at.Before(c.at) || s.confirmed < c.written {
				continue
			}
			if c.disturbed.IsZero() || s.at.Before(c.disturbed) {
				slowest = max(slowest, s.at.Sub(c.at))
			}
			break
		}
	}
	return slowest
}

func (w *chaosWorld) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timeline = append(w.timeline, fmt.Sprintf("%6.2fs ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

func (w *chaosWorld) problem(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

func (w *chaosWorld) log() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.schedule.String() + strings.Join(w.timeline, "\n") + "\n"
}
