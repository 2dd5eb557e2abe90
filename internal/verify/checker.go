package verify

// Check judges records, in the order in which each partition was read, against
// the rows of the history. It is the whole of a Checker in one call.
func Check(rows []Row, records []Record, opts Options) Report {
	c := NewChecker(rows, opts)
	for _, r := range records {
		c.Add(r)
	}
	return c.Report()
}

// Checker judges records as they are read, so that a large topic need not be
// held in memory: it keeps about 100 bytes per event, 16 more per repeat, and
// refers to the rows, which must not change. It is not safe for concurrent use.
type Checker struct {
	opts Options
	history
	report Report

	// delivered is true for a row with a record anywhere; first is the offset
	// of its first record in its own partition, notRead when there is none.
	delivered []bool
	first     []int64

	partitions map[TopicPartition]*partition
	// order holds the partitions as they were first met, for stable reports.
	order []*partition
}

// partition is what one partition should hold, and what it does hold.
type partition struct {
	TopicPartition
	// expected are the rows that belong here, in commit order.
	expected []int32
	// log are the records that belong here, in offset order.
	log []entry
	// next is the lowest offset that the next record may have.
	next int64
}

type entry struct {
	offset int64
	row    int32
}

const notRead = int64(-1)

// NewChecker prepares to judge records against rows. What is wrong with the
// history itself becomes an Input violation of the report.
func NewChecker(rows []Row, opts Options) *Checker {
	c := &Checker{
		opts:       opts.withDefaults(),
		delivered:  make([]bool, len(rows)),
		first:      make([]int64, len(rows)),
		partitions: make(map[TopicPartition]*partition),
	}
	c.report.maxPerKind = c.opts.MaxPerKind
	for i := range c.first {
		c.first[i] = notRead
	}
	c.history = readHistory(rows, c.opts, &c.report)
	for i := range rows {
		if home := c.home[i]; home >= 0 && !c.quarantined(i) {
			p := c.partition(c.places[home])
			p.expected = append(p.expected, int32(i))
		}
	}
	return c
}

// Add judges the next record. The records of a partition come by rising
// offset; partitions may be mixed. The record is not kept.
func (c *Checker) Add(r Record) {
	c.report.Records++
	p := c.partition(TopicPartition{r.Topic, r.Partition})
	if r.Offset < p.next {
		c.report.add(at(Input, "", r), func() string { return offsetsFall(r, p.next) })
		return
	}
	p.next = r.Offset + 1

	id, found := eventID(r, c.opts.EventIDHeader)
	i, known := c.byID[string(id)]
	if !found || !known {
		c.unexplained(r, id, found)
		return
	}
	if c.quarantined(int(i)) {
		c.report.add(at(QuarantinedPublished, string(id), r), func() string { return quarantinedHere(r, c.rows[i]) })
		return
	}
	if c.delivered[i] {
		c.report.Repeated++
	}
	c.delivered[i] = true
	c.judgeContent(r, c.rows[i])
	c.judgePlace(r, i, p)
}

func (c *Checker) unexplained(r Record, id []byte, found bool) {
	if c.opts.shared(r.Topic) {
		c.report.Others++
		return
	}
	c.report.add(at(Foreign, string(id), r), func() string { return unexplainedHere(r, found, c.opts.EventIDHeader) })
}

func (c *Checker) judgeContent(r Record, row Row) {
	if !matches(r, row, c.opts.Expect) {
		c.report.add(at(Altered, row.EventID, r), func() string { return alteredHere(r, row, c.opts.Expect) })
	}
}

// judgePlace notes the record in its partition's log. A record in a wrong
// place takes no part in the judgement of order, and does not count as the one
// that its consumers wait for.
func (c *Checker) judgePlace(r Record, i int32, p *partition) {
	home := c.home[i]
	if home < 0 {
		return
	}
	if want := c.places[home]; want != p.TopicPartition {
		c.report.add(at(WrongPartition, c.rows[i].EventID, r), func() string { return misplacedHere(r, c.rows[i], want) })
		return
	}
	if c.first[i] == notRead {
		c.first[i] = r.Offset
	}
	p.log = append(p.log, entry{r.Offset, i})
}

// Report gives the verdict over everything added so far.
func (c *Checker) Report() Report {
	report := c.report.clone()
	report.ConfirmedSamples = len(c.opts.Confirmed)
	report.RestartSamples = len(c.opts.Restarts)
	rank := make([]int32, len(c.rows))
	for _, p := range c.order {
		if p.next > 0 {
			report.Partitions++
		}
		c.judgeLoss(p, &report)
		c.judgeOrder(p, rank, &report)
		c.judgeConfirmed(p, c.opts.Confirmed, &report)
		c.judgeRestarts(p, c.opts.Restarts, &report)
	}
	return report
}

// judgeLoss finds the rows of a partition without any record. Rows that have
// one in a wrong place are reported as such and are not lost.
func (c *Checker) judgeLoss(p *partition, report *Report) {
	last := -1
	for n, i := range p.expected {
		if c.first[i] != notRead {
			last = n
		}
	}
	for n, i := range p.expected {
		switch {
		case c.delivered[i]:
		case c.opts.Incomplete && n > last:
			report.Pending++
		default:
			report.add(c.about(Lost, i), func() string { return lostRow(c.rows[i], p.TopicPartition) })
		}
	}
}

func (c *Checker) partition(tp TopicPartition) *partition {
	p := c.partitions[tp]
	if p == nil {
		p = &partition{TopicPartition: tp}
		c.partitions[tp] = p
		c.order = append(c.order, p)
	}
	return p
}

func (c *Checker) quarantined(i int) bool { return c.opts.Quarantined[c.rows[i].EventID] }

// about starts a violation that concerns a row and no record.
func (c *Checker) about(k Kind, i int32) Violation {
	v := Violation{Kind: k, EventID: c.rows[i].EventID, Partition: -1, Offset: -1}
	if home := c.home[i]; home >= 0 {
		v.Topic, v.Partition = c.places[home].Topic, c.places[home].Partition
	}
	return v
}

// at starts a violation that concerns a record.
func at(k Kind, eventID string, r Record) Violation {
	return Violation{Kind: k, EventID: eventID, Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}
}

func eventID(r Record, header string) ([]byte, bool) {
	for _, h := range r.Headers {
		if h.Key == header {
			return h.Value, true
		}
	}
	return nil, false
}
