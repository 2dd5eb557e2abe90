package notify

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"

	"github.com/cdcpub/cdcpub/slotmon"
)

const (
	// sendTimeout is how long one delivery may take.
	sendTimeout = 10 * time.Second
	// firstPause and longestPause are between a failure and the next try.
	firstPause   = time.Second
	longestPause = 30 * time.Second
	// batchSize is how many alerts go in one delivery, which keeps it small
	// enough for any receiver.
	batchSize = 64
)

// worker delivers to one sink. Its run is the only caller of sink.Send.
type worker struct {
	log  *zap.Logger
	name string
	sink Sink
	// wake has room for one, so that nobody waits to put something in.
	wake chan struct{}

	mu     sync.Mutex
	queue  *queue // guarded by mu
	status Status // guarded by mu, but for Waiting, which is the queue's
}

func newWorker(log *zap.Logger, name string, sink Sink) *worker {
	_, repeats := sink.(Repeater)
	return &worker{
		log: log.With(zap.String("event", "alert_sink"), zap.String("sink", name)), name: name, sink: sink,
		wake: make(chan struct{}, 1), queue: newQueue(repeats), status: Status{Name: name},
	}
}

func (w *worker) changed(alerts []slotmon.Alert) {
	w.mu.Lock()
	before := w.status.Dropped
	for _, alert := range alerts {
		if !w.queue.put(alert) {
			w.status.Dropped++
		}
	}
	first := before == 0 && w.status.Dropped > 0
	w.mu.Unlock()
	if first {
		w.log.Error("too many alerts wait for a sink; further ones are dropped", zap.Int("waiting", maxAlerts))
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *worker) currentStatus() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.status
	s.Waiting = w.queue.waiting()
	return s
}

// run delivers until closing is closed and nothing waits, or a try after that
// has failed.
func (w *worker) run(ctx context.Context, closing <-chan struct{}) {
	repeat, stop := w.repetition()
	defer stop()
	retries := backoff.NewExponentialBackOff()
	retries.InitialInterval, retries.MaxInterval, retries.Multiplier = firstPause, longestPause, 2
	size := batchSize
	for {
		last := isClosed(closing)
		batch := w.take(size)
		if len(batch) == 0 {
			if last {
				return
			}
			size = batchSize
			select {
			case <-w.wake:
			case <-repeat:
				w.repeat()
			case <-closing:
			}
			continue
		}
		err := w.deliver(ctx, batch)
		if err == nil {
			retries.Reset()
			continue
		}
		if refused(err) {
			w.postpone(batch)
			size = 1
		}
		if last {
			return
		}
		select {
		case <-time.After(retries.NextBackOff()):
		case <-closing:
		}
	}
}

// repetition ticks if the sink wants alerts again, and never if not.
func (w *worker) repetition() (tick <-chan time.Time, stop func()) {
	r, ok := w.sink.(Repeater)
	if !ok {
		return nil, func() {}
	}
	ticker := time.NewTicker(r.Repeat())
	return ticker.C, ticker.Stop
}

// deliver makes one try and notes its result.
func (w *worker) deliver(ctx context.Context, batch []entry) error {
	alerts := make([]slotmon.Alert, len(batch))
	for i, e := range batch {
		alerts[i] = e.alert
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	err := w.sink.Send(ctx, alerts)
	before := w.note(batch, err)
	switch {
	case err != nil && before == "":
		w.log.Warn("an alert sink fails; it is tried again until it works", zap.String("error", err.Error()))
	case err == nil && before != "":
		w.log.Info("an alert sink works again")
	}
	return err
}

// note counts a delivery and returns the error of the one before.
func (w *worker) note(batch []entry, err error) (before string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before = w.status.LastError
	if err != nil {
		w.status.Failed++
		w.status.LastError = err.Error()
		return before
	}
	w.queue.delivered(batch)
	w.status.Sent++
	w.status.LastSent, w.status.LastError = time.Now(), ""
	return before
}

func (w *worker) take(most int) []entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.queue.take(most)
}

func (w *worker) postpone(batch []entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue.postpone(batch)
}

func (w *worker) repeat() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue.repeat()
}

// refused tells if the receiver does not want what was sent, whatever its state.
func refused(err error) bool {
	var response *ResponseError
	return errors.As(err, &response) && response.refused()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
