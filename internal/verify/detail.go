package verify

import (
	"fmt"
	"strings"
	"time"
)

// The sentences of violations. They name events and positions and describe
// bytes by length and place, because a report travels further than payloads may.

// name identifies a row for an engineer who has the database at hand.
func name(r Row) string {
	return fmt.Sprintf("event %s (%s %s version %d, commit end LSN %s)",
		r.EventID, r.AggregateType, r.AggregateID, r.Version, r.CommitEnd)
}

func lostRow(r Row, home TopicPartition) string {
	return fmt.Sprintf("%s was committed, but no topic read has it; it belongs in %s", name(r), home)
}

func offsetsFall(r Record, next int64) string {
	return fmt.Sprintf("record %s was read after offset %d: the records of a partition must come in offset order, each once", position(r), next-1)
}

func unexplainedHere(r Record, found bool, header string) string {
	if !found {
		return fmt.Sprintf("record %s has no header %q, so no row explains it", position(r), header)
	}
	return fmt.Sprintf("record %s has an event id (header %q) that no row of the history has", position(r), header)
}

func quarantinedHere(r Record, row Row) string {
	return fmt.Sprintf("%s is in the quarantine, but %s has it too", name(row), position(r))
}

func misplacedHere(r Record, row Row, want TopicPartition) string {
	return fmt.Sprintf("%s is at %s, but belongs in %s", name(row), position(r), want)
}

func cameLate(row, newest Row) string {
	return fmt.Sprintf("%s came first after %s, which was committed later", name(row), name(newest))
}

func versionInverted(row, higher Row) string {
	return fmt.Sprintf("%s came first after %s, although the writers committed them in order", name(row), name(higher))
}

func runBroke(previous, row Row, left int32) string {
	return fmt.Sprintf("after a restart the run went on from %s to %s and left out %d rows between them", name(previous), name(row), left)
}

func tooManyRewinds(p TopicPartition, got, allowed int) string {
	return fmt.Sprintf("%s started over %d times, but the publisher only %d times", p, got, allowed)
}

func confirmedEarly(row Row, s Sample, home TopicPartition, first int64) string {
	end := s.End[home]
	state := "it never came"
	if first != notRead {
		state = fmt.Sprintf("it came at offset %d", first)
	}
	return fmt.Sprintf("%s was confirmed (confirmed_flush_lsn %s) while %s ended at offset %d without it; %s", name(row), s.Confirmed, home, end, state)
}

func repeatedNeedlessly(row Row, s Sample, home TopicPartition) string {
	return fmt.Sprintf("%s was sent after a restart (%s ended at offset %d) although the slot had confirmed %s before it", name(row), home, s.End[home], s.Confirmed)
}

func alteredHere(r Record, row Row, e Expectation) string {
	var parts []string
	if d := difference(e.Key(row), r.Key); d != "" {
		parts = append(parts, "key: "+d)
	}
	if d := difference(e.Value(row), r.Value); d != "" {
		parts = append(parts, "value: "+d)
	}
	if d := headerDifference(e.Headers(row), r.Headers); d != "" {
		parts = append(parts, "headers: "+d)
	}
	if want := e.Timestamp(row); want.UnixMilli() != r.Timestamp.UnixMilli() {
		parts = append(parts, fmt.Sprintf("timestamp: expected %s, found %s", millis(want), millis(r.Timestamp)))
	}
	return fmt.Sprintf("record %s differs from %s: %s", position(r), name(row), strings.Join(parts, "; "))
}

func headerDifference(want, got []Header) string {
	if len(want) != len(got) {
		return fmt.Sprintf("expected %s, found %s", headerNames(want), headerNames(got))
	}
	for n := range want {
		if want[n].Key != got[n].Key {
			return fmt.Sprintf("expected %s, found %s", headerNames(want), headerNames(got))
		}
		if d := difference(want[n].Value, got[n].Value); d != "" {
			return fmt.Sprintf("%q: %s", want[n].Key, d)
		}
	}
	return ""
}

func headerNames(headers []Header) string {
	names := make([]string, len(headers))
	for n, h := range headers {
		names[n] = h.Key
	}
	return fmt.Sprintf("%q", names)
}

// difference describes how two byte strings differ; it is empty when they do not.
func difference(want, got []byte) string {
	if same(want, got) {
		return ""
	}
	if want == nil || got == nil || len(want) != len(got) {
		return fmt.Sprintf("expected %s, found %s", size(want), size(got))
	}
	n := 0
	for want[n] == got[n] {
		n++
	}
	return fmt.Sprintf("%s, but they differ from byte %d on", size(want), n)
}

func size(b []byte) string {
	if b == nil {
		return "null"
	}
	return fmt.Sprintf("%d bytes", len(b))
}

func position(r Record) string {
	return fmt.Sprintf("%s offset %d", TopicPartition{r.Topic, r.Partition}, r.Offset)
}

func millis(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
