package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// NewTopic is a topic to create.
type NewTopic struct {
	Name string
	// Partitions and Replication are at least 1, or -1 for the broker's
	// default (KIP-464, Kafka 2.4).
	Partitions  int32
	Replication int16
	Configs     map[string]string
}

// Created is what became of a NewTopic.
type Created struct {
	Name string
	// Created says that the topic was made by this call. It is false when the
	// topic existed, which is no error; its settings were neither compared
	// nor changed. When the answer to a request was lost, a topic that was
	// missing before it and is there after it counts as made by it.
	Created bool
	// Err is nil or a *TopicError. With Created it means that the topic was
	// made but could not be seen on every broker.
	Err error
}

// TopicError says why a topic was not created, or cannot be seen.
type TopicError struct {
	Topic string
	// Reason says what is wrong and Next the cure.
	Reason, Next string
	// Retry: the same call may succeed later, though nobody changes anything.
	Retry bool
	// Cause is the error underneath, if there is one.
	Cause error
}

func (e *TopicError) Error() string {
	text := fmt.Sprintf("kafka: topic %q: %s", e.Topic, e.Reason)
	if e.Next != "" {
		text += "; " + e.Next
	}
	return text
}

// Unwrap returns the cause.
func (e *TopicError) Unwrap() error { return e.Cause }

const (
	// createTimeout is how long the controller may take for one request.
	createTimeout = 20 * time.Second
	// settleTimeout bounds the wait until all brokers know the new topics.
	settleTimeout = 30 * time.Second
	// createPause and settlePause keep attempts apart.
	createPause = 200 * time.Millisecond
	settlePause = 50 * time.Millisecond
	// createAttempts and createLimit bound the requests for one topic.
	createAttempts = 10
	createLimit    = time.Minute
	// createBatch bounds the topics of one request: a controller refuses
	// requests with more than 10,000 partitions.
	createBatch = 50
)

// CreateTopics creates the topics that do not exist, and waits until every
// broker that can be reached knows a leader for each of their partitions. It
// never alters a topic. The results are in the order of the topics.
//
// What concerns one topic is in its Err. The error is for what concerns all:
// the list itself is wrong, no broker can be reached, or ctx has ended; then
// the results, if any, are what was known by then. The call is bounded by ctx
// and by limits of its own (ten attempts within a minute, then half a minute
// for the wait), opens connections of its own, and is safe for concurrent use.
func (c *Client) CreateTopics(ctx context.Context, topics []NewTopic) ([]Created, error) {
	if err := checkNewTopics(topics); err != nil {
		return nil, err
	}
	if len(topics) == 0 {
		return nil, nil
	}
	w := newWorks(&c.config, topics)
	err := w.survey(ctx)
	if err == nil {
		err = w.create(ctx)
	}
	if err == nil {
		err = w.settle(ctx)
	}
	if err != nil {
		err = fmt.Errorf("kafka: creating topics: %w", err)
	}
	return w.results(), err
}

// checkNewTopics returns all problems of a list that no broker need judge.
func checkNewTopics(topics []NewTopic) error {
	var problems []error
	bad := func(name, format string, args ...any) {
		problems = append(problems, fmt.Errorf("kafka: topic %q: "+format, append([]any{name}, args...)...))
	}
	seen := make(map[string]bool)
	for _, t := range topics {
		if seen[t.Name] {
			bad(t.Name, "is to be created twice")
		}
		seen[t.Name] = true
		if t.Name == "" {
			bad(t.Name, "the name is empty")
		}
		if t.Partitions < 1 && t.Partitions != -1 {
			bad(t.Name, "%d partitions: at least 1 is needed, or -1 for the broker's default", t.Partitions)
		}
		if t.Replication < 1 && t.Replication != -1 {
			bad(t.Name, "replication factor %d: at least 1 is needed, or -1 for the broker's default", t.Replication)
		}
	}
	return errors.Join(problems...)
}

// work is one topic on its way. Owned by the caller of CreateTopics.
type work struct {
	topic NewTopic
	// done: nothing more is to be asked of the controller.
	done bool
	// uncertain: an attempt has no answer, and may have created the topic.
	uncertain bool
	// partitions of the new topic, 0 while unknown.
	partitions int32
	result     Created
}

// works is the state of one call. Owned by the caller of CreateTopics.
type works struct {
	// admin looks, patient makes the requests that may take long.
	admin, patient *admin
	all            []*work
	// brokers are the addresses of the newest metadata, the controller first.
	brokers []string
}

func newWorks(c *Config, topics []NewTopic) *works {
	w := &works{
		admin:   newLooker(c),
		patient: newAdmin(c, createTimeout, createTimeout+lookTimeout),
	}
	for _, t := range topics {
		w.all = append(w.all, &work{topic: t, result: Created{Name: t.Name}})
	}
	return w
}

// open are the topics that the controller must still be asked for.
func (w *works) open() []*work {
	var open []*work
	for _, one := range w.all {
		if !one.done {
			open = append(open, one)
		}
	}
	return open
}

func (w *works) results() []Created {
	results := make([]Created, len(w.all))
	for i, one := range w.all {
		results[i] = one.result
	}
	return results
}

// survey finds the brokers, and the topics that exist already: for those no
// right to create is needed.
func (w *works) survey(ctx context.Context) error {
	var names []string
	for _, one := range w.all {
		names = append(names, one.topic.Name)
	}
	var found Cluster
	found.BootstrapUnreachable = make(map[string]string)
	g, err := w.admin.bootstrap(ctx, names, &found)
	if err != nil {
		return err
	}
	w.learnBrokers(g.metadata)
	exists := make(map[string]bool)
	for _, m := range g.metadata.Topics {
		exists[m.Name] = m.Err == sarama.ErrNoError || m.Err == sarama.ErrLeaderNotAvailable
	}
	for _, one := range w.all {
		one.done = exists[one.topic.Name]
	}
	return nil
}

// learnBrokers takes the addresses of newer metadata. Bootstrap addresses come
// last: with KRaft any broker forwards the request to the controller.
func (w *works) learnBrokers(m *sarama.MetadataResponse) {
	var controller, others []string
	for _, b := range m.Brokers {
		if b.ID() == m.ControllerID {
			controller = append(controller, b.Addr())
		} else {
			others = append(others, b.Addr())
		}
	}
	w.brokers = distinct(append(append(controller, others...), w.admin.config.Brokers...))
}
