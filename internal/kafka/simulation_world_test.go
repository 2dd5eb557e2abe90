package kafka

import (
	"fmt"
	"math/rand/v2"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/cdcpub/cdcpub/checkpoint"
	"github.com/cdcpub/cdcpub/internal/verify"
)

// world is one simulation: publishers, PostgreSQL, Kafka, and what is under way
// between them. All of it belongs to one goroutine; only the pipelines have
// their own, and they stand still while the world moves.
type world struct {
	eventCounts
	seed uint64
	pcg  *rand.PCG
	rng  *rand.Rand

	postgres modelPostgres
	cluster  modelCluster

	processes []*process
	sessions  int
	clients   int
	// starts has the position that each session began at.
	starts []*simulated
	// late are connections without a sender; lateClaims the claims.
	late       []*conn
	lateClaims []identity

	fencing, stay bool
	window        checkpoint.Limits
	config        Config
	faults        int // of 100 batches
	forgets       bool
	// controlWeight says how soon control connections are served.
	controlWeight int
	// unfenced: a session went on without a fence, and had a reason.
	unfenced bool
	healing  bool

	log  *zap.Logger
	logs *observer.ObservedLogs
	// samples are the confirmed positions with the ends of the partitions.
	samples []verify.Sample
	// problems are broken promises that need no evidence from the topic.
	problems []string
	// told has the events of the schedule when they are wanted.
	telling bool
	told    []string
	options []option
	weight  int // of all options
	// spared has the disturbances that this schedule leaves out.
	spared [eventKinds]bool
}

// process is a publisher: what outlives its sessions is its Client.
type process struct {
	number  int
	client  *Client
	frozen  bool
	session *simulated
}

const simulatedProcesses = 2

func newWorld(seed uint64) *world {
	pcg := rand.NewPCG(seed, 0)
	rng := rand.New(pcg)
	core, logs := observer.New(zapcore.ErrorLevel)
	w := &world{seed: seed, pcg: pcg, rng: rng, log: zap.New(core), logs: logs}
	partitions := 1 + rng.IntN(3)
	w.postgres.write(rng, partitions)
	w.cluster = modelCluster{
		partitions: make([]modelPartition, partitions), largestBatch: 100, bad: make(map[int32]bool),
	}
	for i := range w.cluster.partitions {
		w.cluster.partitions[i].leader = rng.Int32N(simulatedBrokers)
	}
	w.fencing = rng.IntN(4) > 0
	w.stay = rng.IntN(4) > 0
	w.window = checkpoint.Limits{Records: 1 + rng.IntN(12), Bytes: 1 << 20}
	w.faults = []int{0, 3, 10, 30}[rng.IntN(4)]
	w.forgets = rng.IntN(8) == 0
	w.controlWeight = []int{50, 50, 5}[rng.IntN(3)]
	for e := range w.spared {
		w.spared[e] = rng.IntN(2) == 0
	}
	w.config = Config{
		Brokers: []string{addressOf(0)}, Compression: "none",
		BatchBytes:           []int{1, 250, 512 << 10}[rng.IntN(3)],
		MaxInFlightPerBroker: 1 + rng.IntN(3),
		Linger:               []time.Duration{0, 0, 0, 5 * time.Millisecond}[rng.IntN(4)],
	}
	processes := 1 + rng.IntN(simulatedProcesses)
	for i := range processes {
		w.processes = append(w.processes, &process{number: i})
	}
	return w
}

// option is an event that can happen now.
type option struct {
	event   event
	weight  int
	process *process
	conn    *conn
	index   int
}

// step lets one event happen, which the seed and the number of the step choose.
func (w *world) step(number uint64) {
	w.pcg.Seed(w.seed, number+1)
	w.collect()
	pick := w.rng.IntN(w.weight)
	for i := range w.options {
		o := &w.options[i]
		if pick -= o.weight; pick < 0 {
			w.count(o.event)
			w.tell(number, o)
			w.happen(o)
			return
		}
	}
}

func (w *world) tell(number uint64, o *option) {
	if !w.telling {
		return
	}
	text := fmt.Sprintf("%4d  %s", number, eventNames[o.event])
	if o.process != nil {
		text += fmt.Sprintf("; process %d", o.process.number)
		if s := o.process.session; s != nil {
			text += fmt.Sprintf(", session %d", s.number)
		}
	}
	if o.conn != nil {
		text += fmt.Sprintf("; session %d to broker %d", o.conn.session.number, o.conn.broker)
		if r := o.conn.next(); r != nil {
			for i := range r.parts {
				text += "; " + r.parts[i].String()
			}
		}
	}
	w.told = append(w.told, text)
}

func (w *world) note(format string, args ...any) {
	if w.telling {
		w.told = append(w.told, "      "+fmt.Sprintf(format, args...))
	}
}

func (b *sentBatch) String() string {
	return fmt.Sprintf("partition %d, id %d/%d, sequence %d, rows %v", b.partition, b.producer, b.epoch, b.sequence, b.rows)
}

func (w *world) problem(format string, args ...any) {
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
	w.note("PROBLEM: "+format, args...)
}

// pass lets the clock run. Who has a connection to PostgreSQL hears from it.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
	for _, p := range w.processes {
		if s := p.session; s != nil && s.connected && !p.frozen {
			s.heard = time.Now()
		}
	}
}

// run lets the events of a schedule happen, without those that are left out,
// and then heals the world until everything is delivered.
func (w *world) run(steps int, without func(step int) bool) {
	for i := range steps {
		if without != nil && without(i) {
			continue
		}
		w.step(uint64(i))
		if len(w.problems) > 0 {
			break
		}
	}
	w.heal()
	w.end()
}

// healingSteps bounds how long a world without faults may take to deliver
// everything. They take a tenth of it.
const healingSteps = 6000

func (w *world) heal() {
	w.healing = true
	w.cluster.bad, w.cluster.largestBatch = map[int32]bool{}, 100
	w.cluster.coordinatorAway, w.cluster.refusesTransactional = false, false
	for i := range healingSteps {
		if len(w.problems) > 0 {
			return
		}
		if w.postgres.confirmed == w.postgres.last() && len(w.late) == 0 && len(w.lateClaims) == 0 {
			return
		}
		w.step(uint64(1_000_000 + i))
	}
	w.problem("confirmed %s, not %s, after everything has healed", w.postgres.confirmed, w.postgres.last())
}

// end stops what still runs.
func (w *world) end() {
	for _, p := range w.processes {
		if p.session != nil {
			p.session.vanish()
		}
	}
	synctest.Wait()
}
