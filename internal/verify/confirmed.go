package verify

import (
	"cmp"
	"math"
	"slices"

	"github.com/jackc/pglogrepl"
)

// CheckConfirmed returns a violation for every row that the slot had confirmed
// and that is not in records. confirmed is confirmed_flush_lsn, read from the
// server before the topics were read to their ends; records is what was read.
// Of opts it uses what says where a row belongs and what was quarantined. All
// violations are listed; those of kind Input say why it could not judge.
func CheckConfirmed(rows []Row, confirmed pglogrepl.LSN, records []Record, opts Options) []Violation {
	opts.MaxPerKind = math.MaxInt
	opts.Confirmed, opts.Restarts = nil, nil
	c := NewChecker(rows, opts)
	for _, r := range records {
		c.Add(r)
	}
	sample := Sample{Confirmed: confirmed, End: make(map[TopicPartition]int64)}
	for _, p := range c.order {
		sample.End[p.TopicPartition] = p.next
	}
	report := c.report.clone()
	for _, p := range c.order {
		c.judgeConfirmed(p, []Sample{sample}, &report)
	}
	return slices.DeleteFunc(report.Violations, func(v Violation) bool {
		return v.Kind != EarlyConfirmed && v.Kind != Input
	})
}

// judgeConfirmed reports each row of the partition once for which a sample
// exists that had confirmed it and whose end offset was not above it.
func (c *Checker) judgeConfirmed(p *partition, samples []Sample, report *Report) {
	if len(samples) == 0 {
		return
	}
	byLSN := slices.SortedFunc(slices.Values(samples), func(a, b Sample) int {
		return cmp.Compare(a.Confirmed, b.Confirmed)
	})
	// strictest[n] is the sample with the lowest end among byLSN[n:], which are
	// the samples that had confirmed whatever byLSN[n] had.
	strictest := slices.Clone(byLSN)
	for n := len(strictest) - 2; n >= 0; n-- {
		if strictest[n+1].End[p.TopicPartition] <= strictest[n].End[p.TopicPartition] {
			strictest[n] = strictest[n+1]
		}
	}
	n := 0
	for _, i := range p.expected {
		row := c.rows[i]
		for n < len(byLSN) && byLSN[n].Confirmed < row.CommitEnd {
			n++
		}
		if n == len(byLSN) {
			return
		}
		s, end := strictest[n], strictest[n].End[p.TopicPartition]
		if first := c.first[i]; first == notRead || first >= end {
			v := c.about(EarlyConfirmed, i)
			v.Offset = first
			report.add(v, func() string { return confirmedEarly(row, s, p.TopicPartition, first) })
		}
	}
}

// judgeRestarts reports each record that was written after a restart although
// the slot had confirmed its row by then. Only the latest restart before the
// record counts: after a crash of PostgreSQL the slot may stand earlier than
// at the restart before.
func (c *Checker) judgeRestarts(p *partition, samples []Sample, report *Report) {
	byEnd := slices.SortedStableFunc(slices.Values(samples), func(a, b Sample) int {
		return cmp.Compare(a.End[p.TopicPartition], b.End[p.TopicPartition])
	})
	var latest Sample // before the record
	n := 0
	for _, e := range p.log {
		for ; n < len(byEnd) && byEnd[n].End[p.TopicPartition] <= e.offset; n++ {
			latest = byEnd[n]
		}
		row := c.rows[e.row]
		if row.CommitEnd <= latest.Confirmed {
			v := Violation{
				Kind: NeedlessRepeat, EventID: row.EventID,
				Topic: p.Topic, Partition: p.Partition, Offset: e.offset,
			}
			report.add(v, func() string { return repeatedNeedlessly(row, latest, p.TopicPartition) })
		}
	}
}
