package verify

import "fmt"

// history is what the checker derives from the rows before any record.
type history struct {
	rows []Row
	byID map[string]int32
	// places lists the partitions that rows belong to; home has the index of
	// each row's place, -1 when it is not known.
	places []TopicPartition
	home   []int32
	// successor is the next row of the same aggregate, -1 at its end.
	successor []int32
}

// aggregate is what is known of one aggregate while the rows pass.
type aggregate struct {
	last       int32
	maxVersion int64
}

type aggregateKey struct{ kind, id string }

func readHistory(rows []Row, opts Options, report *Report) history {
	h := history{
		rows:      rows,
		byID:      make(map[string]int32, len(rows)),
		home:      make([]int32, len(rows)),
		successor: make([]int32, len(rows)),
	}
	report.Events = len(rows)
	if len(rows) == 0 && !opts.AllowEmpty {
		report.add(Violation{Kind: Input, Partition: -1, Offset: -1}, func() string {
			return "the history has no rows: a check of nothing proves nothing"
		})
	}
	places := make(map[TopicPartition]int32)
	for i, r := range rows {
		h.readIdentity(int32(i), r, report)
		h.home[i] = h.readPlace(r, places, opts, report)
		if i > 0 && r.CommitEnd < rows[i-1].CommitEnd {
			report.add(fault(r), func() string {
				return fmt.Sprintf("%s stands behind a row committed at %s: the history is not in commit order", name(r), rows[i-1].CommitEnd)
			})
		}
		if opts.Quarantined[r.EventID] {
			report.Quarantined++
		}
	}
	report.Aggregates = h.readAggregates(report)
	return h
}

// readIdentity refuses a history in which an event id names two rows: whose
// record is missing could not be said. Rows without an id are not found by it.
func (h *history) readIdentity(i int32, r Row, report *Report) {
	if r.EventID == "" {
		return
	}
	if earlier, taken := h.byID[r.EventID]; taken {
		report.add(fault(r), func() string {
			return fmt.Sprintf("%s has the event id of %s: its records cannot be told apart", name(r), name(h.rows[earlier]))
		})
		return
	}
	h.byID[r.EventID] = i
}

func (h *history) readPlace(r Row, places map[TopicPartition]int32, opts Options, report *Report) int32 {
	topic := opts.Expect.Topic(r)
	count := opts.Partitions[topic]
	if count <= 0 {
		report.add(fault(r), func() string {
			return fmt.Sprintf("%s belongs in topic %q, whose number of partitions was not given", name(r), topic)
		})
		return -1
	}
	tp := TopicPartition{topic, opts.Expect.Partition(opts.Expect.Key(r), count)}
	place, known := places[tp]
	if !known {
		place = int32(len(h.places))
		places[tp] = place
		h.places = append(h.places, tp)
	}
	return place
}

// readAggregates chains the rows of each aggregate and counts the inversions
// that are in the history itself. It returns the number of aggregates.
func (h *history) readAggregates(report *Report) int {
	aggregates := make(map[aggregateKey]aggregate)
	for n, r := range h.rows {
		i := int32(n)
		h.successor[i] = -1
		key := aggregateKey{r.AggregateType, r.AggregateID}
		a, known := aggregates[key]
		if known {
			h.successor[a.last] = i
		}
		if known && r.Version < a.maxVersion {
			report.WriterInversions++
		}
		if !known || r.Version > a.maxVersion {
			a.maxVersion = r.Version
		}
		a.last = i
		aggregates[key] = a
	}
	return len(aggregates)
}

func fault(r Row) Violation {
	return Violation{Kind: Input, EventID: r.EventID, Partition: -1, Offset: -1}
}
