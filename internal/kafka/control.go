package kafka

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"

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
	broker *sarama.Broker
	cut    context.CancelFunc
	// answered: a request on this connection has had its answer.
	answered bool
	// known are the addresses in the newest metadata.
	known []string
}

func startControl(ctx context.Context, d *dialer, deliver func(controlled)) *control {
	c := &control{dialer: d, jobs: newMailbox[controlJob]()}
	go c.run(ctx, deliver)
	return c
}

func (c *control) run(ctx context.Context, deliver func(controlled)) {
	defer c.disconnect()
	for {
		for _, job := range c.jobs.take(nil) {
			if ctx.Err() != nil {
				return
			}
			deliver(c.do(ctx, job))
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
	var failures []error
	attempt := func() bool {
		err := c.ask(job, &result)
		var code sarama.KError
		if err == nil || errors.As(err, &code) {
			c.answered = true
			result.err = err
			return true
		}
		if address := c.broker.Addr(); c.answered {
			failures = append(failures, fmt.Errorf("%s: %w", address, err))
		} else {
			failures = append(failures, c.dialer.silentRefusal(address, err))
		}
		c.disconnect()
		return false
	}
	if c.broker != nil && attempt() {
		return result
	}
	for _, address := range c.candidates() {
		if ctx.Err() != nil {
			break
		}
		if err := c.connect(ctx, address); err != nil {
			failures = append(failures, err)
			continue
		}
		if attempt() {
			return result
		}
	}
	result.err = fmt.Errorf("no broker can be reached: %w", errors.Join(failures...))
	return result
}

// candidates are all addresses we know, in random order so that a hung broker
// is not always the first.
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
	return addresses
}

func (c *control) connect(ctx context.Context, address string) error {
	ctx, cut := context.WithCancel(ctx)
	broker, err := c.dialer.connect(ctx, address, nil)
	if err != nil {
		cut()
		return err
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

// ask makes one request. An error that is not a KError is the connection's.
func (c *control) ask(job controlJob, result *controlled) error {
	switch {
	case job.lookup != nil:
		return c.lookup(job.lookup, result)
	case job.identify != nil:
		return c.identify(result)
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
