package router

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Validate reports all problems of the configuration at once, joined, or nil.
func (c Config) Validate() error {
	var problems []error
	problems = append(problems, c.columnProblems()...)
	problems = append(problems, c.headerProblems()...)
	problems = append(problems, c.topicProblems()...)
	return errors.Join(problems...)
}

func (c Config) columnProblems() (problems []error) {
	required := []struct {
		part   string
		column Column
	}{
		{"event_id", c.Columns.EventID},
		{"aggregate_id", c.Columns.AggregateID},
		{"payload", c.Columns.Payload},
	}
	for _, r := range required {
		if r.column.Name == "" {
			problems = append(problems, fmt.Errorf("columns: %s needs a column name", r.part))
		}
		if r.column.Optional {
			problems = append(problems, fmt.Errorf("columns: %s cannot be optional", r.part))
		}
	}
	if c.Columns.AggregateType.Optional {
		problems = append(problems, errors.New("columns: aggregate_type cannot be optional; leave it empty if the topic does not depend on it"))
	}
	return problems
}

func (c Config) headerProblems() (problems []error) {
	filledBy := map[string]int{}
	carriesEventID := false
	for i, h := range c.Headers {
		carriesEventID = carriesEventID || h.Column.Name == c.Columns.EventID.Name
		if h.Header == "" || h.Column.Name == "" {
			problems = append(problems, fmt.Errorf("headers[%d]: header %q of column %q needs both names", i, h.Header, h.Column.Name))
			continue
		}
		if first, taken := filledBy[h.Header]; taken {
			problems = append(problems, fmt.Errorf("headers[%d]: header %q is already filled by headers[%d]", i, h.Header, first))
			continue
		}
		filledBy[h.Header] = i
	}
	if eventID := c.Columns.EventID.Name; eventID != "" && !carriesEventID {
		problems = append(problems, fmt.Errorf("headers: none has the event id (column %s), so consumers could not recognise repeats; add one, for example id: %s", eventID, eventID))
	}
	return problems
}

func (c Config) topicProblems() (problems []error) {
	if c.Topic == "" {
		if len(c.Topics) == 0 {
			problems = append(problems, errors.New("topic: a topic template is needed"))
		}
	} else if _, err := parseTopic(c.Topic); err != nil {
		problems = append(problems, fmt.Errorf("topic %q: %w", c.Topic, err))
	}
	if len(c.Topics) > 0 && c.Columns.AggregateType.Name == "" {
		problems = append(problems, errors.New("topics: columns.aggregate_type must be set, since topics are looked up by it"))
	}
	for _, aggregateType := range slices.Sorted(maps.Keys(c.Topics)) {
		if aggregateType == "" {
			problems = append(problems, errors.New("topics: the empty aggregate type cannot be mapped"))
		}
		if problem := topicNameProblem(c.Topics[aggregateType]); problem != "" {
			problems = append(problems, fmt.Errorf("topics: %q of aggregate type %q %s", c.Topics[aggregateType], aggregateType, problem))
		}
	}
	return problems
}
