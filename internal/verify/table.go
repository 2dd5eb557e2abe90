package verify

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// promise is one line of the table.
type promise struct {
	name    string
	kinds   []Kind
	judged  bool
	context string
}

func (r Report) promises() []promise {
	anything := r.Events > 0 || r.Records > 0
	delivered := r.Events - r.Lost - r.Pending - r.Quarantined
	return []promise{
		{"nothing lost", []Kind{Lost}, r.Events > 0, fmt.Sprintf("%d of %d events delivered, %d quarantined, %d pending", delivered, r.Events, r.Quarantined, r.Pending)},
		{"nothing foreign", []Kind{Foreign, QuarantinedPublished}, anything, fmt.Sprintf("%d records, %d of other producers", r.Records, r.Others)},
		{"commit order per partition", []Kind{OutOfOrder}, anything, fmt.Sprintf("%d partitions", r.Partitions)},
		{"versions in order per aggregate", []Kind{VersionInverted}, anything, fmt.Sprintf("%d aggregates, %d inversions by the writers", r.Aggregates, r.WriterInversions)},
		{"right partition", []Kind{WrongPartition}, anything, fmt.Sprintf("%d partitions", r.Partitions)},
		{"right content, repeats exact", []Kind{Altered}, anything, fmt.Sprintf("%d repeated", r.Repeated)},
		{"repeats only after restarts", []Kind{ExcessRewinds}, anything, fmt.Sprintf("a partition started over at most %d times", r.Rewinds)},
		{"confirmed after acknowledged", []Kind{EarlyConfirmed}, r.ConfirmedSamples > 0, fmt.Sprintf("%d samples", r.ConfirmedSamples)},
		{"nothing confirmed is repeated", []Kind{NeedlessRepeat}, r.RestartSamples > 0, fmt.Sprintf("%d restarts sampled", r.RestartSamples)},
		{"input could be judged", []Kind{Input}, true, "history, records, options"},
	}
}

// Table renders the verdict for each promise, then the listed violations. A
// promise for which nothing was given says so instead of "ok".
func (r Report) Table() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "promise\tverdict\tseen")
	for _, p := range r.promises() {
		broken := 0
		for _, k := range p.kinds {
			broken += r.Count(k)
		}
		verdict := "ok"
		switch {
		case broken > 0:
			verdict = fmt.Sprintf("BROKEN (%d)", broken)
		case !p.judged:
			verdict = "not checked"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", p.name, verdict, p.context)
	}
	w.Flush() // a strings.Builder does not fail
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "%s: %s\n", v.Kind, v.Detail)
	}
	if hidden := r.broken() - len(r.Violations); hidden > 0 {
		fmt.Fprintf(&b, "and %d more violations\n", hidden)
	}
	return b.String()
}

// String returns the verdict in one line.
func (r Report) String() string {
	head := "ok"
	if !r.OK() {
		var parts []string
		for _, k := range kinds {
			if n := r.Count(k); n > 0 {
				parts = append(parts, fmt.Sprintf("%s %d", k, n))
			}
		}
		head = "BROKEN: " + strings.Join(parts, ", ")
	}
	return fmt.Sprintf("%s; %d events, %d records, %d aggregates, %d partitions, %d lost, %d out of order, %d repeated, %d rewinds",
		head, r.Events, r.Records, r.Aggregates, r.Partitions, r.Lost, r.OutOfOrder, r.Repeated, r.Rewinds)
}

func (r Report) broken() int {
	n := 0
	for _, k := range kinds {
		n += r.Count(k)
	}
	return n
}
