package verify

import "slices"

// Kind says which promise a Violation breaks.
type Kind string

// The kinds of violations.
const (
	// Lost: a committed row is neither in its topic nor in the quarantine.
	Lost Kind = "lost"
	// OutOfOrder: a row came after a later row of its partition, or a repeated
	// run left rows out.
	OutOfOrder Kind = "out_of_order"
	// VersionInverted: a higher version of an aggregate came first although the
	// history has the versions in order. Every one is OutOfOrder as well.
	VersionInverted Kind = "version_inverted"
	// Foreign: no row explains the record.
	Foreign Kind = "foreign"
	// Altered: key, value, headers or timestamp differ from what the row makes.
	Altered Kind = "altered"
	// WrongPartition: the record lies in another topic or partition.
	WrongPartition Kind = "wrong_partition"
	// ExcessRewinds: a partition started over more often than the publisher.
	ExcessRewinds Kind = "excess_rewinds"
	// EarlyConfirmed: the slot had confirmed a row that was not in its topic.
	EarlyConfirmed Kind = "early_confirmed"
	// NeedlessRepeat: a row that was confirmed before a restart was sent after it.
	NeedlessRepeat Kind = "needless_repeat"
	// QuarantinedPublished: an event is in the quarantine and in a topic.
	QuarantinedPublished Kind = "quarantined_published"
	// Input: what was given cannot be judged, so nothing can be certified.
	Input Kind = "input"
)

// Violation is one broken promise.
type Violation struct {
	Kind    Kind   `json:"kind"`
	EventID string `json:"event_id,omitempty"`
	Topic   string `json:"topic,omitempty"`
	// Partition and Offset are -1 when the violation has none.
	Partition int32 `json:"partition"`
	Offset    int64 `json:"offset"`
	// Detail is a sentence for a person. It never shows a payload.
	Detail string `json:"detail"`
}

// Report is the result of a check. Each count is complete; Violations lists at
// most Options.MaxPerKind of each kind.
type Report struct {
	// Events counts the rows of the history, Aggregates the distinct pairs of
	// aggregate type and id among them.
	Events     int `json:"events"`
	Aggregates int `json:"aggregates"`
	// Records counts the records read, Partitions those that hold any.
	Records    int `json:"records"`
	Partitions int `json:"partitions"`

	Lost            int `json:"lost"`
	OutOfOrder      int `json:"out_of_order"`
	VersionInverted int `json:"version_inverted"`
	Foreign         int `json:"foreign"`
	Altered         int `json:"altered"`
	WrongPartition  int `json:"wrong_partition"`
	ExcessRewinds   int `json:"excess_rewinds"`
	EarlyConfirmed  int `json:"early_confirmed"`
	NeedlessRepeats int `json:"needless_repeats"`
	// QuarantinedPublished counts records of quarantined events.
	QuarantinedPublished int `json:"quarantined_published"`
	InputFaults          int `json:"input_faults"`

	// What follows is allowed and only counted.

	// Repeated counts the records beyond the first one of their event.
	Repeated int `json:"repeated"`
	// Rewinds is the largest number of times that one partition started over.
	Rewinds int `json:"rewinds"`
	// WriterInversions counts rows that the writers themselves committed after
	// a higher version of the same aggregate.
	WriterInversions int `json:"writer_inversions"`
	// Quarantined counts rows that the quarantine took.
	Quarantined int `json:"quarantined"`
	// Pending counts rows not yet sent when Options.Incomplete is set.
	Pending int `json:"pending"`
	// Others counts records of other producers in shared topics.
	Others int `json:"others"`
	// ConfirmedSamples and RestartSamples count the samples that were judged. A
	// promise without a sample was not checked.
	ConfirmedSamples int `json:"confirmed_samples"`
	RestartSamples   int `json:"restart_samples"`

	Violations []Violation `json:"violations,omitempty"`

	maxPerKind int
}

// OK reports whether no promise was broken and everything could be judged.
func (r Report) OK() bool { return r.broken() == 0 }

// Count returns the complete number of violations of one kind.
func (r Report) Count(k Kind) int {
	if n := r.counter(k); n != nil {
		return *n
	}
	return 0
}

var kinds = [...]Kind{
	Lost, OutOfOrder, VersionInverted, Foreign, Altered, WrongPartition,
	ExcessRewinds, EarlyConfirmed, NeedlessRepeat, QuarantinedPublished, Input,
}

func (r *Report) counter(k Kind) *int {
	switch k {
	case Lost:
		return &r.Lost
	case OutOfOrder:
		return &r.OutOfOrder
	case VersionInverted:
		return &r.VersionInverted
	case Foreign:
		return &r.Foreign
	case Altered:
		return &r.Altered
	case WrongPartition:
		return &r.WrongPartition
	case ExcessRewinds:
		return &r.ExcessRewinds
	case EarlyConfirmed:
		return &r.EarlyConfirmed
	case NeedlessRepeat:
		return &r.NeedlessRepeats
	case QuarantinedPublished:
		return &r.QuarantinedPublished
	case Input:
		return &r.InputFaults
	}
	return nil
}

// add counts a violation and lists it while its kind has room. The sentence is
// made only when it is listed, so that a wholly wrong topic costs no memory.
func (r *Report) add(v Violation, detail func() string) {
	n := r.counter(v.Kind)
	*n++
	if *n > r.maxPerKind {
		return
	}
	v.Detail = detail()
	r.Violations = append(r.Violations, v)
}

func (r Report) clone() Report {
	r.Violations = slices.Clone(r.Violations)
	return r
}
