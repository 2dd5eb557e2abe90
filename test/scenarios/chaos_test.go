package scenarios

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cdcpub/cdcpub/test/harness"
)

var (
	chaosSeeds   = flag.String("chaos.seeds", "12,58", "seeds of the schedules to run: numbers and ranges, 1,5,10-20")
	chaosOnly    = flag.String("chaos.kinds", "", "of the seeds, run only those whose schedule has a fault of one of these kinds: \"leader moves,slot dropped\"")
	chaosFile    = flag.String("chaos.report", "", "Markdown file that a line of each run is added to")
	chaosOverlay = flag.String("chaos.overlay", "", "file that replaces source files of cdcpub, as `go build -overlay` has it: a fault to be found")
	chaosReduce  = flag.Bool("chaos.reduce", false, "take faults out of a schedule that fails until it no longer does")
)

// TestChaos runs schedules of random faults. A failure names the seed; what
// fails with it once may pass the next time, since processes and servers are
// not replayed.
func TestChaos(t *testing.T) {
	seeds, err := seedsOf(*chaosSeeds)
	if err == nil {
		seeds, err = seedsWith(seeds, *chaosOnly)
	}
	if err != nil {
		t.Fatal(err)
	}
	var rows []chaosRow
	commit := chaosCommit()
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("PostgreSQL_%s/seed_%d", scheduleOf(seed).version, seed), func(t *testing.T) {
			// Not beside other scenarios: the machine's speed is the time scale.
			binary := shared.Binary(t, harness.BuildOptions{Race: true, Overlay: *chaosOverlay})
			schedule := scheduleOf(seed)
			outcome, complaints := tryChaos(t, schedule, binary)
			if outcome != nil {
				rows = append(rows, outcome.row(commit))
				record(t.Name(), chaosLoad, outcome.report)
				t.Logf("%s%s", outcome.log, strings.Join(outcome.row(commit), " | "))
			}
			if complaints != "" {
				t.Errorf("%s\n%s", schedule, complaints)
				if *chaosReduce {
					t.Logf("what it needs to fail:\n%s", reduceByRunning(t, schedule, binary))
				}
			}
		})
	}
	if *chaosFile != "" {
		if err := chaosReport(*chaosFile, rows); err != nil {
			t.Error(err)
		}
	}
}

// reduceByRunning is reduceChaos by runs. Each is a subtest of its own, which
// ends its servers and never fails.
func reduceByRunning(t *testing.T, schedule chaosSchedule, binary string) chaosSchedule {
	tries := 0
	reduced := reduceChaos(schedule, func(s chaosSchedule) (failed bool) {
		tries++
		t.Run(fmt.Sprintf("try_%d", tries), func(t *testing.T) {
			_, complaints := tryChaos(t, s, binary)
			failed = complaints != ""
		})
		return failed
	}, t.Logf)
	t.Logf("%d tries, %d of %d faults left", tries, len(reduced.faults), len(schedule.faults))
	return reduced
}

// tryChaos runs a schedule and returns what is wrong with the outcome.
func tryChaos(t *testing.T, schedule chaosSchedule, binary string) (outcome *chaosOutcome, complaints string) {
	wrong := try(t, func(tb testing.TB) { outcome = runChaos(tb, schedule, binary) })
	if outcome != nil && !outcome.ok() {
		wrong = append(wrong, outcome.log, outcome.report.Table())
		wrong = append(wrong, outcome.problems...)
	}
	return outcome, strings.Join(wrong, "\n")
}

// seedsOf reads "1,5,10-20".
func seedsOf(text string) ([]uint64, error) {
	var seeds []uint64
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("seeds %q: %w", text, err)
		}
		to, err := strconv.ParseUint(last, 10, 64)
		if err != nil || to < from {
			return nil, fmt.Errorf("seeds %q: %q is no range", text, part)
		}
		for seed := from; seed <= to; seed++ {
			seeds = append(seeds, seed)
		}
	}
	return slices.Compact(seeds), nil
}

// seedsWith are those of the seeds whose schedules have a fault of one of the
// kinds; "" means any.
func seedsWith(seeds []uint64, kinds string) ([]uint64, error) {
	if kinds == "" {
		return seeds, nil
	}
	wanted := strings.Split(kinds, ",")
	for i, kind := range wanted {
		wanted[i] = strings.TrimSpace(kind)
		if _, known := chaosKinds[wanted[i]]; !known {
			return nil, fmt.Errorf("there is no kind of fault %q, but %q", wanted[i], slices.Sorted(maps.Keys(chaosKinds)))
		}
	}
	kept := slices.DeleteFunc(seeds, func(seed uint64) bool { return !scheduleOf(seed).has(wanted) })
	if len(kept) == 0 {
		return nil, fmt.Errorf("no schedule of the seeds has a fault %q", kinds)
	}
	return kept, nil
}

// chaosCommit is what was tested.
func chaosCommit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return os.Getenv("COMMIT")
	}
	return strings.TrimSpace(string(out))
}
