package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/IBM/sarama"

	"github.com/cdcpub/cdcpub/internal/pause"
)

// optionalCounts is the first version of CreateTopics where the broker fills
// in -1 (KIP-464).
const optionalCounts = 4

// errNotCreated is the cause of attempts that took too long.
var errNotCreated = errors.New("the cluster did not create the topics in time")

// create asks until the fate of every topic is known. An error means that
// nobody could be asked; what was answered is with the topics.
func (w *works) create(ctx context.Context) error {
	trying, cancel := context.WithTimeoutCause(ctx, createLimit, errNotCreated)
	defer cancel()
	for attempt := 1; ; attempt++ {
		err := w.attempt(trying)
		if cause := context.Cause(trying); cause != nil {
			return cause
		}
		if len(w.open()) == 0 || attempt == createAttempts {
			return err
		}
		if err := pause.For(trying, createPause); err != nil {
			return err
		}
	}
}

// attempt asks the controller once for every open topic. An error means that
// nobody can be asked.
func (w *works) attempt(ctx context.Context) error {
	for batch := range slices.Chunk(w.open(), createBatch) {
		var failures []error
		for _, address := range w.brokers {
			err := w.patient.visit(ctx, address, func(b *sarama.Broker, offered offers) error { return w.ask(b, offered, batch) })
			if err == nil || ctx.Err() != nil {
				failures = nil
				break
			}
			failures = append(failures, errors.New(explain(address, err)))
		}
		if len(failures) > 0 {
			return fmt.Errorf("no broker takes the request: %w", errors.Join(failures...))
		}
	}
	return nil
}

// ask makes one request and takes its answer.
func (w *works) ask(b *sarama.Broker, offered offers, batch []*work) error {
	// Newer metadata tells who the controller is now.
	metadata, err := askMetadata(b, nil)
	if err != nil {
		return err
	}
	details := make(map[string]*sarama.TopicDetail)
	for _, one := range batch {
		t := one.topic
		if offered[keyCreateTopics] < optionalCounts && (t.Partitions < 0 || t.Replication < 0) {
			one.fail(&TopicError{
				Topic:  t.Name,
				Reason: fmt.Sprintf("was not created: brokers before Kafka 2.4 have no default for new topics, and %s is Kafka %s", b.Addr(), offered.release()),
				Next:   "set kafka.create_topics.partitions and kafka.create_topics.replication_factor",
			})
			continue
		}
		detail := &sarama.TopicDetail{NumPartitions: t.Partitions, ReplicationFactor: t.Replication, ConfigEntries: make(map[string]*string, len(t.Configs))}
		for name, value := range t.Configs {
			detail.ConfigEntries[name] = &value
		}
		details[t.Name] = detail
	}
	if len(details) == 0 {
		return nil
	}
	w.learnBrokers(metadata)
	response, err := b.CreateTopics(sarama.NewCreateTopicsRequest(protocolVersion, details, createTimeout, false))
	if err != nil {
		if !errors.Is(err, errNotSent) {
			for _, one := range batch {
				one.uncertain = true
			}
		}
		return err
	}
	for _, one := range batch {
		if details[one.topic.Name] != nil {
			one.answered(response, w.admin, len(metadata.Brokers))
		}
	}
	return nil
}

// answered takes the broker's answer for one topic.
func (one *work) answered(response *sarama.CreateTopicsResponse, a *admin, brokers int) {
	name := one.topic.Name
	answer := response.TopicErrors[name]
	if answer == nil {
		one.retry(&TopicError{Topic: name, Reason: "was not created: the broker's answer lacks it", Retry: true})
		return
	}
	message := ""
	if answer.ErrMsg != nil {
		message = *answer.ErrMsg
	}
	switch answer.Err {
	case sarama.ErrNoError:
		one.done, one.result.Created, one.result.Err = true, true, nil
		one.partitions = max(one.topic.Partitions, 0)
		if result := response.TopicResults[name]; result != nil {
			one.partitions = max(one.partitions, result.NumPartitions)
		}
	case sarama.ErrTopicAlreadyExists:
		one.done, one.result.Created, one.result.Err = true, one.uncertain, nil
	case sarama.ErrRequestTimedOut:
		one.uncertain = true
		one.retry(refused(one.topic, answer.Err, message, a, brokers))
	default:
		err := refused(one.topic, answer.Err, message, a, brokers)
		if err.Retry {
			one.retry(err)
		} else {
			one.fail(err)
		}
	}
}

