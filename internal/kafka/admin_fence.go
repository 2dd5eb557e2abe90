package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/IBM/sarama"
)

// MayFence asks whether a publisher could take its producer id under a
// transactional id, and leaves the one that has it alone: it asks in the name
// of a producer that cannot exist, which the coordinator refuses once it has
// seen that the principal may ask. PermissionUnknown comes with the reason. It
// is safe for concurrent use.
func (c *Client) MayFence(ctx context.Context, transactionalID string) (Permission, error) {
	a := newLooker(&c.config)
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
			return PermissionUnknown, errors.New(classify(code).String())
		}
	}
	return PermissionUnknown, errors.Join(failures...)
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
