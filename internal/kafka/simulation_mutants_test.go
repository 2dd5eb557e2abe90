package kafka

import (
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cdcpub/cdcpub/test/harness"
)

// A mutant is this package, or what it is driven with, with one rule broken on
// purpose. A simulation that lets it pass proves nothing.
type simulatedMutant struct {
	name  string
	edits []simulatedEdit
	// says must be in what the simulation says of it.
	says string
	// short: also part of the package's tests; the others with
	// -simulate.mutants all.
	short bool
}

// simulatedEdit is a harness.Edit that is short to write.
type simulatedEdit struct{ File, Old, New string }

// mutantSeeds is within how many schedules a mutant must be caught.
const mutantSeeds = 20_000

var simulatedMutants = []simulatedMutant{
	{
		name: "drop a failed batch", says: "lost: ",
		edits: []simulatedEdit{{"internal/kafka/partition.go",
			"p.fail(o.rule, now, pol)\n\t\treturn effect{recheck: true}",
			"return p.succeed(-1)"}},
	},
	{
		name: "send behind a rejection", says: "lost: |came before",
		edits: []simulatedEdit{{"internal/kafka/partition.go",
			"return p.reject(cause, o.rule.class == classSplit, now)",
			"e := p.reject(cause, o.rule.class == classSplit, now)\n\tp.queue.pop(1)\n\tp.rejected, p.suspects, p.innocent, p.stall, p.phase = false, 0, 0, \"\", phaseReady\n\tif p.queue.len() == 0 {\n\t\tp.phase = phaseIdle\n\t}\n\treturn e"}},
	},
	{
		name: "use the sequence numbers of an acknowledged batch again", says: "lost: ",
		edits: []simulatedEdit{{"internal/kafka/partition.go", "\tp.next += int32(n)\n", ""}},
	},
	{
		name: "begin at sequence 0 without another epoch", says: "lost: ",
		edits: []simulatedEdit{{"internal/kafka/fence.go", "if part.claim < f.number {", "if f.number > 0 {"}},
	},
	{
		name: "no new epoch at a takeover", says: "lost: |appended late: |confirmed ", short: true,
		edits: []simulatedEdit{{"internal/kafka/fence.go",
			"f.taken, f.attempts, f.since = r.identity, 0, time.Time{}",
			"f.taken, f.attempts, f.since = identity{producer: r.identity.producer}, 0, time.Time{}"}},
	},
	{
		name: "another producer id for each session", says: "appended late: ",
		edits: []simulatedEdit{{"internal/kafka/fence.go",
			"f.taken, f.attempts, f.since = r.identity, 0, time.Time{}",
			"f.taken, f.attempts, f.since = identity{producer: r.identity.producer<<20 + int64(r.identity.epoch)}, 0, time.Time{}"}},
	},
	{
		name: "another producer id for each session of a process", says: "appended late: ",
		edits: []simulatedEdit{{"internal/kafka/client.go", "if !ok || id.epoch == math.MaxInt16 {", "if ok = false; !ok || id.epoch == math.MaxInt16 {"}},
	},
	{
		name: "send the first batch without asking PostgreSQL", says: "appended late: ", short: true,
		edits: []simulatedEdit{{"internal/kafka/fence.go", "\t\tf.unproven = true\n", "\t\tp.looked(nil, now)\n"}},
	},
	{
		name: "take a failed look for an answer", says: "appended late: ",
		edits: []simulatedEdit{{"internal/kafka/fence.go", "\tif err != nil {\n\t\tf.attempts++\n\t\tf.retryAt", "\tif err != nil && f.attempts < 0 {\n\t\tf.attempts++\n\t\tf.retryAt"}},
	},
	{
		name: "another epoch while the fate of a batch is open", says: "repeated within a session: ",
		edits: []simulatedEdit{{"internal/kafka/fence.go", "part.claim < f.number && part.batch == nil && part.unsure == 0", "part.claim < f.number"}},
	},
	{
		name: "reverse what waits for a topic", says: "not a run: |came before ",
		edits: []simulatedEdit{{"internal/kafka/lookup.go", "*t.pending.at(i)", "*t.pending.at(t.pending.len() - 1 - i)"}},
	},
	{
		name: "ask for the lease at the decision only", says: "although the server has given its slot up",
		edits: []simulatedEdit{{"internal/kafka/producer.go", "\treturn p.gate()\n", "\treturn nil\n"}},
	},
	{
		name: "send without a lease", says: "although the server has given its slot up",
		edits: []simulatedEdit{{"internal/kafka/producer.go", "case !p.slot.Leased():", "case !p.slot.Leased() && p.dead:"}},
	},
	{
		name: "confirm on receipt", says: "early_confirmed: ",
		edits: []simulatedEdit{{"checkpoint/tracker.go",
			"for t.done < len(t.marks) && t.marks[t.done].before <= t.tail {",
			"for t.done < len(t.marks) {"}},
	},
	{
		name: "confirm a keepalive over rows in flight", says: "early_confirmed: ",
		edits: []simulatedEdit{{"checkpoint/tracker.go",
			"if !t.open && end > t.end {\n\t\tt.mark(end)",
			"if !t.open && end > t.end {\n\t\tt.end, t.confirmed = end, end"}},
	},
	{
		name: "take the newest acknowledgement for all before it", says: "early_confirmed: ",
		edits: []simulatedEdit{{"checkpoint/tracker.go",
			"t.ring[t.tail&t.mask].acked {", "(t.ring[t.tail&t.mask].acked || t.ring[(t.head-1)&t.mask].acked) {"}},
	},
	{
		name: "report a rejection after the acceptance", says: "after everything has healed",
		edits: []simulatedEdit{{"internal/kafka/lookup.go", "if !part.rejected || part.queue.at(0).message.Seq != rejection.Message.Seq {", "if part.topic == nil {"}},
	},
	{
		name: "take the end of the lease for a refusal by the coordinator", says: "goes on without a fence, for no reason",
		edits: []simulatedEdit{{"internal/kafka/fence.go", "case errors.Is(err, errLeaseLost), errors.Is(err, errSuperseded):", "case errors.Is(err, errClosed):"}},
	},
	{
		name: "end a shutdown before the acknowledgements", says: "ended with all delivered and confirmed",
		edits: []simulatedEdit{{"internal/pipeline/pipeline.go",
			"case p.failure == nil && batches == nil && p.batch == nil && idle:", "case p.failure == nil && batches == nil && p.batch == nil:"}},
	},
}

