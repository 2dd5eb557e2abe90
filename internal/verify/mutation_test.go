package verify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cdcpub/cdcpub/internal/verify"
)

func TestACorrectDeliveryPassesWhateverCrashes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDelivery(t)
		r := d.check()
		if !r.OK() {
			t.Fatal(r.Table())
		}
		if want := r.Records - r.Events; r.Repeated != want {
			t.Fatalf("%d repeated, want %d", r.Repeated, want)
		}
		most := 0
		for _, n := range d.rewinds {
			most = max(most, n)
		}
		if r.Rewinds != most {
			t.Fatalf("%d rewinds, want %d", r.Rewinds, most)
		}
		for _, s := range d.opts.Confirmed {
			if v := verify.CheckConfirmed(d.rows, s.Confirmed, d.before(s), d.opts); len(v) > 0 {
				t.Fatalf("confirmed %s: %+v", s.Confirmed, v)
			}
		}
	})
}

// mutation breaks one promise of a correct delivery.
type mutation struct {
	name     string
	apply    func(*rapid.T, *delivery)
	caughtBy verify.Kind
}

func mutations() []mutation {
	return []mutation{
		{"drop every record of an event", dropEvent, verify.Lost},
		{"drop a row from the history", hideRow, verify.Foreign},
		{"swap the first records of two events", swapFirst, verify.OutOfOrder},
		{"swap two versions of an aggregate", swapVersions, verify.VersionInverted},
		{"alter a byte of the value", change(alterValue), verify.Altered},
		{"alter the key, keep the partition", change(func(t *rapid.T, r *verify.Record) { r.Key = append(slices.Clip(r.Key), ' ') }), verify.Altered},
		{"alter a header", change(alterHeader), verify.Altered},
		{"drop a header", change(func(t *rapid.T, r *verify.Record) { r.Headers = r.Headers[:len(r.Headers)-1] }), verify.Altered},
		{"swap two headers", change(func(t *rapid.T, r *verify.Record) { slices.Reverse(r.Headers[1:]) }), verify.Altered},
		{"send the wall clock as timestamp", change(alterTimestamp), verify.Altered},
		{"move a record to another partition", moveRecord, verify.WrongPartition},
		{"move a record to another topic", change(func(t *rapid.T, r *verify.Record) { r.Topic += "s" }), verify.WrongPartition},
		{"replay a run with two records swapped", replay(0, 2, 1), verify.OutOfOrder},
		{"replay a run with a record left out", replay(0, 2), verify.OutOfOrder},
		{"replay a run backwards", replayBackwards, verify.ExcessRewinds},
		{"replay without a restart", replayUnasked, verify.ExcessRewinds},
		{"replay what was confirmed", replayConfirmed, verify.NeedlessRepeat},
		{"confirm a transaction with a row unsent", confirmEarly, verify.EarlyConfirmed},
		{"insert a record of nobody", insertForeign, verify.Foreign},
		{"insert a record without an id", insertNameless, verify.Foreign},
		{"publish what is in the quarantine", quarantinePublished, verify.QuarantinedPublished},
		{"give two rows one event id", func(t *rapid.T, d *delivery) { d.rows[1].EventID = d.rows[0].EventID }, verify.Input},
		{"read a record twice", func(t *rapid.T, d *delivery) { d.records = append(d.records, d.records[len(d.records)-1]) }, verify.Input},
	}
}

func TestEveryMutationIsCaught(t *testing.T) {
	var table strings.Builder
	fmt.Fprintf(&table, "%-48s %-22s %s\n", "mutation", "caught by", "caught / tried")
	for _, m := range mutations() {
		t.Run(m.name, func(t *testing.T) {
			tried, caught := 0, 0
			rapid.Check(t, func(t *rapid.T) {
				d := drawDelivery(t)
				if r := d.check(); !r.OK() {
					t.Fatalf("before the mutation:\n%s", r.Table())
				}
				m.apply(t, d)
				tried++
				r := d.check()
				if r.OK() || r.Count(m.caughtBy) == 0 {
					t.Fatalf("not caught by %s:\n%s", m.caughtBy, r.Table())
				}
				requireListed(t, r)
				caught++
			})
			fmt.Fprintf(&table, "%-48s %-22s %d / %d\n", m.name, m.caughtBy, caught, tried)
		})
	}
	t.Logf("\n%s", table.String())
}

