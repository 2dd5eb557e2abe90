package notify

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cdcpub/cdcpub/slotmon"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func raised(slot string, id slotmon.FindingID, severity slotmon.Severity) slotmon.Alert {
	now := time.Now()
	return slotmon.Alert{Server: "db:5432/shop", Slot: slot, ID: id, Severity: severity,
		Since: now.Add(-30 * time.Second), Raised: now, Summary: "retains 12 GiB of WAL, more than 10 GiB",
		Cause: "nobody has held the slot for 2m", Cure: "start the publisher"}
}

func resolved(a slotmon.Alert) slotmon.Alert {
	a.Resolved = time.Now()
	return a
}

// recorder is a sink that notes what it accepts and fails as long as it is told
// to. hang makes it wait for the end of the context.
type recorder struct {
	name   string
	repeat time.Duration

	mu      sync.Mutex
	fail    func(alerts []slotmon.Alert) error
	hang    bool
	tries   []time.Time
	batches [][]slotmon.Alert
}

func (r *recorder) Name() string { return r.name }

func (r *recorder) Send(ctx context.Context, alerts []slotmon.Alert) error {
	r.mu.Lock()
	fail, hang := r.fail, r.hang
	r.tries = append(r.tries, time.Now())
	r.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	if fail != nil {
		if err := fail(alerts); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batches = append(r.batches, alerts)
	return nil
}

// set changes how the sink behaves.
func (r *recorder) set(hang bool, fail func([]slotmon.Alert) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hang, r.fail = hang, fail
}

// got is what was accepted, in order.
func (r *recorder) got() []slotmon.Alert {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []slotmon.Alert
	for _, batch := range r.batches {
		all = append(all, batch...)
	}
	return all
}

func (r *recorder) tried() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]time.Time(nil), r.tries...)
}

// repeater is a recorder that wants repetition.
type repeater struct{ recorder }

func (r *repeater) Repeat() time.Duration { return r.repeat }

var errDown = errors.New("down")

func down([]slotmon.Alert) error { return errDown }

func closeNow(t *testing.T, d *Deliverer) {
	t.Helper()
	if err := d.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
