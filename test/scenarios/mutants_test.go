package scenarios

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

// A mutant is a build with one guarantee broken on purpose. A scenario that
// lets it pass proves nothing.
type mutant struct {
	name     string
	breaks   string
	edits    []edit
	scenario string
	run      func(*stand)
	proxied  bool // the scenario needs a proxy before the broker
	topic    map[string]string
	sections map[string]string
	// caught lists the kinds of violations of which the checker must report at
	// least one. When it is empty the scenario itself must say says.
	caught []verify.Kind
	says   string
	// short: also part of `make test`.
	short bool
}

// edit is a harness.Edit that is short to write.
type edit struct{ File, Old, New string }

var mutants = []mutant{
	{
		name: "confirm on receipt", breaks: "Confirm after ack", short: true,
		edits: []edit{{"checkpoint/tracker.go",
			"for t.done < len(t.marks) && t.marks[t.done].before <= t.tail {",
			"for t.done < len(t.marks) {"}},
		scenario: "Kill9WhileTheBrokerStalls", run: func(s *stand) { killWhileStalled(s, 2) }, proxied: true,
		caught: []verify.Kind{verify.EarlyConfirmed, verify.Lost},
	},
	{
		name: "confirm a keepalive over rows in flight", breaks: "Confirm after ack",
		edits: []edit{{"checkpoint/tracker.go",
			"if !t.open && end > t.end {\n\t\tt.mark(end)",
			"if !t.open && end > t.end {\n\t\tt.end, t.confirmed = end, end"}},
		scenario: "KeepalivesOverRowsInFlight", run: keepalivesOverRowsInFlight, proxied: true,
		caught: []verify.Kind{verify.EarlyConfirmed, verify.Lost},
	},
	{
		name: "confirm the commit LSN instead of the end LSN", breaks: "Exact repeats (a clean restart repeats nothing)", short: true,
		edits: []edit{
			{"wal/decoder.go", "to.add(Event{Kind: Commit, LSN: end, CommitTime: commitTime(at)})",
				"to.add(Event{Kind: Commit, LSN: commit, CommitTime: commitTime(at)})"},
			{"checkpoint/tracker.go", "case end <= t.end:", "case end < t.end:"},
		},
		scenario: "CleanRestartsUnderLoadRepeatNothing", run: restartsUnderLoad,
		says: "repeated after clean restarts",
	},
	{
		name: "drop a failed batch", breaks: "No loss",
		edits: []edit{{"internal/kafka/partition.go",
			"p.fail(o.rule, now, pol)\n\t\treturn effect{recheck: true}",
			"return p.succeed(-1)"}},
		scenario: "BrokerCutOffUnderLoad", run: brokerCutOff, proxied: true,
		caught: []verify.Kind{verify.Lost},
	},
	{
		name: "send behind a rejection", breaks: "Order (a rejected record never lets the ones behind it pass)", short: true,
		edits: []edit{{"internal/kafka/partition.go",
			"return p.reject(cause, o.rule.class == classSplit, now)",
			"e := p.reject(cause, o.rule.class == classSplit, now)\n\tp.queue.pop(1)\n\tp.rejected, p.suspects, p.innocent, p.stall, p.phase = false, 0, 0, \"\", phaseReady\n\tif p.queue.len() == 0 {\n\t\tp.phase = phaseIdle\n\t}\n\treturn e"}},
		scenario: "RejectedRecordHoldsBackWhatIsBehindIt/middle", run: func(s *stand) { rejected(s, []int{10}) },
		topic: rejectingTopic, sections: rejectingSections,
		caught: []verify.Kind{verify.Lost, verify.OutOfOrder},
	},
	{
		name: "take a shutdown for a commit", breaks: "No loss",
		edits: []edit{
			{"wal/stream.go", "if s.finished.Load() || s.stopping.Load() && !s.decoder.InTransaction() && len(s.batch.Events) == 0 {",
				"if s.finished.Load() || s.stopping.Load() && len(s.batch.Events) == 0 {"},
			{"wal/stream.go", "if s.batch.full() || s.stopping.Load() && !s.decoder.InTransaction() {", "if s.batch.full() || s.stopping.Load() {"},
			{"wal/stream.go", "if flush > s.received {", "if false {"},
			{"internal/pipeline/pipeline.go", "batches = nil\n\t\t\t\tbreak",
				"batches = nil\n\t\t\t\tif p.tracker.Open() {\n\t\t\t\t\t_ = p.tracker.Commit(p.position.CommitLSN + 1)\n\t\t\t\t}\n\t\t\t\tbreak"},
		},
		scenario: "SIGTERMInTheMiddleOfALargeTransaction", run: sigtermInTransaction,
		caught: []verify.Kind{verify.Lost},
	},
	{
		name: "stamp records with the clock", breaks: "Exact repeats",
		edits: []edit{{"router/router.go",
			"r.record(p, commitTime, row.Values)", "r.record(p, time.Now(), row.Values)"}},
		scenario: "InterleavedAndSwappedCommits", run: swappedCommits,
		caught: []verify.Kind{verify.Altered},
	},
	{
		name: "partition by FNV", breaks: "Order (the partition of a key is the Java client's)", short: true,
		edits: []edit{
			{"internal/kafka/murmur2.go", "return int32(murmur2(key)&0x7fffffff) % count",
				"h := fnv.New32a()\n\t_, _ = h.Write(key)\n\treturn int32(h.Sum32()&0x7fffffff) % count"},
			{"internal/kafka/murmur2.go", "package kafka\n", "package kafka\n\nimport \"hash/fnv\"\n"},
		},
		scenario: "InterleavedAndSwappedCommits", run: swappedCommits,
		caught: []verify.Kind{verify.WrongPartition},
	},
	{
		name: "send the first batch without asking PostgreSQL", breaks: "Order (a publisher that has lost its slot unawares)",
		edits:    []edit{{"internal/kafka/fence.go", "\t\tf.unproven = true\n", "\t\tp.looked(nil, now)\n"}},
		scenario: "AnUnawarePublisherWithTheNewestEpochSendsNothing", run: newestEpoch, proxied: true, sections: longLease,
		caught: []verify.Kind{verify.OutOfOrder},
	},
}

