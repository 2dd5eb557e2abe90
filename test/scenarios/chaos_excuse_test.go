package scenarios

import (
	"slices"
	"testing"

	"github.com/jackc/pglogrepl"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

// excuse is what gaps excuse.
type excuse struct {
	rows map[string]bool // ids of events that were in no slot and are not in the topic
	late []lateRow
}

// lateRow is a row of a gap that is in the topic: a request that was on its way
// when the slot went may be appended when another slot has long begun.
type lateRow struct {
	commitEnd pglogrepl.LSN
	partition verify.TopicPartition
	offset    int64
}

// excused finds the rows that may be missing.
func (w *chaosWorld) excused() excuse {
	var e excuse
	if len(w.gaps) == 0 {
		return e
	}
	w.history()
	inGap := rowsIn(w.gaps, w.rows)
	w.no(harness.ReadEach(w.ctx, w.brokers.Direct(), w.topics, func(r verify.Record) error {
		for _, header := range r.Headers {
			id := string(header.Value)
			if end, ok := inGap[id]; ok && header.Key == "id" {
				delete(inGap, id)
				e.late = append(e.late, lateRow{end, verify.TopicPartition{Topic: r.Topic, Partition: r.Partition}, r.Offset})
			}
		}
		return nil
	}))
	e.rows = map[string]bool{}
	for id := range inGap {
		e.rows[id] = true
	}
	return e
}

// rowsIn are the ends of the commits of rows in gaps, by event id.
func rowsIn(gaps []*chaosGap, rows []verify.Row) map[string]pglogrepl.LSN {
	ends := map[string]pglogrepl.LSN{}
	for _, row := range rows {
		if slices.ContainsFunc(gaps, func(g *chaosGap) bool { return row.CommitEnd > g.low && row.CommitEnd <= g.high }) {
			ends[row.EventID] = row.CommitEnd
		}
	}
	return ends
}

// keep drops the samples of a slot that began behind a row before that came: it
// has never confirmed the row.
func (e excuse) keep(samples []verify.Sample) []verify.Sample {
	return slices.DeleteFunc(slices.Clone(samples), func(s verify.Sample) bool {
		return slices.ContainsFunc(e.late, func(r lateRow) bool {
			return s.Confirmed >= r.commitEnd && s.End[r.partition] <= r.offset
		})
	})
}

func TestGapsExcuseTheirRowsAlone(t *testing.T) {
	row := func(id string, end pglogrepl.LSN) verify.Row { return verify.Row{EventID: id, CommitEnd: end} }
	rows := []verify.Row{row("confirmed", 10), row("first", 11), row("last", 20), row("after", 21)}
	inGap := rowsIn([]*chaosGap{{low: 10, high: 20}}, rows)
	if len(inGap) != 2 || inGap["first"] != 11 || inGap["last"] != 20 {
		t.Errorf("in the gap: %v", inGap)
	}
	p := verify.TopicPartition{Topic: "orders"}
	e := excuse{late: []lateRow{{commitEnd: 11, partition: p, offset: 5}}}
	sample := func(confirmed pglogrepl.LSN, end int64) verify.Sample {
		return verify.Sample{Confirmed: confirmed, End: map[verify.TopicPartition]int64{p: end}}
	}
	kept := e.keep([]verify.Sample{sample(10, 5), sample(20, 5), sample(20, 6)})
	if len(kept) != 2 || kept[0].Confirmed != 10 || kept[1].End[p] != 6 {
		t.Errorf("kept %v", kept)
	}
}
