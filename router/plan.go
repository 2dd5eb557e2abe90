package router

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cdcpub/cdcpub/wal"
)

// Type OIDs, fixed in pg_type.dat, of the types whose text is read.
const (
	byteaOID       = 17
	timestampOID   = 1114
	timestamptzOID = 1184
)

// typeOf is the type of the column's text. The text of a domain is that of the
// type it is over.
func typeOf(c wal.Column) uint32 {
	switch c.Base {
	case "bytea":
		return byteaOID
	case "timestamp":
		return timestampOID
	case "timestamptz":
		return timestamptzOID
	}
	return c.TypeOID
}

// plan is a Config applied to one Relation: names became indexes. It is never
// changed after it was made.
type plan struct {
	table string
	// unusable is set when the table lacks columns or has one of a wrong type.
	unusable *fault

	columns           int
	eventID           field
	key               field
	value             field
	headers           []plannedHeader
	spread            int // the column of header objects, or -1
	spreadName        string
	timestamp         int // or -1
	timestampName     string
	timestampType     uint32
	occurredAt        int // or -1, also when it cannot be read
	occurredAtType    uint32
	aggregateType     int // only when the topic map is used, else -1
	aggregateTypeName string
	topic             []plannedPart
}

// field is a column whose bytes go into the record.
type field struct {
	name  string
	index int
	bytea bool
}

type plannedHeader struct {
	field
	key      string
	omitNull bool
}

// plannedPart is a topicPart; index is -1 for literal text.
type plannedPart struct {
	topicPart
	index int
}

// planner resolves columns of one relation and collects those that are missing.
type planner struct {
	config  *Config
	rel     *wal.Relation
	missing []string
}

func newPlan(config *Config, topic []topicPart, rel *wal.Relation) *plan {
	b := &planner{config: config, rel: rel}
	p := b.plan(topic)
	p.unusable = b.fault(p)
	return p
}

func (b *planner) plan(topic []topicPart) *plan {
	columns := &b.config.Columns
	p := &plan{
		table:             b.rel.String(),
		columns:           len(b.rel.Columns),
		eventID:           b.field(columns.EventID),
		key:               b.field(columns.AggregateID),
		value:             b.field(columns.Payload),
		spread:            b.index(columns.Headers),
		spreadName:        columns.Headers.Name,
		timestamp:         b.index(columns.Timestamp),
		timestampName:     columns.Timestamp.Name,
		aggregateType:     -1,
		aggregateTypeName: columns.AggregateType.Name,
	}
	if len(b.config.Topics) > 0 {
		p.aggregateType = b.index(columns.AggregateType)
	}
	for _, part := range topic {
		planned := plannedPart{topicPart: part, index: -1}
		if part.column != "" {
			planned.index = b.index(Named(part.column))
		}
		p.topic = append(p.topic, planned)
	}
	for _, h := range b.config.Headers {
		if f := b.field(h.Column); f.index >= 0 {
			p.headers = append(p.headers, plannedHeader{field: f, key: h.Header, omitNull: h.OmitNull})
		}
	}
	if p.timestamp >= 0 {
		p.timestampType = typeOf(b.rel.Columns[p.timestamp])
	}
	p.occurredAt, p.occurredAtType = b.occurredAt()
	return p
}

func (b *planner) index(column Column) int {
	if column.Name == "" {
		return -1
	}
	i := slices.IndexFunc(b.rel.Columns, func(c wal.Column) bool { return c.Name == column.Name })
	if i < 0 && !column.Optional && !slices.Contains(b.missing, column.Name) {
		b.missing = append(b.missing, column.Name)
	}
	return i
}

// occurredAt finds the column if the table has it in a type that holds an
// instant. That it has not makes no row unpublishable: it is only measured.
func (b *planner) occurredAt() (index int, typeOID uint32) {
	index = b.index(Column{Name: b.config.Columns.OccurredAt.Name, Optional: true})
	if index < 0 {
		return -1, 0
	}
	if typeOID = typeOf(b.rel.Columns[index]); !holdsInstant(typeOID) {
		return -1, 0
	}
	return index, typeOID
}

func holdsInstant(typeOID uint32) bool { return typeOID == timestampOID || typeOID == timestamptzOID }

func (b *planner) field(column Column) field {
	f := field{name: column.Name, index: b.index(column)}
	if f.index >= 0 {
		f.bytea = typeOf(b.rel.Columns[f.index]) == byteaOID
	}
	return f
}

// mostNames bounds a message.
const mostNames = 20

// names lists the columns of the relation.
func (b *planner) names() string {
	var names []string
	for _, c := range b.rel.Columns[:min(len(b.rel.Columns), mostNames)] {
		names = append(names, c.Name)
	}
	list := strings.Join(names, ", ")
	if more := len(b.rel.Columns) - len(names); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

// fault is about the relation as a whole: every row of it fails with it.
func (b *planner) fault(p *plan) *fault {
	if len(b.missing) > 0 {
		noun := "column "
		if len(b.missing) > 1 {
			noun = "columns "
		}
		return &fault{
			column: b.missing[0],
			reason: "the published table has no " + noun + strings.Join(b.missing, ", ") + "; its columns are " + b.names(),
			hint:   "name the columns that rows of this shape have in outbox.columns, outbox.headers and kafka.topic, or, if the publication has a column list, add them to it. Rows keep in the WAL the shape in which they were written: if the table does not have these columns any more, add them to it until such rows are published, then name the others again. Rows of two shapes in one transaction must be given up and written again: see README, 'A row that cannot be published'",
		}
	}
	if oid := p.timestampType; oid != 0 && !holdsInstant(oid) {
		return &fault{
			column: p.timestampName,
			reason: fmt.Sprintf("column %s has type OID %d, but a record timestamp needs timestamp or timestamptz", p.timestampName, oid),
			hint:   "name another column in outbox.columns.timestamp, or leave it out to use the commit time",
		}
	}
	return nil
}
