package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/IBM/sarama"

	"github.com/cdcpub/cdcpub/internal/pause"
)

// coordinatorLimit and identityLimit bound the wait for a coordinator and for a
// broker's producer ids, the latter within one visit: a new cluster creates
// __transaction_state when it is first asked for one, which takes seconds.
const (
	coordinatorLimit = 10 * time.Second
	identityLimit    = lookTimeout / 2
)

// MayFence asks whether a publisher could take its producer id under a
// transactional id, and leaves the one that has it alone: it asks in the name
// of a producer that cannot exist, which the coordinator refuses once it has
// seen that the principal may ask. PermissionUnknown comes with the reason. It
// waits up to 10 s for a coordinator that is not there yet, and is safe for
// concurrent use.
func (c *Client) MayFence(ctx context.Context, transactionalID string) (Permission, error) {
	a := newLooker(&c.config)
	waiting, cancel := context.WithTimeout(ctx, coordinatorLimit)
	defer cancel()
	for {
		permission, err := a.mayFence(ctx, transactionalID)
		if !isNotYet(err) || pause.For(waiting, settlePause) != nil {
			return permission, err
		}
	}
}

// mayFence asks once. An error is the reason of PermissionUnknown.
func (a *admin) mayFence(ctx context.Context, transactionalID string) (Permission, error) {
	var failures []error
	for _, address := range a.config.Brokers {
		coordinator, err := a.coordinator(ctx, address, transactionalID)
		if err == nil {
			err = a.tryClaim(ctx, coordinator, transactionalID)
		}
		var code sarama.KError
		switch {
		case err == nil:
			return PermissionGranted, nil
		case !errors.As(err, &code):
			failures = append(failures, err)
		case answerTo(code) == claimFenced:
			return PermissionGranted, nil
		case answerTo(code) == claimRefused:
			return PermissionDenied, nil
		default:
			return PermissionUnknown, &refusedError{code}
		}
	}
	return PermissionUnknown, errors.Join(failures...)
}

// refusedError is a broker's answer, told in words.
type refusedError struct{ code sarama.KError }

func (e *refusedError) Error() string { return classify(e.code).String() }
func (e *refusedError) Unwrap() error { return e.code }

// isNotYet says whether a broker that has just started, or a new cluster, gives
// this answer until it is ready.
func isNotYet(err error) bool {
	var code sarama.KError
	if !errors.As(err, &code) {
		return false
	}
	switch code {
	case sarama.ErrOffsetsLoadInProgress, sarama.ErrConsumerCoordinatorNotAvailable, sarama.ErrNotCoordinatorForConsumer:
		return true
	default:
		return false
	}
}

func (a *admin) coordinator(ctx context.Context, address, transactionalID string) (found string, err error) {
	err = a.visit(ctx, address, func(b *sarama.Broker, _ offers) (err error) {
		if found, err = findCoordinator(b, transactionalID); err != nil {
			return fmt.Errorf("FindCoordinator: %w", err)
		}
		return nil
	})
	return found, err
}

func (a *admin) tryClaim(ctx context.Context, coordinator, transactionalID string) error {
	nobody := identity{producer: math.MaxInt64, epoch: 0}
	return a.visit(ctx, coordinator, func(b *sarama.Broker, _ offers) error {
		if _, err := initProducerID(b, transactionalID, nobody); err != nil {
			return fmt.Errorf("InitProducerID: %w", err)
		}
		return nil
	})
}
