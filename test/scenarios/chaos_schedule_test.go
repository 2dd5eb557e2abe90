package scenarios

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// chaosSchedule is what happens in one run. It follows from its seed alone.
type chaosSchedule struct {
	seed       uint64
	version    string // of PostgreSQL
	standby    bool   // PostgreSQL has one, which keeps the slot
	brokers    int    // 1 or 3
	fake       bool   // the brokers are harness.FakeKafka
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

// chaosLoad is how long writers write at least, and until chaosCalm after the
// last fault; faults begin in the part of it before chaosCalm.
const (
	chaosLoad = 14 * time.Second
	chaosCalm = 3 * time.Second
)

func (f chaosFault) String() string {
	return fmt.Sprintf("%5.1fs %s %d for %.1fs", f.at.Seconds(), f.kind, f.target, f.lasts.Seconds())
}

func (s chaosSchedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: PostgreSQL %s, %s brokers, %d publishers\n", s.seed, s.servers(), s.kafka(), s.publishers)
	for _, f := range s.faults {
		fmt.Fprintln(&b, " ", f)
	}
	return b.String()
}

func (s chaosSchedule) servers() string {
	if s.standby {
		return s.version + " with standby"
	}
	return s.version
}

func (s chaosSchedule) kafka() string {
	if s.fake {
		return strconv.Itoa(s.brokers) + " fake"
	}
	return strconv.Itoa(s.brokers)
}

// has says whether there is a fault of one of these kinds.
func (s chaosSchedule) has(kinds []string) bool {
	return slices.ContainsFunc(s.faults, func(f chaosFault) bool { return slices.Contains(kinds, f.kind) })
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

// chaosShapes are the servers that a schedule may have. Each has faults that
// only it can have.
var chaosShapes = []chaosSchedule{
	{version: "14", brokers: 1}, {version: "16", brokers: 1}, {version: "18", brokers: 1},
	{version: "14", brokers: 3}, {version: "16", brokers: 3}, {version: "18", brokers: 3},
	{version: "14", brokers: 3, fake: true}, {version: "16", brokers: 3, fake: true}, {version: "18", brokers: 3, fake: true},
	{version: "17", brokers: 1, standby: true}, {version: "18", brokers: 3, standby: true},
}

// scheduleOf makes the schedule of a seed.
func scheduleOf(seed uint64) chaosSchedule {
	r := rand.New(rand.NewPCG(seed, 0x6364637075620000))
	s := pick(r, chaosShapes...)
	s.seed, s.publishers = seed, pick(r, 1, 2)
	var total int
	for _, k := range chaosKinds {
		if k.fits(s) {
			total += k.weight
		}
	}
	for range 3 + r.IntN(4) {
		s.faults = append(s.faults, s.fault(r, total))
	}
	if s.standby {
		s.faults[0] = s.faultOf(r, "standby promoted") // what it is there for, and it has one
	}
	slices.SortStableFunc(s.faults, func(a, b chaosFault) int { return int(a.at - b.at) })
	return s
}

func (s *chaosSchedule) fault(r *rand.Rand, total int) chaosFault {
	n := r.IntN(total)
	for name, k := range chaosKindsInOrder() {
		if !k.fits(*s) {
			continue
		}
		if n -= k.weight; n >= 0 {
			continue
		}
		if k.place == onSlot && slices.ContainsFunc(s.faults, func(f chaosFault) bool { return chaosKinds[f.kind].place == onSlot }) {
			return s.fault(r, total) // one gap leaves enough rows to judge, two may not
		}
		return s.faultOf(r, name)
	}
	panic("the weights do not add up")
}

func (s *chaosSchedule) faultOf(r *rand.Rand, kind string) chaosFault {
	k := chaosKinds[kind]
	f := chaosFault{kind: kind, at: between(r, time.Second, chaosLoad-chaosCalm), lasts: between(r, k.shortest, k.longest)}
	switch k.place {
	case onPublisher, onPostgresLink:
		f.target = r.IntN(s.publishers)
	case onBroker, onKafkaLink:
		f.target = r.IntN(s.brokers)
	}
	return f
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
			if !k.fits(s) {
				t.Errorf("seed %d: %s cannot happen to PostgreSQL %s and %s brokers", seed, f, s.servers(), s.kafka())
			}
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

func TestChaosKindsChooseSeeds(t *testing.T) {
	all, err := seedsOf("7,1-300")
	if err != nil {
		t.Fatal(err)
	}
	kept, err := seedsWith(slices.Clone(all), "leader moves, slot dropped")
	if err != nil || len(kept) == 0 || len(kept) == len(all) {
		t.Fatalf("%d of %d seeds, %v", len(kept), len(all), err)
	}
	for _, seed := range all {
		kinds := scheduleOf(seed).kinds()
		if wanted := strings.Contains(kinds, "leader moves") || strings.Contains(kinds, "slot dropped"); wanted != slices.Contains(kept, seed) {
			t.Errorf("seed %d with %q: chosen %v", seed, kinds, !wanted)
		}
	}
	for _, wrong := range []string{"no such kind", "leader moves,"} {
		if _, err := seedsWith(slices.Clone(all), wrong); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}