var whichMutants = flag.String("mutants", "short", "which mutants to try: short or all")

func TestMutantsAreCaught(t *testing.T) {
	for _, m := range mutants {
		if !m.short && *whichMutants != "all" {
			continue
		}
		t.Run(strings.ReplaceAll(m.name, " ", "_"), func(t *testing.T) { m.try(t) })
	}
}

func (m *mutant) try(t *testing.T) {
	o := options{topic: m.topic, sections: m.sections, patience: 15 * time.Second}
	if m.proxied {
		o.kafka = proxied(t)
	} else {
		parallel(t)
	}
	o.binary = harness.Build(t, harness.BuildOptions{Overlay: m.overlay(t)})
	var s *stand
	complaints := try(t, func(tb testing.TB) {
		s = newStand(tb, o)
		m.run(s)
	})
	if m.proxied {
		s.no(s.kafka.Proxy(0).Restore())
	}
	s.t = t
	report := s.judge(nil)
	if len(complaints) == 0 {
		t.Fatalf("the scenario let it pass:\n%s", report.Table())
	}
	said := m.says != "" && strings.Contains(strings.Join(complaints, "\n"), m.says)
	if !said && !slices.ContainsFunc(m.caught, func(k verify.Kind) bool { return report.Count(k) > 0 }) {
		t.Errorf("caught, but not by any of %v: %s\n%s", m.caught, strings.Join(complaints, "\n"), report.Table())
	}
}

func (m *mutant) overlay(t *testing.T) string {
	edits := make([]harness.Edit, 0, len(m.edits))
	for _, e := range m.edits {
		edits = append(edits, harness.Edit(e))
	}
	return harness.Overlay(t, m.name, edits)
}

// The committed table says which scenario catches which mutant.
func TestMutantsTableIsUpToDate(t *testing.T) {
	const file = "../../docs/mutants.md"
	var b strings.Builder
	b.WriteString("# Mutants\n\nEach is a build of cdcpub with one promise broken on purpose; the scenario named beside\nit must fail, for the reason given. `make mutants` tries all of them,\n`make test` those marked with *.\n\n| mutant | breaks | caught by scenario | which reports |\n|---|---|---|---|\n")
	for _, m := range mutants {
		star := ""
		if m.short {
			star = " *"
		}
		var kinds []string
		if m.says != "" {
			kinds = append(kinds, m.says)
		}
		for _, k := range m.caught {
			kinds = append(kinds, string(k))
		}
		fmt.Fprintf(&b, "| %s%s | %s | Test%s | %s |\n", m.name, star, m.breaks, m.scenario, strings.Join(kinds, " or "))
	}
	committed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(committed) != b.String() {
		t.Errorf("%s is not what the code says; it should be:\n%s", file, b.String())
	}
}
