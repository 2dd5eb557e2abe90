package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/internal/pgserver/guard"
)

// stopTimeout bounds a controlled shutdown of one broker.
const stopTimeout = time.Minute

// Stop shuts broker i down as an operator would: it hands its leaderships over
// first. It waits for the end.
func (c *Cluster) Stop(i int) error { return c.end(i, syscall.SIGTERM, stopTimeout) }

// Kill ends broker i with SIGKILL and waits until it is gone.
func (c *Cluster) Kill(i int) error { return c.end(i, syscall.SIGKILL, stopTimeout) }

// Freeze stops broker i in its tracks: its connections stay open, but nothing
// is read or answered, until Thaw.
func (c *Cluster) Freeze(i int) error { return c.signal(i, syscall.SIGSTOP, true) }

// Thaw lets a frozen broker go on.
func (c *Cluster) Thaw(i int) error { return c.signal(i, syscall.SIGCONT, false) }

// Start starts broker i again, on the same ports and data, and waits until it
// answers.
func (c *Cluster) Start(ctx context.Context, i int) error {
	if err := c.launch(i); err != nil {
		return err
	}
	return c.waitAnswers(ctx, i)
}

func (c *Cluster) child(i int) (*guard.Child, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.children[i] == nil {
		return nil, fmt.Errorf("Kafka broker %d was never started", i)
	}
	return c.children[i], nil
}

func (c *Cluster) signal(i int, s syscall.Signal, frozen bool) error {
	child, err := c.child(i)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen[i] = frozen
	return child.Signal(s)
}

func (c *Cluster) end(i int, s syscall.Signal, timeout time.Duration) error {
	child, err := c.child(i)
	if err != nil {
		return err
	}
	if err := child.Signal(s); err != nil {
		return err
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-child.Gone():
		return nil
	case <-timer.C:
		return fmt.Errorf("Kafka broker %d did not end within %v of %v; the end of its log:\n%s",
			i, timeout, s, pgserver.Tail(c.nodes[i].log, 20))
	}
}

// Close kills all brokers and removes everything. It may be called again.
func (c *Cluster) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	if c.admin != nil {
		c.admin.Close()
	}
	var errs []error
	for _, child := range c.children {
		if child != nil {
			errs = append(errs, child.Kill())
		}
	}
	for _, proxy := range c.proxies {
		errs = append(errs, proxy.Close())
	}
	errs = append(errs, os.RemoveAll(c.dir), c.guard.Close())
	return errors.Join(errs...)
}

// LogTail is the end of every broker's log, n lines each.
func (c *Cluster) LogTail(n int) string {
	var b strings.Builder
	for i, node := range c.nodes {
		fmt.Fprintf(&b, "end of the log of Kafka broker %d:\n%s\n", i, pgserver.Tail(node.log, n))
	}
	return b.String()
}
