package kafka

import (
	"slices"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/cdcpub/cdcpub/internal/verify"
)

// judge holds the topic against the promises of docs/guarantees.md.
func (w *world) judge() []string {
	problems := slices.Clone(w.problems)
	complain := func(text string) { problems = append(problems, text) }
	for _, entry := range w.logs.All() {
		if entry.Level >= zapcore.ErrorLevel {
			complain("logged: " + entry.Message)
		}
	}
	var records []verify.Record
	for i := range w.cluster.partitions {
		p := &w.cluster.partitions[i]
		batches := p.batches[:p.replicated]
		newest := -1 // the batch that none so far was sent after
		for n := range batches {
			b := &batches[n]
			w.judgeBatch(b, complain)
			w.judgeRepeat(b, batches[:n], complain)
			late := newest >= 0 && before(b, &batches[newest])
			switch {
			case !late:
				newest = n
			case w.mayBeLate(b, &batches[newest]):
				w.count(evLateRepeat)
				continue
			default:
				complain("appended late: " + b.String())
			}
			records = append(records, asRead(b)...)
		}
		w.eventCounts[evJudgedBatch] += int64(len(batches))
		w.judgeFirst(int32(i), batches, complain)
	}
	report := verify.Check(w.postgres.rows, records, verify.Options{
		Partitions: map[string]int32{simulatedTopic: int32(len(w.cluster.partitions))}, Expect: simulatedExpectation,
		Rewinds: -1, AllowEmpty: true, Confirmed: w.samples, Incomplete: len(w.problems) > 0,
	})
	w.eventCounts[evJudgedRow] += int64(len(w.postgres.rows))
	w.eventCounts[evJudgedRecord] += int64(len(records))
	w.eventCounts[evJudgedSample] += int64(len(w.samples))
	if w.fencing && !w.unfenced && !w.cluster.forgotten {
		w.count(evJudgedFenced)
	}
	for _, v := range report.Violations {
		complain(string(v.Kind) + ": " + v.Detail)
	}
	return problems
}

// before: b was sent before other, by an earlier session or the same one.
func before(b, other *logged) bool {
	return b.session < other.session || b.session == other.session && b.rows[0] < other.rows[0]
}

// mayBeLate: nothing shuts a batch out that was sent before one of a later
// session and appended behind it.
func (w *world) mayBeLate(b, newer *logged) bool {
	switch {
	case w.cluster.forgotten, w.unfenced:
		return true
	case w.fencing:
		return false
	}
	return w.cluster.idReplaced || w.starts[b.session].client != w.starts[newer.session].client
}

// judgeBatch: a batch is a run of its partition, and holds nothing that was
// confirmed when its session began.
func (w *world) judgeBatch(b *logged, complain func(string)) {
	start := w.starts[b.session].start
	for i, row := range b.rows {
		if i > 0 && row != w.following(b.partition, b.rows[i-1]) {
			complain("not a run: " + b.String())
		}
		if w.postgres.rows[row].CommitEnd <= start {
			complain("sent again although its session began behind it: " + b.String())
		}
	}
}

// judgeRepeat: within a session nothing comes twice, unless a broker has not
// taken an identity or a sequence number of ours, or has forgotten them.
func (w *world) judgeRepeat(b *logged, earlier []logged, complain func(string)) {
	if w.cluster.forgotten || w.starts[b.session].spoilt[b.partition] {
		return
	}
	for i := range earlier {
		e := &earlier[i]
		if e.session == b.session && e.rows[len(e.rows)-1] >= b.rows[0] {
			complain("repeated within a session: " + b.String())
		}
	}
}

// following is the row behind the given one in its partition; -1 gives the
// first.
func (w *world) following(partition, row int32) int32 {
	for next := row + 1; int(next) < len(w.postgres.homes); next++ {
		if w.postgres.homes[next] == partition {
			return next
		}
	}
	return -1
}

// judgeFirst: first occurrences come in order, late requests included.
func (w *world) judgeFirst(partition int32, batches []logged, complain func(string)) {
	newest := int32(-1)
	for i := range batches {
		for _, row := range batches[i].rows {
			if row <= newest {
				continue
			}
			if row != w.following(partition, newest) {
				complain("came before the row in front of it: " + batches[i].String())
			}
			newest = row
		}
	}
}

// asRead is a batch as a consumer sees it.
func asRead(b *logged) []verify.Record {
	records := make([]verify.Record, len(b.records))
	for i := range b.records {
		r := &b.records[i]
		records[i] = verify.Record{
			Topic: simulatedTopic, Partition: b.partition, Offset: b.offset + int64(i), Key: r.Key, Value: r.Value,
			Headers:   []verify.Header{{Key: string(r.Headers[0].Key), Value: r.Headers[0].Value}},
			Timestamp: time.UnixMilli(b.first).Add(r.TimestampDelta),
		}
	}
	return records
}