func (d *delivery) check() verify.Report { return verify.Check(d.rows, d.records, d.opts) }

func (d *delivery) before(s verify.Sample) []verify.Record {
	return slices.DeleteFunc(slices.Clone(d.records), func(r verify.Record) bool {
		return r.Offset >= s.End[placeOf(r)]
	})
}

func placeOf(r verify.Record) verify.TopicPartition {
	return verify.TopicPartition{Topic: r.Topic, Partition: r.Partition}
}

func idOf(r verify.Record) string { return string(r.Headers[0].Value) }

func (d *delivery) row(id string) verify.Row {
	return d.rows[slices.IndexFunc(d.rows, func(r verify.Row) bool { return r.EventID == id })]
}

// firsts are the indexes of the first records of all events, in commit order.
func (d *delivery) firsts() []int {
	firsts := make([]int, len(d.rows))
	for i, row := range d.rows {
		firsts[i] = slices.IndexFunc(d.records, func(r verify.Record) bool { return idOf(r) == row.EventID })
	}
	return firsts
}

func (d *delivery) append(r verify.Record) {
	r.Offset = 0
	for _, other := range d.records {
		if placeOf(other) == placeOf(r) {
			r.Offset = other.Offset + 1
		}
	}
	d.records = append(d.records, r)
}

func drawRow(t *rapid.T, d *delivery) verify.Row {
	return rapid.SampledFrom(d.rows).Draw(t, "row")
}

func dropEvent(t *rapid.T, d *delivery) {
	id := drawRow(t, d).EventID
	d.records = slices.DeleteFunc(d.records, func(r verify.Record) bool { return idOf(r) == id })
}

func hideRow(t *rapid.T, d *delivery) {
	i := rapid.IntRange(0, len(d.rows)-1).Draw(t, "row")
	d.rows = slices.Delete(d.rows, i, i+1)
}

// swapFirst exchanges two records and leaves the offsets where they were.
func swapFirst(t *rapid.T, d *delivery) {
	d.swapPair(t, func(a, b verify.Row) bool { return d.home(a) == d.home(b) })
}

func swapVersions(t *rapid.T, d *delivery) {
	d.swapPair(t, func(a, b verify.Row) bool { return a.AggregateID == b.AggregateID && a.Version < b.Version })
}

func (d *delivery) swapPair(t *rapid.T, fits func(earlier, later verify.Row) bool) {
	var pairs [][2]int
	firsts := d.firsts()
	for i := range d.rows {
		for j := i + 1; j < len(d.rows); j++ {
			if fits(d.rows[i], d.rows[j]) {
				pairs = append(pairs, [2]int{firsts[i], firsts[j]})
			}
		}
	}
	pair := rapid.SampledFrom(pairs).Draw(t, "pair")
	a, b := &d.records[pair[0]], &d.records[pair[1]]
	*a, *b = *b, *a
	a.Offset, b.Offset = b.Offset, a.Offset
}

// change alters any one record, which may be a repeat.
func change(alter func(*rapid.T, *verify.Record)) func(*rapid.T, *delivery) {
	return func(t *rapid.T, d *delivery) {
		r := &d.records[rapid.IntRange(0, len(d.records)-1).Draw(t, "record")]
		r.Headers = slices.Clone(r.Headers)
		alter(t, r)
	}
}

func alterValue(t *rapid.T, r *verify.Record) {
	switch {
	case r.Value == nil:
		r.Value = []byte{}
	case len(r.Value) == 0:
		r.Value = nil
	default:
		r.Value = slices.Clone(r.Value)
		r.Value[rapid.IntRange(0, len(r.Value)-1).Draw(t, "byte")] ^= 1
	}
}

func alterHeader(t *rapid.T, r *verify.Record) {
	h := &r.Headers[rapid.IntRange(1, len(r.Headers)-1).Draw(t, "header")]
	h.Value = append(slices.Clip(h.Value), '0')
}

func alterTimestamp(t *rapid.T, r *verify.Record) {
	r.Timestamp = r.Timestamp.Add(time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond)
}

