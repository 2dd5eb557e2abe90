package verify_test

import (
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pglogrepl"
	"pgregory.net/rapid"

	"github.com/cdcpub/cdcpub/internal/verify"
)

// delivery is a history and what a correct publisher made of it, with crashes.
type delivery struct {
	rows    []verify.Row
	records []verify.Record
	opts    verify.Options
	// rewinds is how often each partition really started over.
	rewinds map[verify.TopicPartition]int
}

const sharedTopics = 2

// drawHistory makes transactions of one to four rows over a few aggregates.
// Now and then the writers swap two consecutive versions of an aggregate. With
// at least minRows rows over at most six partitions, one partition has three
// rows, and one aggregate has a rising pair of versions there.
func drawHistory(t *rapid.T) []verify.Row {
	const minRows = 24
	var rows []verify.Row
	versions := map[int]int64{}
	swapped := map[int]int64{}
	end := pglogrepl.LSN(100)
	for len(rows) < minRows || rapid.IntRange(0, 15).Draw(t, "more") > 0 {
		end += pglogrepl.LSN(rapid.IntRange(1, 50).Draw(t, "LSN step"))
		at := firstCommit.Add(time.Duration(rapid.IntRange(-2000, 2000).Draw(t, "commit time")) * 777 * time.Microsecond)
		for range rapid.IntRange(1, 4).Draw(t, "rows of transaction") {
			aggregate := rapid.IntRange(0, 4).Draw(t, "aggregate")
			version, held := swapped[aggregate]
			if held {
				delete(swapped, aggregate)
			} else {
				versions[aggregate]++
				version = versions[aggregate]
				if rapid.IntRange(0, 9).Draw(t, "writer inversion") == 0 {
					swapped[aggregate] = version
					versions[aggregate]++
					version++
				}
			}
			row := verify.Row{
				CommitEnd: end, CommitTime: at,
				EventID:       "event-" + strconv.Itoa(len(rows)),
				AggregateType: "type" + strconv.Itoa(aggregate%sharedTopics),
				AggregateID:   "aggregate-" + strconv.Itoa(aggregate),
				Version:       version,
				EventType:     "Changed",
			}
			if rapid.IntRange(0, 5).Draw(t, "tombstone") > 0 {
				row.Payload = rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(t, "payload")
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// publisher is a model of the product, written from its promises: it reads the
// rows from the confirmed position on, each partition takes them in order and
// at its own speed, a crash cuts every partition off anywhere, and what is
// confirmed is the end of a transaction up to which this session has sent all.
// What an earlier session sent does not count: nobody remembers it.
type publisher struct {
	t         *rapid.T
	d         *delivery
	sent      []bool // by row, in this session
	confirmed int    // rows before this one are confirmed
	ends      map[verify.TopicPartition]int64
	lastRow   map[verify.TopicPartition]int
}

func drawDelivery(t *rapid.T) *delivery {
	d := &delivery{rows: drawHistory(t), rewinds: map[verify.TopicPartition]int{}}
	d.opts.Partitions = map[string]int32{}
	for n := range sharedTopics {
		d.opts.Partitions["outbox.event.type"+strconv.Itoa(n)] = int32(rapid.IntRange(2, 3).Draw(t, "partitions"))
	}
	p := &publisher{t: t, d: d, sent: make([]bool, len(d.rows)), ends: map[verify.TopicPartition]int64{}, lastRow: map[verify.TopicPartition]int{}}
	restarts := rapid.IntRange(0, 4).Draw(t, "restarts")
	for range restarts {
		p.session(false)
		p.confirmSome()
		d.opts.Confirmed = append(d.opts.Confirmed, p.sample())
		d.opts.Restarts = append(d.opts.Restarts, p.sample())
	}
	p.session(true)
	d.opts.Rewinds = restarts
	return d
}

// session sends the rows from the confirmed position on, to every partition
// its own share of them: all of it, or a random part when it will crash.
func (p *publisher) session(complete bool) {
	clear(p.sent)
	queues := map[verify.TopicPartition][]int{}
	var names []verify.TopicPartition
	for i := p.confirmed; i < len(p.d.rows); i++ {
		home := p.d.home(p.d.rows[i])
		if queues[home] == nil {
			names = append(names, home)
		}
		queues[home] = append(queues[home], i)
	}
	if !complete {
		for _, home := range names {
			queues[home] = queues[home][:rapid.IntRange(0, len(queues[home])).Draw(p.t, "sent before the crash")]
		}
	}
	names = slices.DeleteFunc(names, func(home verify.TopicPartition) bool { return len(queues[home]) == 0 })
	for len(names) > 0 {
		n := rapid.IntRange(0, len(names)-1).Draw(p.t, "partition")
		home := names[n]
		p.send(home, queues[home][0])
		if queues[home] = queues[home][1:]; len(queues[home]) == 0 {
			names = slices.Delete(names, n, n+1)
		}
	}
}

func (p *publisher) send(home verify.TopicPartition, row int) {
	if last, any := p.lastRow[home]; any && row <= last {
		p.d.rewinds[home]++
	}
	p.lastRow[home] = row
	p.sent[row] = true
	p.d.records = append(p.d.records, record(p.d.rows[row], home.Partition, p.ends[home]))
	p.ends[home]++
}

// confirmSome moves the confirmed position to the end of any transaction before
// the first row that this session has not sent.
func (p *publisher) confirmSome() {
	safe := p.confirmed
	for safe < len(p.sent) && p.sent[safe] {
		safe++
	}
	n := rapid.IntRange(p.confirmed, safe).Draw(p.t, "confirmed")
	for n > 0 && n < len(p.d.rows) && p.d.rows[n-1].CommitEnd == p.d.rows[n].CommitEnd {
		n--
	}
	p.confirmed = max(p.confirmed, n)
}

func (p *publisher) sample() verify.Sample {
	s := verify.Sample{End: map[verify.TopicPartition]int64{}}
	for home, end := range p.ends {
		s.End[home] = end
	}
	if p.confirmed > 0 {
		s.Confirmed = p.d.rows[p.confirmed-1].CommitEnd
	}
	return s
}

func (d *delivery) home(r verify.Row) verify.TopicPartition {
	name := "outbox.event." + r.AggregateType
	return verify.TopicPartition{Topic: name, Partition: verify.PartitionOf([]byte(r.AggregateID), d.opts.Partitions[name])}
}
