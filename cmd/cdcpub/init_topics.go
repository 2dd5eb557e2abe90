package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cdcpub/cdcpub/internal/check"
	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/internal/human"
	"github.com/cdcpub/cdcpub/internal/kafka"
	"github.com/cdcpub/cdcpub/internal/provision"
	"github.com/cdcpub/cdcpub/router"
)

// topicColumns are the columns that kafka.topic is made of.
func topicColumns(c *config.Config) []string {
	return router.Config{Topic: c.Kafka.Topic}.RequiredColumns()
}

// neededTopics are those of the map and of the aggregate types, sorted.
func neededTopics(c *config.Config, types []string) ([]string, error) {
	topics := slices.Collect(maps.Values(c.Kafka.Topics))
	for _, aggregateType := range types {
		topic, err := topicOf(c, aggregateType)
		if err != nil {
			return nil, err
		}
		topics = append(topics, topic)
	}
	slices.Sort(topics)
	return slices.Compact(topics), nil
}

// topicOf is the topic of an aggregate type, as the router names it.
func topicOf(c *config.Config, aggregateType string) (string, error) {
	routed := routing(c)
	typeColumn := routed.Columns.AggregateType.Name
	if _, mapped := c.Kafka.Topics[aggregateType]; !mapped {
		others := slices.DeleteFunc(topicColumns(c), func(name string) bool { return name == typeColumn })
		if len(others) > 0 {
			return "", fmt.Errorf("the topic of %q does not follow from its type alone: kafka.topic is made of %s too; name such topics in kafka.topics, or create them yourself",
				aggregateType, strings.Join(others, ", "))
		}
	}
	return check.TopicOf(routed, aggregateType)
}

// reachKafka is the look before anything is created: a slot that is there when
// its topics cannot be keeps WAL for nobody.
func (s *setup) reachKafka(ctx context.Context) error {
	if s.config.Kafka.CreateTopics.Partitions == 0 || len(s.topics) == 0 {
		return nil
	}
	client, err := kafkaClient(s.config)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	defer client.Close()
	cluster, err := client.Describe(ctx, nil)
	if err == nil {
		return nil
	}
	var why []string
	for _, address := range slices.Sorted(maps.Keys(cluster.BootstrapUnreachable)) {
		why = append(why, cluster.BootstrapUnreachable[address])
	}
	if len(why) == 0 {
		return err
	}
	return &exitError{code: exitFailure, err: &provision.ProblemsError{Problems: []provision.Problem{{
		Object: "Kafka", What: "cannot be reached, and topics are to be created there: " + strings.Join(why, "; "),
		Cure: "correct kafka.brokers, kafka.tls or kafka.sasl, or start a broker, and run init again; without kafka.create_topics init does not need Kafka",
	}}}}
}

// createTopics creates those that are missing, if kafka.create_topics is on.
func (s *setup) createTopics(ctx context.Context) error {
	wanted := s.config.Kafka.CreateTopics
	switch {
	case wanted.Partitions == 0:
		for _, topic := range s.topics {
			s.report(provision.Step{Object: "topic " + topic, Done: "is needed, and was not looked at (kafka.create_topics is off)"})
		}
		return nil
	case len(s.topics) == 0:
		s.report(provision.Step{Object: "topics", Done: "none is known by name", Next: "give the aggregate types: --types order,customer"})
		return nil
	}
	client, err := kafkaClient(s.config)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	defer client.Close()
	topics := make([]kafka.NewTopic, len(s.topics))
	for i, name := range s.topics {
		topics[i] = kafka.NewTopic{Name: name, Partitions: int32(wanted.Partitions), Replication: int16(wanted.ReplicationFactor), Configs: wanted.Configs}
	}
	results, err := client.CreateTopics(ctx, topics)
	if err != nil {
		return fmt.Errorf("%w; what is in PostgreSQL stays: run init again when Kafka can be reached", err)
	}
	return s.reportTopics(results, described(ctx, client, results))
}

