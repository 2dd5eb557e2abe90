package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/cdcpub/cdcpub/internal/verify"
)

// Consumer follows topics in the background and keeps every record, so that a
// test can wait for what it expects. Its methods are safe from any goroutine.
type Consumer struct {
	mu      sync.Mutex
	changed sync.Cond // on mu
	records []verify.Record
	err     error // why it stopped; nil while it runs
}

// NewConsumer follows the topics until the test ends.
func NewConsumer(t testing.TB, brokers []string, topics ...string) *Consumer {
	t.Helper()
	c := &Consumer{}
	c.changed.L = &c.mu
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		err := Follow(ctx, brokers, topics, func(r verify.Record) bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.records = append(c.records, r)
			c.changed.Broadcast()
			return true
		})
		c.mu.Lock()
		defer c.mu.Unlock()
		c.err = err
		c.changed.Broadcast()
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return c
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
// calls done after each new record; done must not keep or change the slice.
// what names the wait in the error when ctx ends first.
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
		if err := errors.Join(c.err, ctx.Err()); err != nil {
			return nil, fmt.Errorf("wait for %s (%d records read): %w", what, len(c.records), err)
		}
		c.changed.Wait()
	}
	return slices.Clone(c.records), nil
}
