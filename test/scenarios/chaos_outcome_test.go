package scenarios

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/cdcpub/cdcpub/internal/verify"
)

// chaosOutcome is what a run left for the report.
type chaosOutcome struct {
	schedule chaosSchedule
	report   verify.Report
	sessions int
	// bound of the repeats, 0 when there is none.
	bound    int
	recovery recovery
	stalls   []string
	excused  int // rows that were in no slot, as the publisher had said
	hash     string
	problems []string
	log      string
}

func (o *chaosOutcome) ok() bool { return o.report.OK() && len(o.problems) == 0 }

func (w *chaosWorld) outcome() *chaosOutcome {
	if w.pair != nil {
		w.pair.awaitReplay(w)
	}
	excused := w.excused()
	report := w.judge(func(o *verify.Options) {
		o.Rewinds = -1
		o.Quarantined = excused.rows
		o.Confirmed = excused.keep(o.Confirmed)
	})
	o := &chaosOutcome{
		schedule: w.schedule, report: report, sessions: w.sessions(), recovery: w.slowestRecovery(), excused: len(excused.rows),
		problems: w.problems, log: w.log(),
	}
	for cause := range w.stalls {
		o.stalls = append(o.stalls, cause)
	}
	sum := sha256.Sum256([]byte(o.log))
	o.hash = hex.EncodeToString(sum[:4])
	if o.bound = w.bound(); o.bound > 0 && report.Repeated > o.bound {
		o.problems = append(o.problems, fmt.Sprintf("%d records were repeated, %d sessions explain %d", report.Repeated, o.sessions, o.bound))
	}
	return o
}

// bound is how many repeats the sessions explain: each begins at what was
// confirmed, behind which there is a window, the rest of a transaction that was
// cut off, and what was confirmed to us but not yet to the server.
func (w *chaosWorld) bound() int {
	for _, f := range w.schedule.faults {
		if chaosKinds[f.kind].repeats {
			return 0
		}
	}
	const largestTransaction, reporting = 300, 2000
	return (w.sessions() - 1 + w.brokerFaults()) * (chaosWindow + largestTransaction + reporting)
}

// brokerFaults are those after which a broker may not know what it has.
func (w *chaosWorld) brokerFaults() (n int) {
	for _, f := range w.schedule.faults {
		switch chaosKinds[f.kind].place {
		case onBroker, onAnswers:
			n++
		}
	}
	return n
}
