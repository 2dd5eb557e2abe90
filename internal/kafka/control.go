package kafka

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/IBM/sarama"

	"github.com/cdcpub/cdcpub/internal/pipeline"
)

// The requests to the control connection. Exactly one field of a controlJob is
// set.
type controlJob struct {
	// lookup reads the metadata of these topics.
	lookup []*topic
	// probe only asks whether the cluster answers.
	probe bool
	// identify obtains a producer id for the partition.
	identify *partition
	// claim obtains the session's producer id from the coordinator.
	claim *claim
	// look asks PostgreSQL, over a connection of its own, who has the slot.
	look func(context.Context) error
	// limit looks up max.message.bytes of the rejected record's topic.
	limit *pipeline.Rejection
}

// controlled is the answer to a controlJob.
type controlled struct {
	job      controlJob
	err      error
	metadata *sarama.MetadataResponse
	identity identity
	limit    int
}

// control is the connection for everything but produce requests. It goes to
// any broker that answers. Its goroutine takes one job after the other.
type control struct {
	dialer *dialer
	jobs   *mailbox[controlJob]

	// Owned by run.
	ctx    context.Context
	broker *sarama.Broker
	cut    context.CancelFunc
	// silent has the addresses that timed out when they were tried last, and
	// slow counts the answers in a row that did not come in time.
	silent map[string]bool
	slow   int
	// answered: a request on this connection has had its answer.
	answered bool
	// known are the addresses in the newest metadata.
	known []string
}

func startControl(ctx context.Context, d *dialer, deliver func(controlled)) *control {
	c := &control{dialer: d, jobs: newMailbox[controlJob](), silent: make(map[string]bool)}
	go c.run(ctx, deliver)
	return c
}

func (c *control) run(ctx context.Context, deliver func(controlled)) {
	defer c.disconnect()
	c.ctx = ctx
	for {
		for _, job := range c.jobs.take(nil) {
			if ctx.Err() != nil {
				return
			}
			deliver(c.do(ctx, job))
			if job.claim != nil {
				c.disconnect() // the next one is hours away
			}
		}
		select {
		case <-c.jobs.wake:
		case <-ctx.Done():
			return
		}
	}
}

// do tries the connected broker, then every other one once. An answer with an
// error code is an answer.
func (c *control) do(ctx context.Context, job controlJob) controlled {
	result := controlled{job: job}
	if job.look != nil {
		result.err = job.look(ctx)
		return result
	}
	if job.claim != nil {
		c.known = job.claim.brokers
	}
	var failures []error
	attempt := func() bool {
		err := c.inTime(job, &result)
		var code sarama.KError
		if err == nil || errors.As(err, &code) {
			c.answered = true
			if err != nil {
				result.err = err
			}
			return true
		}
		if address := c.broker.Addr(); c.answered {
			failures = append(failures, &toldError{explain(address, err), err})
		} else {
			failures = append(failures, c.dialer.silentRefusal(address, err))
		}
		c.silent[c.broker.Addr()] = isTimeout(err)
		c.disconnect()
		return false
	}
	if c.broker != nil && attempt() {
		return result
	}
	if ctx.Err() == nil {
		failures = nil // the same broker is tried anew, and says better what is wrong
	}
	candidates := c.candidates()
	for i, address := range candidates {
		if ctx.Err() != nil {
			break
		}
		if err := c.connect(ctx, slices.Concat(candidates[i:], candidates[:i])); err != nil {
			c.silent[address] = isTimeout(err)
			failures = append(failures, err)
			continue
		}
		if attempt() {
			return result
		}
	}
	result.err = &noBrokerError{failures}
	return result
}

