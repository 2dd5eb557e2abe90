package check

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cdcpub/cdcpub/router"
	"github.com/cdcpub/cdcpub/wal"
)

// Wanted are the topics that the configuration makes of the aggregate types
// that are known.
type Wanted struct {
	// Topics are sorted.
	Topics []string
	// Illegal are the types that give no topic, each with why.
	Illegal map[string]string
	// OtherColumns are the columns of the template besides the aggregate type;
	// with any, no type gives a topic unless it is in kafka.topics.
	OtherColumns []string
	// Open tells if the template makes topics of types that nobody named.
	Open bool
}

// Wanted finds the topics of kafka.topics and of the types.
func (s *Setup) Wanted(types []string) Wanted {
	w := Wanted{Illegal: map[string]string{}}
	placeholders := router.Config{Topic: s.Route.Topic}.RequiredColumns()
	typeColumn := s.Route.Columns.AggregateType.Name
	for _, column := range placeholders {
		if column != typeColumn {
			w.OtherColumns = append(w.OtherColumns, column)
		}
	}
	topics := map[string]bool{}
	for _, topic := range s.Route.Topics {
		topics[topic] = true
	}
	if s.Route.Topic != "" && len(placeholders) == 0 {
		topics[s.Route.Topic] = true
	}
	w.Open = len(placeholders) > 0
	for _, aggregateType := range types {
		_, mapped := s.Route.Topics[aggregateType]
		switch {
		case mapped, s.Route.Topic != "" && len(placeholders) == 0, len(w.OtherColumns) > 0:
			continue
		}
		topic, problem := s.topicOf(aggregateType)
		if problem != "" {
			w.Illegal[aggregateType] = problem
			continue
		}
		topics[topic] = true
	}
	w.Topics = slices.Sorted(maps.Keys(topics))
	return w
}

// topicOf is TopicOf with the problem as text.
func (s *Setup) topicOf(aggregateType string) (topic, problem string) {
	topic, err := TopicOf(s.Route, aggregateType)
	if err != nil {
		return "", err.Error()
	}
	return topic, ""
}

// TopicOf is the topic of an aggregate type. It asks the router itself, with a
// row that has the type and nothing else that matters for the topic. The error
// says why there is none.
func TopicOf(configured router.Config, aggregateType string) (string, error) {
	columns := configured.Columns
	probe := router.Config{
		Columns: router.Columns{
			EventID: columns.EventID, AggregateID: columns.AggregateID, Payload: columns.Payload, AggregateType: columns.AggregateType,
		},
		Headers: []router.HeaderColumn{{Header: "id", Column: columns.EventID}},
		Topic:   configured.Topic, Topics: configured.Topics,
	}
	route, err := router.New(probe)
	if err != nil {
		return "", err
	}
	relation := &wal.Relation{}
	var values [][]byte
	for _, name := range probe.RequiredColumns() {
		relation.Columns = append(relation.Columns, wal.Column{Name: name})
		value := "x"
		if name == columns.AggregateType.Name {
			value = aggregateType
		}
		values = append(values, []byte(value))
	}
	record, err := route.Route(time.Unix(0, 0), wal.Row{Relation: relation, Values: values})
	var refused *router.Error
	if errors.As(err, &refused) {
		return "", errors.New(refused.Reason)
	}
	return record.Topic, err
}

// types are all that are known, sorted: those of the command line if it names
// any, else those of the rows.
func (f *Facts) types() []string {
	known := map[string]bool{}
	for _, name := range f.Setup.Types {
		known[name] = true
	}
	if len(known) == 0 {
		for i := range f.Postgres.Tables {
			for _, name := range f.Postgres.Tables[i].Types {
				known[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(known))
}

// Topics are those that the facts about PostgreSQL and the configuration make
// known: what Kafka is to be asked for.
func (f *Facts) Topics() []string { return f.Setup.Wanted(f.types()).Topics }

// command is a cdcpub command with the configuration file.
func (s *Setup) command(words ...string) string {
	line := "cdcpub " + strings.Join(words, " ")
	if s.File != "" && s.File != "cdcpub.yaml" {
		line += " -c " + shell(s.File)
	}
	return line
}

// initAsOwner is the command that creates what takes the rights of the tables'
// owner, which the role of the service need not have.
func (j *judge) initAsOwner() string {
	if about := j.Postgres.About; about != nil && about.Superuser {
		return j.Setup.command("init")
	}
	return j.Setup.command("init") + " --admin-url postgres://OWNER@HOST/" + shell(j.Postgres.Database)
}

// ident quotes a name for SQL.
func ident(parts ...string) string {
	quoted := make([]string, 0, len(parts))
	for _, part := range parts {
		quoted = append(quoted, `"`+strings.ReplaceAll(part, `"`, `""`)+`"`)
	}
	return strings.Join(quoted, ".")
}

// shell quotes a word for a shell if it needs it.
func shell(word string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._-/:,=@%+", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
