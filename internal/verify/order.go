package verify

// judgeOrder walks a partition's log. Rows are numbered by their rank among
// the rows that the partition does hold, so that a lost row is one loss and
// not also a disorder of everything behind it. Then a correct log is
//
//	rank <= previous rank + 1
//
// for every record: +1 continues a run, anything else starts over, at or
// before the previous end. Ranks that nobody has seen yet can only come in
// order, because whatever a run jumped over comes later, as a late record.
//
// rank is scratch space, one place per row of the history.
func (c *Checker) judgeOrder(p *partition, rank []int32, report *Report) {
	j := orderJudge{c: c, p: p, report: report, rank: rank, newest: -1, current: -1}
	for _, i := range p.expected {
		if c.first[i] != notRead {
			rank[i] = int32(len(j.held))
			j.held = append(j.held, i)
		}
	}
	j.seen = make([]bool, len(j.held))
	for _, e := range p.log {
		j.next(e)
	}
	report.Rewinds = max(report.Rewinds, j.rewinds)
	if c.opts.Rewinds >= 0 && j.rewinds > c.opts.Rewinds {
		v := Violation{Kind: ExcessRewinds, Topic: p.Topic, Partition: p.Partition, Offset: -1}
		report.add(v, func() string { return tooManyRewinds(p.TopicPartition, j.rewinds, c.opts.Rewinds) })
	}
}

type orderJudge struct {
	c      *Checker
	p      *partition
	report *Report

	held []int32 // rows by rank
	rank []int32 // ranks by row, for the rows in held
	seen []bool  // by rank

	// newest is the highest rank seen, current the rank where the run stands.
	// current <= newest; they differ while a run is being repeated.
	newest, current int32
	rewinds         int
}

func (j *orderJudge) next(e entry) {
	rank := j.rank[e.row]
	switch {
	case !j.seen[rank] && rank < j.newest:
		j.late(e, rank)
		j.seen[rank] = true
		// A late record that does not continue the run is taken as misplaced,
		// so that one displaced record is one violation.
		if rank != j.current+1 {
			return
		}
	case rank <= j.current:
		j.rewinds++
	case rank > j.current+1 && j.current < j.newest:
		j.jump(e, rank)
	}
	j.seen[rank] = true
	j.current = rank
	j.newest = max(j.newest, rank)
}

// late reports the first record of a row that comes after a later row's, and
// whether a higher version of the same aggregate is among those.
func (j *orderJudge) late(e entry, rank int32) {
	row := j.c.rows[e.row]
	newest := j.c.rows[j.held[j.newest]]
	j.report.add(j.violation(OutOfOrder, e), func() string { return cameLate(row, newest) })
	for i := j.c.successor[e.row]; i >= 0; i = j.c.successor[i] {
		if j.hasSeen(i) && j.c.rows[i].Version > row.Version {
			j.report.add(j.violation(VersionInverted, e), func() string { return versionInverted(row, j.c.rows[i]) })
			return
		}
	}
}

// hasSeen tells whether a row that belongs to this partition has come by.
func (j *orderJudge) hasSeen(i int32) bool {
	home := j.c.home[i]
	return home >= 0 && j.c.places[home] == j.p.TopicPartition && j.c.first[i] != notRead && j.seen[j.rank[i]]
}

// jump reports a repeated run that leaves out rows which it should repeat.
func (j *orderJudge) jump(e entry, rank int32) {
	previous := j.c.rows[j.held[j.current]]
	j.report.add(j.violation(OutOfOrder, e), func() string {
		return runBroke(previous, j.c.rows[e.row], rank-j.current-1)
	})
}

func (j *orderJudge) violation(k Kind, e entry) Violation {
	return Violation{
		Kind: k, EventID: j.c.rows[e.row].EventID,
		Topic: j.p.Topic, Partition: j.p.Partition, Offset: e.offset,
	}
}