func moveRecord(t *rapid.T, d *delivery) {
	i := rapid.IntRange(0, len(d.records)-1).Draw(t, "record")
	r := d.records[i]
	d.records = slices.Delete(d.records, i, i+1)
	r.Partition = (r.Partition + 1) % d.opts.Partitions[r.Topic]
	d.append(r)
}

// drawRun draws three neighbouring rows of one partition.
func drawRun(t *rapid.T, d *delivery) []verify.Row {
	byHome := map[verify.TopicPartition][]verify.Row{}
	var runs [][]verify.Row
	for _, r := range d.rows {
		home := d.home(r)
		byHome[home] = append(byHome[home], r)
		if rows := byHome[home]; len(rows) >= 3 {
			runs = append(runs, slices.Clone(rows[len(rows)-3:]))
		}
	}
	return rapid.SampledFrom(runs).Draw(t, "run")
}

// replay sends some of three neighbouring rows again at the end of the topic,
// in this order. No sample and no limit on restarts helps to catch it.
func replay(picks ...int) func(*rapid.T, *delivery) {
	return func(t *rapid.T, d *delivery) {
		run := drawRun(t, d)
		d.opts.Rewinds = -1
		for _, n := range picks {
			d.append(record(run[n], d.home(run[n]).Partition, 0))
		}
	}
}

// replayBackwards looks like a restart for every record. That only one more
// happened than the partition shows already is what gives it away.
func replayBackwards(t *rapid.T, d *delivery) {
	run := drawRun(t, d)
	d.useUpRewinds(run[2])
	d.opts.Rewinds++
	for _, n := range []int{2, 1, 0} {
		d.append(record(run[n], d.home(run[n]).Partition, 0))
	}
}

func replayUnasked(t *rapid.T, d *delivery) {
	run := drawRun(t, d)
	d.useUpRewinds(run[2])
	d.append(record(run[2], d.home(run[2]).Partition, 0))
}

// useUpRewinds repeats a row until its partition started over as often as the
// publisher. That is still correct as far as rewinds go.
func (d *delivery) useUpRewinds(r verify.Row) {
	d.opts.Restarts = nil
	for n := d.rewinds[d.home(r)]; n < d.opts.Rewinds; n++ {
		d.append(record(r, d.home(r).Partition, 0))
	}
}

// replayConfirmed restarts after everything was sent and confirmed.
func replayConfirmed(t *rapid.T, d *delivery) {
	done := verify.Sample{Confirmed: d.rows[len(d.rows)-1].CommitEnd, End: map[verify.TopicPartition]int64{}}
	for _, r := range d.records {
		done.End[placeOf(r)] = r.Offset + 1
	}
	d.opts.Restarts = append(d.opts.Restarts, done)
	d.opts.Rewinds++
	row := drawRow(t, d)
	d.append(record(row, d.home(row).Partition, 0))
}

func confirmEarly(t *rapid.T, d *delivery) {
	first := d.records[rapid.SampledFrom(d.firsts()).Draw(t, "first record")]
	s := verify.Sample{Confirmed: d.row(idOf(first)).CommitEnd, End: map[verify.TopicPartition]int64{}}
	for _, r := range d.records {
		s.End[placeOf(r)] = r.Offset + 1
	}
	s.End[placeOf(first)] = first.Offset
	at := rapid.IntRange(0, len(d.opts.Confirmed)).Draw(t, "sample")
	d.opts.Confirmed = slices.Insert(d.opts.Confirmed, at, s)
	if v := verify.CheckConfirmed(d.rows, s.Confirmed, d.before(s), d.opts); len(v) == 0 {
		t.Fatal("CheckConfirmed did not catch it")
	}
}

func insertForeign(t *rapid.T, d *delivery) {
	row := drawRow(t, d)
	partition := d.home(row).Partition
	row.EventID += "0000"
	d.append(record(row, partition, 0))
}

func insertNameless(t *rapid.T, d *delivery) {
	row := drawRow(t, d)
	r := record(row, d.home(row).Partition, 0)
	r.Headers = r.Headers[1:]
	d.append(r)
}

func quarantinePublished(t *rapid.T, d *delivery) {
	d.opts.Quarantined = map[string]bool{drawRow(t, d).EventID: true}
}