// described describes the topics that are there, by name. Where that is not
// possible there is nothing.
func described(ctx context.Context, client *kafka.Client, results []kafka.Created) map[string]kafka.Topic {
	var names []string
	for _, result := range results {
		if result.Err == nil {
			names = append(names, result.Name)
		}
	}
	found := map[string]kafka.Topic{}
	if len(names) == 0 {
		return found
	}
	cluster, err := client.Describe(ctx, names)
	if err != nil {
		return found
	}
	for _, topic := range cluster.Topics {
		found[topic.Name] = topic
	}
	return found
}

func (s *setup) reportTopics(results []kafka.Created, described map[string]kafka.Topic) error {
	failed, code := 0, exitFailure
	for _, result := range results {
		step := provision.Step{Object: "topic " + result.Name}
		var why *kafka.TopicError
		switch {
		case errors.As(result.Err, &why):
			failed++
			step.Done, step.Next = "not created: "+why.Reason, why.Next
			if result.Created {
				step.Done = "created, but " + why.Reason
			}
			if !why.Retry {
				code = exitRefused
			}
		case result.Created:
			step.Done, step.Next = s.created(described[result.Name])
		default:
			step.Done = "exists" + s.compare(described[result.Name])
		}
		s.report(step)
	}
	if failed > 0 {
		return &exitError{code: code, err: fmt.Errorf("%d of %s are not ready", failed, human.Plural(int64(len(results)), "topic"))}
	}
	return nil
}

// created says what a new topic has, and what is better changed before its first
// record.
func (s *setup) created(topic kafka.Topic) (done, next string) {
	has := partitions(int32(s.config.Kafka.CreateTopics.Partitions))
	if topic.MinReplicas > 0 {
		has += ", " + human.Plural(int64(topic.MinReplicas), "replica")
	}
	if topic.MinReplicas == 1 {
		next = "if the disk of its broker fails, acknowledged records are gone: where there are three brokers, delete it before its first record, set kafka.create_topics.replication_factor to 3, and run init again"
	}
	return "created (" + has + ")", next
}

// compare says what an existing topic has and what it would have been given.
func (s *setup) compare(topic kafka.Topic) string {
	wanted := int32(s.config.Kafka.CreateTopics.Partitions)
	switch topic.Partitions {
	case 0:
		return ""
	case wanted:
		return " (" + partitions(topic.Partitions) + ")"
	}
	return fmt.Sprintf(" (%s, kafka.create_topics says %d; nothing was changed)", partitions(topic.Partitions), wanted)
}

func partitions(n int32) string { return human.Plural(int64(n), "partition") }

// topicCommands are the commands that create the topics, as SQL comments.
func (s *setup) topicCommands() string {
	c := &s.config.Kafka
	switch {
	case len(s.topics) == 0 && c.CreateTopics.Partitions == 0:
		return ""
	case len(s.topics) == 0:
		return "\n-- The topics: none is known by name. Give the aggregate types, and their commands\n-- are here: --types order,customer\n"
	}
	var options strings.Builder
	if n := c.CreateTopics.Partitions; n > 0 {
		fmt.Fprintf(&options, " --partitions %d", n)
	}
	if n := c.CreateTopics.ReplicationFactor; n > 0 {
		fmt.Fprintf(&options, " --replication-factor %d", n)
	}
	for _, name := range slices.Sorted(maps.Keys(c.CreateTopics.Configs)) {
		options.WriteString(" --config " + shellWord(name+"="+c.CreateTopics.Configs[name]))
	}
	command := "kafka-topics.sh --bootstrap-server " + shellWord(strings.Join(c.Brokers, ","))
	if c.TLS.Enabled || c.SASL.Mechanism != "" {
		command += " --command-config client.properties"
	}
	lines := []string{"", "-- The topics, for a shell with Kafka's tools:"}
	for _, topic := range s.topics {
		lines = append(lines, "--     "+human.OneLine(command+" --create --if-not-exists --topic "+topic+options.String()))
	}
	return strings.Join(lines, "\n") + "\n"
}

// shellWord quotes what a shell would not take as one word.
func shellWord(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:,=@%+", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
