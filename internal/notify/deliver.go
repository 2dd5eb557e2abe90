package notify

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/cdcpub/cdcpub/slotmon"
)

// Deliverer brings alerts to sinks. All methods may be called from any
// goroutine.
type Deliverer struct {
	workers []*worker
	// closing is closed by the first Close.
	closing chan struct{}
	once    sync.Once
	// cancel ends deliveries that are under way.
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// Status is how one sink fares.
type Status struct {
	// Name is the sink's, made unique if two have the same.
	Name string
	// Sent and Failed count deliveries, of one or several alerts each, since
	// the start.
	Sent, Failed int
	// LastSent is when the last one succeeded, zero if none has.
	LastSent time.Time
	// LastError is why the last delivery failed, empty if it did not. It holds
	// no secret.
	LastError string
	// Waiting is how many alerts the sink does not know the present state of.
	Waiting int
	// Dropped counts states that were given up because too many waited.
	Dropped int
}

// Start begins to deliver to the sinks, each of which must be used nowhere
// else. That a sink begins to fail, and that it works again, is logged. Close
// must be called in the end.
func Start(log *zap.Logger, sinks ...Sink) *Deliverer {
	ctx, cancel := context.WithCancel(context.Background())
	d := &Deliverer{closing: make(chan struct{}), cancel: cancel}
	used := map[string]int{}
	for _, sink := range sinks {
		name := sink.Name()
		if used[name]++; used[name] > 1 {
			name = fmt.Sprintf("%s (%d)", name, used[name])
		}
		w := newWorker(log, name, sink)
		d.workers = append(d.workers, w)
		d.running.Go(func() { w.run(ctx, d.closing) })
	}
	return d
}

// Changed takes the new state of alerts that were raised, changed or resolved,
// as slotmon.Alerts.Update returns them. It never blocks. After Close nothing
// is delivered any more.
func (d *Deliverer) Changed(alerts []slotmon.Alert) {
	if len(alerts) == 0 {
		return
	}
	for _, w := range d.workers {
		w.changed(alerts)
	}
}

// Status tells how each sink fares, in the order of Start.
func (d *Deliverer) Status() []Status {
	all := make([]Status, len(d.workers))
	for i, w := range d.workers {
		all[i] = w.currentStatus()
	}
	return all
}

// Close tries once more to deliver what waits, for each sink until the first
// failure, and ends. A delivery that is under way when ctx ends is cut short.
// The error names the sinks that do not know everything.
func (d *Deliverer) Close(ctx context.Context) error {
	d.once.Do(func() { close(d.closing) })
	stop := context.AfterFunc(ctx, d.cancel)
	d.running.Wait()
	stop()
	d.cancel()
	var problems []error
	for _, s := range d.Status() {
		if s.Waiting > 0 {
			problems = append(problems, fmt.Errorf("alert sink %s: %d alerts were not delivered: %s", s.Name, s.Waiting, s.LastError))
		}
	}
	return errors.Join(problems...)
}
