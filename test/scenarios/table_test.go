package scenarios

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/cdcpub/cdcpub/internal/verify"
)

// verdicts collects what the checker said about each scenario of this run.
var verdicts struct {
	sync.Mutex
	rows []string
}

func record(name string, took time.Duration, r verify.Report) {
	verdict := "ok"
	if !r.OK() {
		verdict = "VIOLATED"
	}
	verdicts.Lock()
	defer verdicts.Unlock()
	verdicts.rows = append(verdicts.rows, fmt.Sprintf("%s\t%s\t%.1f\t%d\t%d\t%d\t%d\t%d\t%d\t%d", strings.TrimPrefix(name, "Test"), verdict, took.Seconds(),
		r.Events, r.Lost, r.OutOfOrder, r.Repeated, r.Altered, r.EarlyConfirmed, r.ConfirmedSamples))
}

// printVerdicts shows the table of all scenarios at the end of the run.
func printVerdicts() {
	verdicts.Lock()
	defer verdicts.Unlock()
	if len(verdicts.rows) == 0 {
		return
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "scenario\tverdict\tseconds\tevents\tlost\tout of order\trepeated\taltered\tconfirmed early\tsamples")
	for _, row := range verdicts.rows {
		fmt.Fprintln(w, row)
	}
	_ = w.Flush()
}
