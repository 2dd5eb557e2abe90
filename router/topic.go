package router

import (
	"errors"
	"fmt"
	"strings"
)

// maxTopicName is Kafka's limit for the length of a topic name, in bytes.
const maxTopicName = 249

// topicPart is literal text, or the value of a column when column is set.
type topicPart struct {
	literal string
	column  string
}

// parseTopic splits a template. A template that could never give a legal topic
// name is an error.
func parseTopic(template string) ([]topicPart, error) {
	var parts []topicPart
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			parts = append(parts, topicPart{literal: literal.String()})
			literal.Reset()
		}
	}
	for rest := template; rest != ""; {
		switch {
		case strings.HasPrefix(rest, "{{"), strings.HasPrefix(rest, "}}"):
			literal.WriteByte(rest[0])
			rest = rest[2:]
		case rest[0] == '{':
			column, after, closed := strings.Cut(rest[1:], "}")
			if !closed {
				return nil, fmt.Errorf("the placeholder %q is not closed; write {{ for a brace", rest)
			}
			if column == "" || strings.Contains(column, "{") {
				return nil, fmt.Errorf("the placeholder {%s} does not name a column", column)
			}
			flush()
			parts = append(parts, topicPart{column: column})
			rest = after
		case rest[0] == '}':
			return nil, errors.New("a closing brace without an opening one; write }} for a brace")
		default:
			literal.WriteByte(rest[0])
			rest = rest[1:]
		}
	}
	flush()
	return parts, checkTopicParts(parts)
}

func checkTopicParts(parts []topicPart) error {
	constant, name := true, ""
	for _, part := range parts {
		constant = constant && part.column == ""
		name += part.literal
	}
	if !constant {
		// The values can still make "." or the empty name legal, so put a
		// letter in their place.
		name += "x"
	}
	if problem := topicNameProblem(name); problem != "" {
		return errors.New(problem)
	}
	return nil
}

// CheckTopicName says why no topic can have this name, or nil: Kafka wants 1 to
// 249 characters of [a-zA-Z0-9._-], neither "." nor "..". Long names are cut in
// the error.
func CheckTopicName(name string) error {
	if problem := topicNameProblem(name); problem != "" {
		return fmt.Errorf("topic name %.40q %s", name, problem)
	}
	return nil
}

// topicNameProblem says what makes a name illegal in Kafka, or "" when it is
// legal (org.apache.kafka.common.internals.Topic: 1 to 249 characters of
// [a-zA-Z0-9._-], neither "." nor "..").
func topicNameProblem[T ~string | ~[]byte](name T) string {
	switch {
	case len(name) == 0:
		return "is empty"
	case len(name) > maxTopicName:
		return fmt.Sprintf("is longer than %d characters", maxTopicName)
	case string(name) == "." || string(name) == "..":
		return "is a name that Kafka forbids"
	}
	for i := range len(name) {
		if !topicByte(name[i]) {
			return fmt.Sprintf("has %q at offset %d; only letters, digits, '.', '_' and '-' are legal in a topic name", name[i:i+1], i)
		}
	}
	return ""
}

func topicByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
}

// topic names the topic of a row without allocating once the name is known:
// the name is rendered into a buffer and interned.
func (r *Router) topic(p *plan, values [][]byte) (string, *fault) {
	if p.aggregateType >= 0 {
		if topic, ok := r.config.Topics[string(values[p.aggregateType])]; ok {
			return topic, nil
		}
	}
	if len(p.topic) == 0 {
		return "", p.unmapped(values)
	}
	name := r.topicName[:0]
	for _, part := range p.topic {
		if part.index < 0 {
			name = append(name, part.literal...)
			continue
		}
		value := values[part.index]
		if len(value) == 0 {
			return "", columnFault(part.column, nullOrEmpty(value)+" and the topic depends on it")
		}
		if len(name)+len(value) > maxTopicName {
			return "", p.illegalTopic(part.column, string(name)+shorten(value), fmt.Sprintf("is longer than %d characters", maxTopicName))
		}
		name = append(name, value...)
	}
	if topic, ok := r.topics.lookup(name); ok {
		return topic, nil
	}
	if problem := topicNameProblem(name); problem != "" {
		return "", p.illegalTopic(p.illegalColumn(values), string(name), problem)
	}
	return r.topics.intern(name), nil
}

func (p *plan) unmapped(values [][]byte) *fault {
	value := values[p.aggregateType]
	if len(value) == 0 {
		return columnFault(p.aggregateTypeName, nullOrEmpty(value)+" and the topic depends on it")
	}
	f := columnFault(p.aggregateTypeName, fmt.Sprintf("is %q, which is not in the map of topics, and there is no topic template", shorten(value)))
	f.hint = "add the aggregate type to kafka.topics, or set kafka.topic for the types that are not in it"
	return f
}

func (p *plan) illegalTopic(column, topic, problem string) *fault {
	f := columnFault(column, fmt.Sprintf("gives the topic name %q, which %s", topic, problem))
	f.topic = topic
	f.hint = "map the aggregate type to a legal name in kafka.topics or change the kafka.topic template; " + giveUpHint
	return f
}

// illegalColumn is the column whose value makes the topic illegal; when it is
// the name as a whole, the first one.
func (p *plan) illegalColumn(values [][]byte) string {
	first := ""
	for _, part := range p.topic {
		if part.index < 0 {
			continue
		}
		if first == "" {
			first = part.column
		}
		for _, c := range values[part.index] {
			if !topicByte(c) {
				return part.column
			}
		}
	}
	return first
}

func nullOrEmpty(value []byte) string {
	if value == nil {
		return "is NULL"
	}
	return "is empty"
}
