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
	coordinator, err := findCoordinator(c.broker, wanted.id)
	if err != nil {
		return err
	}
	taken, err := c.askCoordinator(coordinator, wanted)
	// A KError by itself is the coordinator's answer; within another error it is
	// of the way there.
	if code, answered := err.(sarama.KError); answered {
		return code
	}
	if err != nil {
		result.err = fmt.Errorf("%w: %w", errNoCoordinator, err)
		return nil
	}
	result.identity = taken
	return nil
}

// askCoordinator asks one broker. The gate is asked before each write: a
// process that was frozen must not shut out its successor.
func (c *control) askCoordinator(address string, wanted *claim) (identity, error) {
	ctx, cancel := context.WithTimeout(c.ctx, 2*c.dialer.config.DialTimeout)
	defer cancel()
	broker, err := c.dialer.connect(ctx, address, wanted.gate)
	if err != nil {
		return noIdentity, err
	}
	defer func() { _ = broker.Close() }()
	return initProducerID(broker, wanted.id, wanted.previous)
}

// findCoordinator returns the address of the transactional id's coordinator. An
// answer with an error code is a KError.
func findCoordinator(b *sarama.Broker, transactionalID string) (string, error) {
	found, err := b.FindCoordinator(&sarama.FindCoordinatorRequest{Version: 1, CoordinatorKey: transactionalID, CoordinatorType: sarama.CoordinatorTransaction})
	switch {
	case err != nil:
		return "", err
	case found.Err != sarama.ErrNoError:
		return "", found.Err
	case found.Coordinator == nil:
		return "", sarama.ErrConsumerCoordinatorNotAvailable
	}
	return found.Coordinator.Addr(), nil
}

// initProducerID asks the coordinator b for another identity than previous. An
// answer with an error code is a KError.
func initProducerID(b *sarama.Broker, transactionalID string, previous identity) (identity, error) {
	response, err := b.InitProducerID(&sarama.InitProducerIDRequest{
		Version: 4, TransactionalID: &transactionalID, TransactionTimeout: claimTimeout,
		ProducerID: previous.producer, ProducerEpoch: previous.epoch,
	})
	switch {
	case err != nil:
		return noIdentity, err
	case response.Err != sarama.ErrNoError:
		return noIdentity, response.Err
	}
	return identity{producer: response.ProducerID, epoch: response.ProducerEpoch}, nil
}

// claimTimeout is required and means nothing, since no transaction is begun.
// Brokers refuse more than transaction.max.timeout.ms (15 min).
const claimTimeout = time.Second
