package scenarios

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// chaosSchedule is what happens in one run. It follows from its seed alone.
type chaosSchedule struct {
	seed       uint64
	version    string // of PostgreSQL
	brokers    int    // 1 or 3
	publishers int    // on the same slot: all but one wait as standby
	faults     []chaosFault
}

// chaosFault is one fault. It waits for others of the same place to end.
type chaosFault struct {
	kind   string
	target int           // publisher or broker
	at     time.Duration // after the load began
	lasts  time.Duration
}

// chaosLoad is how long writers write; faults begin in the part of it before
// chaosCalm.
const (
	chaosLoad = 14 * time.Second
	chaosCalm = 3 * time.Second
)

func (f chaosFault) String() string {
	return fmt.Sprintf("%5.1fs %s %d for %.1fs", f.at.Seconds(), f.kind, f.target, f.lasts.Seconds())
}

func (s chaosSchedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: PostgreSQL %s, %d brokers, %d publishers\n", s.seed, s.version, s.brokers, s.publishers)
	for _, f := range s.faults {
		fmt.Fprintln(&b, " ", f)
	}
	return b.String()
}

// kinds counts the faults of each kind, as "kind" or "kind x2".
func (s chaosSchedule) kinds() string {
	counts := map[string]int{}
	var names []string
	for _, f := range s.faults {
		if counts[f.kind]++; counts[f.kind] == 1 {
			names = append(names, f.kind)
		}
	}
	slices.Sort(names)
	for i, name := range names {
		if counts[name] > 1 {
			names[i] = fmt.Sprintf("%s x%d", name, counts[name])
		}
	}
	return strings.Join(names, ", ")
}

// scheduleOf makes the schedule of a seed.
func scheduleOf(seed uint64) chaosSchedule {
	r := rand.New(rand.NewPCG(seed, 0x6364637075620000))
	s := chaosSchedule{seed: seed, version: pick(r, "14", "16", "18"), brokers: pick(r, 1, 1, 3), publishers: pick(r, 1, 2)}
	var total int
	for _, k := range chaosKinds {
		total += k.weight
	}
	for range 3 + r.IntN(4) {
		s.faults = append(s.faults, s.fault(r, total))
	}
	slices.SortFunc(s.faults, func(a, b chaosFault) int { return int(a.at - b.at) })
	return s
}

func (s *chaosSchedule) fault(r *rand.Rand, total int) chaosFault {
	n := r.IntN(total)
	for name, k := range chaosKindsInOrder() {
		if n -= k.weight; n >= 0 {
			continue
		}
		f := chaosFault{kind: name, at: between(r, time.Second, chaosLoad-chaosCalm), lasts: between(r, k.shortest, k.longest)}
		switch k.place {
		case onPublisher, onPostgresLink:
			f.target = r.IntN(s.publishers)
		case onBroker, onKafkaLink:
			f.target = r.IntN(s.brokers)
		}
		return f
	}
	panic("the weights do not add up")
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// between is in steps of 100 ms, which a log can show.
func between(r *rand.Rand, shortest, longest time.Duration) time.Duration {
	const step = 100 * time.Millisecond
	if longest <= shortest {
		return shortest
	}
	return shortest + step*time.Duration(r.Int64N(int64((longest-shortest)/step)+1))
}

func TestChaosScheduleFollowsFromItsSeed(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(2000) {
		s := scheduleOf(seed)
		if again := scheduleOf(seed); again.String() != s.String() {
			t.Fatalf("the same seed gives two schedules:\n%s%s", s, again)
		}
		for _, f := range s.faults {
			seen[f.kind] = true
			k := chaosKinds[f.kind]
			if f.at < time.Second || f.at > chaosLoad-chaosCalm || f.lasts < k.shortest || f.lasts > k.longest {
				t.Errorf("out of bounds: %s", f)
			}
		}
	}
	for name := range chaosKinds {
		if !seen[name] {
			t.Errorf("no schedule of 2000 has %q", name)
		}
	}
}
