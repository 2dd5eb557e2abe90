package router

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cdcpub/cdcpub/wal"
)

// Router makes Kafka records of outbox rows. What it returns depends on its
// configuration and the row alone. It keeps caches, so one goroutine at a time
// may use it.
type Router struct {
	config        Config
	topicTemplate []topicPart

	// plans is keyed by identity: a Relation is immutable, and a changed table
	// comes as a new one. last is the plan of the row before, since rows of one
	// table come in runs.
	plans    map[*wal.Relation]*plan
	lastRel  *wal.Relation
	lastPlan *plan

	topics     interner
	headerKeys interner
	slab       headerSlab
	// scratch and topicName hold what is being built, between calls nothing.
	scratch   []Header
	topicName [maxTopicName]byte
}

// maxPlans bounds the cache. Relations are many only after many changes of
// tables or many reconnects, and then the old ones are not seen again.
const maxPlans = 256

// New checks the configuration and reports all its problems at once, joined.
func New(config Config) (*Router, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	r := &Router{
		config: config.clone(),
		plans:  map[*wal.Relation]*plan{},
	}
	if config.Topic != "" {
		template, err := parseTopic(config.Topic)
		if err != nil {
			return nil, fmt.Errorf("topic %q: %w", config.Topic, err)
		}
		r.topicTemplate = template
	}
	return r, nil
}

// clone detaches a Config from what its maker may still change.
func (c Config) clone() Config {
	c.Headers = slices.Clone(c.Headers)
	c.Topics = maps.Clone(c.Topics)
	return c
}

// Check tells without a row what would be wrong with every row of the relation:
// an *Error when columns are missing or of a wrong type. A preflight can build
// the relation from the catalog.
func (r *Router) Check(rel *wal.Relation) error {
	if rel == nil {
		return errNoRelation()
	}
	p := r.plan(rel)
	if p.unusable != nil {
		return p.fail(wal.Row{Relation: rel}, p.unusable)
	}
	return nil
}

// Route makes the record of a row of an outbox table. Which tables are outboxes
// is for the caller to know: any row that has the columns is routed. The commit time is that of the row's
// transaction; it becomes the record's timestamp unless a column does.
//
// The record shares the bytes of the row's values, which are never written
// again, but not the Values slice. Its headers may share one allocation with
// those of neighbouring records; they have no spare capacity, so appending to
// them copies.
//
// Every error is an *Error.
func (r *Router) Route(commitTime time.Time, row wal.Row) (Record, error) {
	if row.Relation == nil {
		return Record{}, errNoRelation()
	}
	p := r.plan(row.Relation)
	if len(row.Values) != p.columns {
		return Record{}, p.fail(row, &fault{
			reason: fmt.Sprintf("the row has %d values for %d columns", len(row.Values), p.columns),
			hint:   "report this as a defect of the decoder",
		})
	}
	record, f := r.record(p, commitTime, row.Values)
	if f != nil {
		return Record{}, p.fail(row, f)
	}
	return record, nil
}

func (r *Router) record(p *plan, commitTime time.Time, values [][]byte) (Record, *fault) {
	if p.unusable != nil {
		return Record{}, p.unusable
	}
	eventID, f := p.eventID.present(values)
	if f != nil {
		return Record{}, f
	}
	key, f := p.key.present(values)
	if f != nil {
		return Record{}, f
	}
	topic, f := r.topic(p, values)
	if f != nil {
		return Record{}, f
	}
	record := Record{Topic: topic, Key: key, EventID: eventID, OccurredAt: p.occurred(values)}
	if record.Timestamp, f = p.time(commitTime, values); f == nil {
		if record.Headers, f = r.headers(p, values); f == nil {
			record.Value, f = p.value.bytes(values)
		}
	}
	if f != nil && f.topic == "" {
		f.topic = topic
	}
	return record, f
}

func (r *Router) plan(rel *wal.Relation) *plan {
	if rel == r.lastRel {
		return r.lastPlan
	}
	p, ok := r.plans[rel]
	if !ok {
		if len(r.plans) >= maxPlans {
			r.forgetPlans()
		}
		p = newPlan(&r.config, r.topicTemplate, rel)
		r.plans[rel] = p
	}
	r.lastRel, r.lastPlan = rel, p
	return p
}

func (r *Router) forgetPlans() {
	clear(r.plans)
	r.lastRel, r.lastPlan = nil, nil
}
