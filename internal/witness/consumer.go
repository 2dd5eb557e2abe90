package witness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cdcpub/cdcpub/internal/verify"
)

// Consumer follows topics in the background and keeps every record, so that
// one can wait for what one expects. Its methods are safe from any goroutine.
type Consumer struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when it has stopped

	mu      sync.Mutex
	changed sync.Cond // on mu
	records []verify.Record
	err     error // why it stopped; nil while it runs
}

// NewConsumer follows the topics until Close. each, which may be nil, is called
// with the records that arrived together, before Records has them, and always
// from the same goroutine.
func NewConsumer(brokers, topics []string, each func(arrived []verify.Record, at time.Time)) *Consumer {
	ctx, cancel := context.WithCancel(context.Background())
	c := &Consumer{cancel: cancel, done: make(chan struct{})}
	c.changed.L = &c.mu
	go func() {
		defer close(c.done)
		err := Follow(ctx, brokers, topics, func(arrived []verify.Record, at time.Time) bool {
			if each != nil {
				each(arrived, at)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.records = append(c.records, arrived...)
			c.changed.Broadcast()
			return true
		})
		c.mu.Lock()
		defer c.mu.Unlock()
		c.err = err
		c.changed.Broadcast()
	}()
	return c
}

// Close stops it and waits until it has stopped. Records stay.
func (c *Consumer) Close() {
	c.cancel()
	<-c.done
}

// Done is closed when it has stopped, by Close or by an error that waiting
// does not cure.
func (c *Consumer) Done() <-chan struct{} { return c.done }

// Err is why it stopped, nil while it runs.
func (c *Consumer) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Records returns what was read so far, in the order in which it came.
func (c *Consumer) Records() []verify.Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.records)
}

// WaitN waits until at least n records were read, and returns all.
func (c *Consumer) WaitN(ctx context.Context, n int) ([]verify.Record, error) {
	return c.Wait(ctx, fmt.Sprintf("%d records", n), func(records []verify.Record) bool { return len(records) >= n })
}

// Wait waits until done is true of what was read so far, and returns that. It
// calls done after each arrival; done must not keep or change the slice. what
// names the wait in the error when ctx ends first.
func (c *Consumer) Wait(ctx context.Context, what string, done func(records []verify.Record) bool) ([]verify.Record, error) {
	wake := context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.changed.Broadcast()
	})
	defer wake()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !done(c.records) {
		if err := errors.Join(c.err, context.Cause(ctx)); err != nil {
			return nil, fmt.Errorf("wait for %s (%d records read): %w", what, len(c.records), err)
		}
		c.changed.Wait()
	}
	return slices.Clone(c.records), nil
}