var whichSimulatedMutants = flag.String("simulate.mutants", "short", "which mutants TestSimulationCatches tries: short or all")

func TestSimulationCatches(t *testing.T) {
	for _, m := range simulatedMutants {
		if m.short || *whichSimulatedMutants == "all" {
			t.Run(strings.ReplaceAll(m.name, " ", "_"), m.try)
		}
	}
}

var brokenPromise = regexp.MustCompile(`seed (\d+) breaks a promise:\n((?: +.*\n)+)`)

func (m *simulatedMutant) try(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "mutant.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", m.overlay(t), "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	run := exec.CommandContext(t.Context(), binary, "-test.run", "TestSimulation$", "-simulate.count", fmt.Sprint(mutantSeeds))
	out, err := run.CombinedOutput()
	if err == nil {
		t.Fatalf("%d schedules let it pass", mutantSeeds)
	}
	for _, found := range brokenPromise.FindAllSubmatch(out, -1) {
		if regexp.MustCompile(m.says).Match(found[2]) {
			t.Logf("caught by seed %s", found[1])
			return
		}
	}
	t.Errorf("it fails, but nothing says %q:\n%s", m.says, out)
}

func (m *simulatedMutant) overlay(t *testing.T) string {
	edits := make([]harness.Edit, 0, len(m.edits))
	for _, e := range m.edits {
		edits = append(edits, harness.Edit(e))
	}
	return harness.Overlay(t, m.name, edits)
}
