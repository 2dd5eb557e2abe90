package kafka

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var (
	simulateCount = flag.Int("simulate.count", 2000, "how many schedules TestSimulation tries")
	simulateSeed  = flag.Uint64("simulate.seed", 0, "the one schedule that TestSimulation tries, and tells; 0: many")
	simulateFrom  = flag.Uint64("simulate.from", 1, "the seed of the first schedule")
)

// schedule is one simulation: a seed, and the events that it chooses.
type schedule struct {
	seed  uint64
	steps int
	// without has the numbers of the steps that are left out.
	without []int
}

func scheduleOf(seed uint64) schedule { return schedule{seed: seed, steps: 40 + int(seed%7)*25} }

// run plays the schedule. It is called in a bubble, whose clock it moves.
func (s schedule) run(telling bool) *world {
	w := newWorld(s.seed)
	w.telling = telling
	var without func(int) bool
	if len(s.without) > 0 {
		without = func(i int) bool { _, found := slices.BinarySearch(s.without, i); return found }
	}
	w.run(s.steps, without)
	w.problems = w.judge()
	return w
}

// shrink leaves out what is not needed for a problem, in ever smaller pieces.
func (s schedule) shrink() schedule {
	for piece := s.steps / 2; piece > 0; piece /= 2 {
		for from := 0; from < s.steps; from += piece {
			smaller := s
			smaller.without = slices.Clone(s.without)
			for i := from; i < min(from+piece, s.steps); i++ {
				smaller.without = append(smaller.without, i)
			}
			slices.Sort(smaller.without)
			smaller.without = slices.Compact(smaller.without)
			if len(smaller.without) > len(s.without) && len(smaller.run(false).problems) > 0 {
				s = smaller
			}
		}
	}
	return s
}

// tell is what a person needs of a schedule that broke a promise.
func (s schedule) tell(w *world) string {
	small := s.shrink()
	told := small.run(true)
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d breaks a promise:\n  %s\n", s.seed, strings.Join(w.problems, "\n  "))
	fmt.Fprintf(&b, "the shortest schedule found has %d of %d events (fencing %t) and says:\n  %s\n",
		s.steps-len(small.without), s.steps, told.fencing, strings.Join(told.problems, "\n  "))
	for _, line := range told.told {
		fmt.Fprintln(&b, line)
	}
	b.WriteString(told.logOf())
	fmt.Fprintf(&b, "again: go test ./internal/kafka -run 'TestSimulation$' -simulate.seed %d\n", s.seed)
	return b.String()
}

// simulationWorkers run side by side; a bubble has one goroutine that works.
const simulationWorkers = 2

// Whatever the order of acknowledgements, errors, lost connections, takeovers
// and shutdowns, the promises of docs/guarantees.md are kept.
func TestSimulation(t *testing.T) {
	if *simulateSeed != 0 {
		synctest.Test(t, func(t *testing.T) {
			s := scheduleOf(*simulateSeed)
			if w := s.run(false); len(w.problems) > 0 {
				t.Error(s.tell(w))
			}
		})
		return
	}
	began := time.Now()
	counts := make([]eventCounts, simulationWorkers)
	t.Run("seeds", func(t *testing.T) {
		for worker := range simulationWorkers {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					for i := worker; i < *simulateCount; i += simulationWorkers {
						s := scheduleOf(*simulateFrom + uint64(i))
						w := s.run(false)
						if len(w.problems) > 0 {
							t.Fatal(s.tell(w))
						}
						counts[worker].add(&w.eventCounts)
					}
				})
			})
		}
	})
	if t.Failed() {
		return
	}
	for _, c := range counts[1:] {
		counts[0].add(&c)
	}
	if testing.Verbose() {
		fmt.Fprintf(os.Stdout, "%d schedules in %v\n%s", *simulateCount, time.Since(began).Round(time.Millisecond), counts[0].table())
	}
	for e := evNothing + 1; e < eventKinds; e++ {
		if counts[0][e] == 0 {
			t.Errorf("it never happened: %s", eventNames[e])
		}
	}
}

func (c *eventCounts) table() string {
	var b strings.Builder
	for e := evNothing + 1; e < eventKinds; e++ {
		if c[e] > 0 {
			fmt.Fprintf(&b, "%12d  %s\n", c[e], eventNames[e])
		}
	}
	return b.String()
}
