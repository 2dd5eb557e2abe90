package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// admin makes single visits to brokers, for everything that is not producing.
// Read only after it was made.
type admin struct {
	config Config
	dialer *dialer
	// limit bounds one visit.
	limit time.Duration
}

// newLooker is an admin for requests that brokers answer from memory.
func newLooker(c *Config) *admin {
	return newAdmin(c, min(c.RequestTimeout, lookRequestTimeout), lookTimeout)
}

// newAdmin is an admin with the connection settings of c. request bounds the
// wait for one answer, limit a whole visit.
func newAdmin(c *Config, request, limit time.Duration) *admin {
	a := &admin{config: *c, limit: limit}
	a.config.DialTimeout = min(c.DialTimeout, lookDialTimeout)
	a.config.RequestTimeout = request
	a.dialer = newDialer(&a.config)
	return a
}

// errNoAnswer is the cause of a visit that took too long.
var errNoAnswer = errors.New("no answer in time")

// offers are the newest version of each request that a broker takes, by key.
type offers map[int16]int16

// visit connects to a broker, reads what it offers, asks, and disconnects.
func (a *admin) visit(ctx context.Context, address string, ask func(*sarama.Broker, offers) error) error {
	visiting, cut := context.WithTimeoutCause(ctx, a.limit, errNoAnswer)
	defer cut()
	err := a.askOnce(visiting, address, ask)
	if cause := context.Cause(visiting); err != nil && cause != nil {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

func (a *admin) askOnce(ctx context.Context, address string, ask func(*sarama.Broker, offers) error) error {
	broker, err := a.dialer.connect(ctx, address, nil)
	if err != nil {
		return err
	}
	defer func() { _ = broker.Close() }()
	offered, err := offersOf(broker)
	if err != nil {
		return a.dialer.silentRefusal(address, err)
	}
	newest, ok := offered[keyMetadata]
	if !ok {
		return errController
	}
	if newest < metadataNoAutoCreate {
		return errAncient
	}
	return ask(broker, offered)
}

// The request keys that tell what kind of server has answered.
const (
	keyProduce      = 0
	keyMetadata     = 3
	keyCreateTopics = 19
	// metadataNoAutoCreate is the first version of Metadata that can ask
	// without creating (KIP-4, Kafka 0.11).
	metadataNoAutoCreate = 4
)

// errController: the address is the listener of a KRaft controller.
var errController = errors.New("a KRaft controller answers there, which serves no clients")

// errAncient: even asking could create the topics.
var errAncient = errors.New("the broker is older than Kafka 0.11, which cdcpub needs at least")

// greet asks a broker for metadata.
func (a *admin) greet(ctx context.Context, address string, topics []string) *greeting {
	g := &greeting{address: address}
	g.err = a.visit(ctx, address, func(b *sarama.Broker, offered offers) (err error) {
		g.offers = offered
		g.metadata, err = askMetadata(b, topics)
		return err
	})
	return g
}

// offersOf asks b what it takes.
func offersOf(b *sarama.Broker) (offers, error) {
	response, err := b.ApiVersions(&sarama.ApiVersionsRequest{Version: 0})
	if err != nil {
		return nil, err
	}
	if code := sarama.KError(response.ErrorCode); code != sarama.ErrNoError {
		return nil, code
	}
	offered := make(offers, len(response.ApiKeys))
	for _, key := range response.ApiKeys {
		offered[key.ApiKey] = key.MaxVersion
	}
	return offered, nil
}

// noTopic is a name that no topic can have. A request without any name would
// list every topic of the cluster.
const noTopic = "."

// askMetadata reads the metadata of the brokers and of topics, and never
// creates one.
func askMetadata(b *sarama.Broker, topics []string) (*sarama.MetadataResponse, error) {
	if len(topics) == 0 {
		topics = []string{noTopic}
	}
	request := sarama.NewMetadataRequest(protocolVersion, topics)
	request.AllowAutoTopicCreation = false
	request.IncludeTopicAuthorizedOperations = true
	response, err := b.GetMetadata(request)
	if err != nil {
		return nil, err
	}
	if len(response.Brokers) == 0 {
		return nil, errors.New("the broker does not know the cluster yet: it has just started, or its controllers cannot be reached")
	}
	return response, nil
}

// inParallel calls do for each of what, all at once, and returns the results
// in the same order.
func inParallel[T, R any](what []T, do func(T) R) []R {
	results := make([]R, len(what))
	var running sync.WaitGroup
	for i := range what {
		running.Go(func() { results[i] = do(what[i]) })
	}
	running.Wait()
	return results
}
