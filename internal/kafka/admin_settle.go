package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"

	"github.com/cdcpub/cdcpub/internal/pause"
)

// errUnsettled is the cause of a wait that took too long.
var errUnsettled = errors.New("not all brokers know the topic in time")

// settle waits until every broker that can be reached knows the topics that
// were created.
func (w *works) settle(ctx context.Context) error {
	waiting, cancel := context.WithTimeoutCause(ctx, settleTimeout, errUnsettled)
	defer cancel()
	open := make(map[string]*work)
	for _, one := range w.all {
		if one.result.Created {
			open[one.topic.Name] = one
		}
	}
	for len(open) > 0 {
		missing := w.look(waiting, open)
		for name, one := range open {
			err := missing[name]
			if err == nil {
				delete(open, name)
			} else if !err.Retry {
				one.result.Err = err
				delete(open, name)
			}
		}
		if len(open) == 0 || pause.For(waiting, settlePause) == nil {
			continue
		}
		for name, one := range open {
			one.result.Err = missing[name]
		}
		return context.Cause(ctx)
	}
	return nil
}

// look returns the topics that a broker does not know whole, and why. Brokers
// that cannot be reached are not waited for: whether they know is told by
// nobody, and Describe reports them.
func (w *works) look(ctx context.Context, open map[string]*work) map[string]*TopicError {
	names := make([]string, 0, len(open))
	for name := range open {
		names = append(names, name)
	}
	greetings := inParallel(w.brokers, func(address string) *greeting { return w.admin.greet(ctx, address, names) })
	missing := make(map[string]*TopicError)
	answers := 0
	for _, g := range greetings {
		if g.err != nil {
			continue
		}
		if answers == 0 {
			// Brokers that come or go meanwhile count from the next look on.
			w.learnBrokers(g.metadata)
		}
		answers++
		known := make(map[string]*sarama.TopicMetadata)
		for _, m := range g.metadata.Topics {
			known[m.Name] = m
		}
		for _, name := range names {
			if err := w.incomplete(g.address, open[name], known[name]); err != nil && (missing[name] == nil || !err.Retry) {
				missing[name] = err
			}
		}
	}
	if answers == 0 {
		for _, name := range names {
			missing[name] = &TopicError{Topic: name, Reason: "was created, but no broker answers any more", Retry: true}
		}
	}
	return missing
}

// incomplete says what the broker at address does not know yet, or nil.
func (w *works) incomplete(address string, one *work, m *sarama.TopicMetadata) *TopicError {
	name := one.topic.Name
	if m == nil {
		return &TopicError{Topic: name, Reason: fmt.Sprintf("was created, but the answer of %s lacks it", address), Retry: true}
	}
	if m.Err == sarama.ErrTopicAuthorizationFailed {
		return &TopicError{
			Topic: name, Cause: m.Err,
			Reason: "was created, but the principal may not describe it, so it cannot be seen",
			Next:   "grant what the publisher needs: " + w.admin.grant("Write", name),
		}
	}
	if m.Err != sarama.ErrNoError && m.Err != sarama.ErrLeaderNotAvailable {
		return &TopicError{Topic: name, Cause: m.Err, Reason: fmt.Sprintf("was created, but %s answers %s", address, refusal(m.Err, "")), Retry: true}
	}
	if len(m.Partitions) == 0 || int32(len(m.Partitions)) < one.partitions {
		return &TopicError{Topic: name, Reason: fmt.Sprintf("was created, but %s knows %d of its %d partitions", address, len(m.Partitions), one.partitions), Retry: true}
	}
	for _, p := range m.Partitions {
		if p.Leader < 0 {
			return &TopicError{Topic: name, Reason: fmt.Sprintf("was created, but %s knows no leader of partition %d", address, p.ID), Retry: true}
		}
	}
	return nil
}