// fail ends the work.
func (one *work) fail(err *TopicError) { one.done, one.result.Err = true, err }

// retry leaves the work open; err stands if no attempt is left.
func (one *work) retry(err *TopicError) { one.result.Err = err }

// refused explains why the controller did not create a topic.
func refused(t NewTopic, code sarama.KError, message string, a *admin, brokers int) *TopicError {
	e := &TopicError{Topic: t.Name, Cause: code}
	said := refusal(code, message)
	switch code {
	case sarama.ErrTopicAuthorizationFailed, sarama.ErrClusterAuthorizationFailed:
		e.Reason = "was not created: the principal may not create it"
		e.Next = "grant it: " + a.grant("Create", t.Name)
	case sarama.ErrInvalidReplicationFactor:
		e.Reason = fmt.Sprintf("was not created: replication factor %s is not possible, the cluster lists %s (%s)", counted(int32(t.Replication)), plural(brokers, "broker"), said)
		e.Next = "set kafka.create_topics.replication_factor to at most the number of brokers"
	case sarama.ErrInvalidPartitions:
		e.Reason = fmt.Sprintf("was not created: the cluster refuses %s partitions (%s)", counted(t.Partitions), said)
		e.Next = "set another kafka.create_topics.partitions"
	case sarama.ErrInvalidConfig:
		e.Reason = fmt.Sprintf("was not created: the cluster refuses a config of %s (%s)", settings(t.Configs), said)
		e.Next = "correct kafka.create_topics.configs"
	case sarama.ErrPolicyViolation:
		e.Reason = fmt.Sprintf("was not created: a policy of the cluster forbids it (%s)", said)
		e.Next = fmt.Sprintf("ask the cluster's operators; asked were %s partitions, replication factor %s, configs %s", counted(t.Partitions), counted(int32(t.Replication)), settings(t.Configs))
	case sarama.ErrInvalidTopic:
		e.Reason = fmt.Sprintf("was not created: the cluster refuses the name (%s)", said)
		e.Next = "a name has up to 249 letters, digits, dots, underscores and hyphens, is not . or .., and may not differ from another topic's only by dots for underscores"
	case sarama.ErrThrottlingQuotaExceeded:
		e.Reason, e.Retry = fmt.Sprintf("was not created: the quota for creating topics is used up (%s)", said), true
		e.Next = "run the command again later"
	default:
		e.Reason = fmt.Sprintf("was not created: %s", said)
		e.Retry = classify(code).class == classRetry
		if e.Retry {
			e.Next = "run the command again"
		}
	}
	return e
}

// grant is the command that adds an ACL for us on a topic.
func (a *admin) grant(operation, topic string) string {
	principal := "User:<the principal of cdcpub>"
	if a.config.SASL != nil && a.config.SASL.User != "" {
		principal = "User:" + a.config.SASL.User
	}
	return fmt.Sprintf("kafka-acls.sh --bootstrap-server %s --add --allow-principal '%s' --operation %s --topic '%s'",
		a.config.Brokers[0], principal, operation, topic)
}

// counted is a count of a topic to create.
func counted(n int32) string {
	if n < 0 {
		return "of the broker's default"
	}
	return fmt.Sprint(n)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// settings lists configs in the order of their names.
func settings(configs map[string]string) string {
	if len(configs) == 0 {
		return "none"
	}
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		pairs = append(pairs, name+"="+configs[name])
	}
	return strings.Join(pairs, ", ")
}
