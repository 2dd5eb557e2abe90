package slots

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/cdcpub/cdcpub/slotmon"
	"github.com/cdcpub/cdcpub/test/harness"
)

// fault is something that goes wrong, and the alert that must tell of it.
type fault struct {
	id       slotmon.FindingID
	slot     string
	severity slotmon.Severity
	atOnce   bool
	make     func()
	cure     func() // nil: the alert stays
}

// happens makes the fault, waits for its alert, cures it and waits until the
// alert is resolved.
func (s *stand) happens(f fault) {
	s.t.Helper()
	began, from := time.Now(), s.hook.Count()
	f.make()
	raised, from := s.raised(from, f)
	s.timed(f, raised.Arrived.Sub(began))
	if raised.Summary == "" || raised.Cure == "" {
		s.t.Errorf("%s has summary %q and cure %q", f.id, raised.Summary, raised.Cure)
	}
	waited := raised.Raised.Sub(raised.Since)
	if f.atOnce && waited != 0 {
		s.t.Errorf("%s was seen and raised %s later", f.id, waited)
	}
	if !f.atOnce && waited < raiseAfter {
		s.t.Errorf("%s was raised after %s, too early", f.id, waited)
	}
	if !s.metric("cdcpub_alert", fmt.Sprintf(`severity=%q,slot=%q`, f.severity, f.slot), "1") {
		s.t.Errorf("no metric of the alert %s", f.id)
	}
	if f.cure == nil {
		return
	}
	f.cure()
	s.until(fmt.Sprintf("%s of %s is resolved", f.id, f.slot), func() bool {
		_, _, ok := s.hook.Find(from, func(a harness.Alert) bool { return a.ID == f.id && a.Slot == f.slot && a.Status == "resolved" })
		return ok
	})
}

// raised waits for the alert and returns it, and the index behind it.
func (s *stand) raised(from int, f fault) (found harness.Alert, next int) {
	s.t.Helper()
	s.until(fmt.Sprintf("%s of %s is raised as %s", f.id, f.slot, f.severity), func() (ok bool) {
		found, next, ok = s.hook.Find(from, func(a harness.Alert) bool {
			return a.ID == f.id && a.Slot == f.slot && a.Status == "raised" && a.Severity == f.severity
		})
		return ok
	})
	return found, next
}

// times are how long each fault took to be told, by version.
var times struct {
	sync.Mutex
	of map[string]map[string]time.Duration
}

func (s *stand) timed(f fault, took time.Duration) {
	times.Lock()
	defer times.Unlock()
	if times.of == nil {
		times.of = map[string]map[string]time.Duration{}
	}
	name := fmt.Sprintf("%s %s", f.id, f.severity)
	if times.of[name] == nil {
		times.of[name] = map[string]time.Duration{}
	}
	times.of[name][fmt.Sprint(s.pg.Installation().Major)] = took
}

// printTimes prints how long it took from each fault until its alert was at the
// webhook.
func printTimes() {
	if len(times.of) == 0 {
		return
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "from fault to alert, interval %s, raise_after %s\t14\t15\t16\t17\t18\n", interval, raiseAfter)
	var names []string
	for name := range times.of {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprint(w, name)
		for _, version := range versions {
			took, measured := times.of[name][version]
			if !measured {
				fmt.Fprint(w, "\t-")
				continue
			}
			fmt.Fprintf(w, "\t%.1fs", took.Seconds())
		}
		fmt.Fprintln(w)
	}
	w.Flush()
}

var versions = []string{"14", "15", "16", "17", "18"}

// places bounds how many servers run at the same time.
var places = make(chan struct{}, 3)

// onEach runs a test on a server of each version, several at a time.
func onEach(t *testing.T, of []string, test func(t *testing.T, version string)) {
	for _, version := range of {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			places <- struct{}{}
			defer func() { <-places }()
			test(t, version)
		})
	}
}