// candidates are all addresses we know, in random order, but those last that
// did not answer when they were asked last: each may cost a timeout.
func (c *control) candidates() []string {
	seen := make(map[string]bool)
	var addresses []string
	for _, list := range [][]string{c.known, c.dialer.config.Brokers} {
		for _, address := range list {
			if !seen[address] {
				seen[address] = true
				addresses = append(addresses, address)
			}
		}
	}
	rand.Shuffle(len(addresses), func(i, j int) { addresses[i], addresses[j] = addresses[j], addresses[i] })
	slices.SortStableFunc(addresses, func(a, b string) int {
		switch {
		case c.silent[a] == c.silent[b]:
			return 0
		case c.silent[b]:
			return -1
		}
		return 1
	})
	return addresses
}

// connect opens a connection to the first of the addresses, or to another one
// while the first is slow: that is not worth a wait.
func (c *control) connect(ctx context.Context, addresses []string) error {
	ctx, cut := context.WithCancel(ctx)
	broker, err := c.dialer.connectAny(ctx, addresses, nil)
	if err != nil {
		cut()
		return err
	}
	if broker.Addr() != addresses[0] {
		c.silent[addresses[0]] = true
	}
	c.broker, c.cut, c.answered = broker, cut, false
	return nil
}

func (c *control) disconnect() {
	if c.broker == nil {
		return
	}
	c.cut()
	_ = c.broker.Close()
	c.broker, c.cut = nil, nil
}

// inTime is ask, but for what a broker answers from its memory it does not wait
// as long as for an append: a broker that hangs must not hold up what another
// one can tell. The limit grows while no broker keeps it.
func (c *control) inTime(job controlJob, result *controlled) error {
	if job.lookup == nil && !job.probe && job.claim == nil {
		return c.ask(job, result)
	}
	limit := min(c.dialer.config.DialTimeout<<min(c.slow, 10), c.dialer.base.Net.ReadTimeout)
	timer := time.AfterFunc(limit, c.cut)
	err := c.ask(job, result)
	switch {
	case !timer.Stop() && err != nil:
		c.slow++
		return fmt.Errorf("has not answered within %v: %w", limit, os.ErrDeadlineExceeded)
	case err == nil:
		c.slow = 0
	}
	return err
}

// ask makes one request. An error that is not a KError is the connection's.
func (c *control) ask(job controlJob, result *controlled) error {
	switch {
	case job.lookup != nil:
		return c.lookup(job.lookup, result)
	case job.identify != nil:
		return c.identify(result)
	case job.claim != nil:
		return c.takeIdentity(job.claim, result)
	case job.limit != nil:
		return c.describe(job.limit.Message.Record.Topic, result)
	default:
		_, err := c.broker.ApiVersions(&sarama.ApiVersionsRequest{})
		return err
	}
}

func (c *control) lookup(topics []*topic, result *controlled) error {
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = t.name
	}
	response, err := c.broker.GetMetadata(sarama.NewMetadataRequest(protocolVersion, names))
	if err != nil {
		return err
	}
	if len(response.Brokers) == 0 {
		return errors.New("the broker does not know the cluster yet")
	}
	result.metadata = response
	c.known = c.known[:0]
	for _, b := range response.Brokers {
		c.known = append(c.known, b.Addr())
	}
	return nil
}

func (c *control) identify(result *controlled) error {
	response, err := c.broker.InitProducerID(&sarama.InitProducerIDRequest{Version: 4, ProducerID: -1, ProducerEpoch: -1})
	if err != nil {
		return err
	}
	if response.Err != sarama.ErrNoError {
		return response.Err
	}
	result.identity = identity{producer: response.ProducerID, epoch: response.ProducerEpoch}
	return nil
}

// describe reads max.message.bytes. The right to describe configurations may
// be missing, which leaves the limit 0.
func (c *control) describe(topic string, result *controlled) error {
	const option = "max.message.bytes"
	response, err := c.broker.DescribeConfigs(&sarama.DescribeConfigsRequest{
		Version:   2,
		Resources: []*sarama.ConfigResource{{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{option}}},
	})
	if err != nil {
		return err
	}
	for _, resource := range response.Resources {
		for _, entry := range resource.Configs {
			if limit, err := strconv.Atoi(entry.Value); entry.Name == option && err == nil {
				result.limit = limit
			}
		}
	}
	return nil
}
