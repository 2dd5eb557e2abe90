package scenarios

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/test/harness"
)

// chaosWorld is one run of a schedule. Its goroutine starts processes and
// judges; each fault has a goroutine that begins and ends it.
type chaosWorld struct {
	*stand
	schedule   chaosSchedule
	publishers []*chaosPublisher
	operator   string // configuration of the commands that a human runs
	exits      chan *chaosPublisher
	places     map[string]*sync.Mutex
	pair       *chaosPair // nil without a standby
	endAnswer  func() int // ends the fault of the place onAnswers, which owns it

	mu       sync.Mutex
	timeline []string
	active   int      // faults
	calms    []calm   // when no fault was active any more
	samples  []looked // of the slot
	stalls   map[string]bool
	gaps     []*chaosGap
	problems []string
}

// chaosSections scale the timeouts, so that half a minute is long.
var chaosSections = map[string]string{
	"postgres": "  wal_sender_timeout: 4s\n  status_interval: 1s\n",
	"kafka":    "  request_timeout: 2s\n",
	"":         "window: {records: 2000}\nshutdown_timeout: 3s\n",
}

const chaosWindow = 2000

// chaosPostgres are settings of the server.
var chaosPostgres = []string{"wal_sender_timeout=4s", "max_wal_size=256MB", "application_name=chaos"}

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
	load, endLoad := context.WithCancel(ctx)
	defer endLoad()
	began := time.Now()
	writing := w.writers(load, 3)
	faults := make(chan error, len(schedule.faults))
	for _, f := range schedule.faults {
		go func() { faults <- w.happen(ctx, began, f) }()
	}
	var over time.Time // for the last fault
	w.keepRunning(func() bool {
		if len(faults) < cap(faults) {
			return false
		}
		if over.IsZero() {
			over = time.Now()
		}
		return time.Since(began) >= chaosLoad && time.Since(over) >= chaosCalm
	})
	endLoad()
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
	w := &chaosWorld{
		schedule: schedule, exits: make(chan *chaosPublisher, 100),
		places: map[string]*sync.Mutex{}, stalls: map[string]bool{},
	}
	o := options{binary: binary, partitions: chaosPartitions, replicas: schedule.brokers, sections: chaosSections}
	if schedule.fake {
		o.fake = harness.NewFakeKafka(t, schedule.brokers)
	} else {
		o.kafka = shared.Kafka(t, harness.KafkaOptions{Brokers: schedule.brokers, ViaProxy: true})
		if schedule.brokers == 3 {
			o.topic = map[string]string{"min.insync.replicas": "2"}
		}
	}
	if schedule.standby {
		w.onPair(t, o)
	} else {
		o.postgres = shared.Postgres(t, schedule.version, chaosPostgres...)
		w.stand = newStand(t, o)
	}
	w.exec("CREATE TABLE aggregates (id text PRIMARY KEY, version bigint NOT NULL)")
	w.exec("CREATE TABLE noise (text text)")
	w.operator = w.config()
	for i := range schedule.publishers {
		w.addPublisher(i)
	}
	return w
}

const chaosPartitions = 4

func address(pg *pgserver.Server) string { return fmt.Sprintf("127.0.0.1:%d", pg.Port()) }

// happen makes one fault.
func (w *chaosWorld) happen(ctx context.Context, began time.Time, f chaosFault) error {
	pause(ctx, time.Until(began.Add(f.at)))
	kind := chaosKinds[f.kind]
	defer w.hold(kind.place, f.target)()
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

// hold keeps other faults from a place until release.
func (w *chaosWorld) hold(p chaosPlace, target int) (release func()) {
	w.mu.Lock()
	key := fmt.Sprint(p, target)
	if w.places[key] == nil {
		w.places[key] = &sync.Mutex{}
	}
	alone := w.places[key]
	w.mu.Unlock()
	alone.Lock()
	return alone.Unlock
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
