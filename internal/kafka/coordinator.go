package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// errNoCoordinator: brokers answer, but not the one that would have to.
var errNoCoordinator = errors.New("the transaction coordinator cannot be reached")

// takeIdentity finds the coordinator of the claim's transactional.id and takes
// the identity from it. An error that is neither a KError nor errNoCoordinator
// is the control connection's.
func (c *control) takeIdentity(wanted *claim, result *controlled) error {
	found, err := c.broker.FindCoordinator(findCoordinator(wanted.id))
	switch {
	case err != nil:
		return err
	case found.Err != sarama.ErrNoError:
		return found.Err
	case found.Coordinator == nil:
		return sarama.ErrConsumerCoordinatorNotAvailable
	}
	response, err := c.askCoordinator(found.Coordinator.Addr(), wanted)
	switch {
	case err != nil:
		result.err = fmt.Errorf("%w: %w", errNoCoordinator, err)
		return nil
	case response.Err != sarama.ErrNoError:
		return response.Err
	}
	result.identity = identity{producer: response.ProducerID, epoch: response.ProducerEpoch}
	return nil
}

// askCoordinator asks one broker. The gate is asked before each write: a
// process that was frozen must not shut out its successor.
func (c *control) askCoordinator(address string, wanted *claim) (*sarama.InitProducerIDResponse, error) {
	ctx, cancel := context.WithTimeout(c.ctx, 2*c.dialer.config.DialTimeout)
	defer cancel()
	broker, err := c.dialer.connect(ctx, address, wanted.gate)
	if err != nil {
		return nil, err
	}
	defer func() { _ = broker.Close() }()
	return broker.InitProducerID(initProducerID(wanted.id, wanted.previous))
}

func findCoordinator(transactionalID string) *sarama.FindCoordinatorRequest {
	return &sarama.FindCoordinatorRequest{Version: 1, CoordinatorKey: transactionalID, CoordinatorType: sarama.CoordinatorTransaction}
}

func initProducerID(transactionalID string, previous identity) *sarama.InitProducerIDRequest {
	return &sarama.InitProducerIDRequest{
		Version: 4, TransactionalID: &transactionalID, TransactionTimeout: claimTimeout,
		ProducerID: previous.producer, ProducerEpoch: previous.epoch,
	}
}

// claimTimeout is required and means nothing, since no transaction is begun.
// Brokers refuse more than transaction.max.timeout.ms (15 min).
const claimTimeout = time.Second
