package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/IBM/sarama"
)

// job is one produce request: a batch of each of some partitions that have the
// same leader.
type job struct {
	request *sarama.ProduceRequest
	// parts belong to the producer's goroutine; the link only carries them.
	parts []*partition
	bytes int
	alone bool
	link  *link
}

// produced is the answer to a job, or why there is none.
type produced struct {
	job      *job
	response *sarama.ProduceResponse
	err      error
	// broken: the connection is of no use any more.
	broken bool
}

// link is one connection to one broker, for produce requests. Its goroutine
// makes the calls that may block: dialing, encoding and compressing, writing.
// A link that has failed stays failed; the producer makes another.
type link struct {
	address string
	jobs    *mailbox[*job]
	cancel  context.CancelFunc

	// open is the request that is being filled, outstanding counts the jobs
	// without answer, and usedAt is when the newest was put. Owned by the
	// producer's goroutine.
	open        *job
	outstanding int
	usedAt      time.Time
}

// gates say why nothing may leave us now, or nil. open is asked before every
// write; start also before a request begins.
type gates struct{ open, start func() error }

// startLink starts a link. Every job put into it is answered exactly once
// through deliver, which must not block.
func startLink(ctx context.Context, d *dialer, address string, g gates, deliver func(produced)) *link {
	ctx, cancel := context.WithCancel(ctx)
	l := &link{address: address, jobs: newMailbox[*job](), cancel: cancel}
	go l.run(ctx, d, g, deliver)
	return l
}

func (l *link) run(ctx context.Context, d *dialer, g gates, deliver func(produced)) {
	broker, broken := d.connect(ctx, l.address, g.open)
	if broken == nil {
		// sarama answers what is still open with an error before Close
		// returns.
		defer func() { _ = broker.Close() }()
	}
	for {
		for _, j := range l.jobs.take(nil) {
			err := broken
			if err == nil {
				err = l.send(broker, j, g.start, deliver)
			}
			if err == nil {
				continue
			}
			if !isEncodingError(err) && !errors.Is(err, errNotSent) {
				broken = err
			}
			deliver(produced{job: j, err: err, broken: broken != nil})
		}
		if ctx.Err() != nil {
			return
		}
		select {
		case <-l.jobs.wake:
		case <-ctx.Done():
			// Once more round the loop: what was put before the cancel is
			// still answered.
			broken = errClosed
		}
	}
}

// send returns nil when the answer will come through deliver.
func (l *link) send(broker *sarama.Broker, j *job, gate func() error, deliver func(produced)) error {
	if err := gate(); err != nil {
		return err
	}
	return broker.AsyncProduce(j.request, func(response *sarama.ProduceResponse, err error) {
		deliver(produced{job: j, response: response, err: err, broken: err != nil})
	})
}
