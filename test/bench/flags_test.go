package bench

import (
	"flag"
	"slices"
	"strings"
	"testing"
)

var (
	loadsFlag = flag.String("bench.loads", "a,b,d", "the letters of the loads to run, with commas between them")
	rounds    = flag.Int("bench.rounds", 3, "how often each subject is measured, in turn with the others")
	scale     = flag.Float64("bench.scale", 1, "a factor for the number of rows and seconds, to try things out")
	withJVM   = flag.Bool("bench.debezium", true, "measure Debezium too, in the loads that have it")
	only      = flag.String("bench.subjects", "", "the only subjects to measure, with commas between them; all by default")
	program   = flag.String("bench.binary", "", "a cdcpub to measure instead of one that is built from these sources")
	earlier   = flag.String("bench.earlier", "", "another cdcpub to measure beside it, to see what a change has brought")
	profiles  = flag.String("bench.profiles", "", "directory for profiles of processor time and memory of each cdcpub; none by default")
	reportTo  = flag.String("bench.report", "", "directory for the report, NAME.md and NAME.json; none by default")
	reportAs  = flag.String("bench.name", "core", "the report's name")
)

// BenchmarkLoads is one run of the program; -benchtime 1x keeps it at that.
func BenchmarkLoads(b *testing.B) {
	for range b.N {
		run(b, strings.Split(*loadsFlag, ","))
	}
}

func run(b *testing.B, letters []string) {
	stand := newStand(b)
	r := report{Machine: machineOf(b, stand), Rounds: *rounds}
	for _, letter := range letters {
		for _, l := range loadsOf(letter) {
			r.Loads = append(r.Loads, l.Name)
			r.Results = append(r.Results, l.measure(b, stand, l)...)
			r.write(b) // what is measured is kept if a later load fails
		}
	}
	b.Log("\n" + r.markdown())
}

// scaled applies -bench.scale.
func scaled(n int) int { return max(1, int(float64(n)**scale)) }

// chosen applies -bench.subjects.
func chosen(subjects []string) []string {
	if *only == "" {
		return subjects
	}
	names := strings.Split(*only, ",")
	return slices.DeleteFunc(subjects, func(name string) bool { return !slices.Contains(names, name) })
}
