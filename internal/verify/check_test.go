package verify_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/internal/verify"
)

// scenario is a history and a topic, correct until a case breaks it.
type scenario struct {
	rows    []verify.Row
	records []verify.Record
	opts    verify.Options
}

func TestEveryKindOfViolationIsCountedOnceAndNothingElse(t *testing.T) {
	cases := []struct {
		name   string
		events int
		topic  []int
		change func(*scenario)
		want   counts
	}{
		{name: "everything once", events: 3, topic: []int{1, 2, 3}},
		{name: "a run again: 1 2 1 2", events: 2, topic: []int{1, 2, 1, 2}},
		{name: "the last one again", events: 2, topic: []int{1, 2, 2}},
		{name: "two restarts, each with progress", events: 4, topic: []int{1, 2, 2, 3, 2, 3, 4}},
		{name: "a restart that died before the previous end", events: 3, topic: []int{1, 2, 3, 1, 2, 1, 2, 3}},

		{name: "a row missing at the end", events: 3, topic: []int{1, 2}, want: counts{verify.Lost: 1}},
		{name: "a row missing in the middle is a loss and no disorder", events: 3, topic: []int{1, 3}, want: counts{verify.Lost: 1}},
		{name: "missing from the repeat as well", events: 3, topic: []int{1, 3, 1, 3}, want: counts{verify.Lost: 1}},
		{name: "a whole topic missing", events: 3, topic: nil, want: counts{verify.Lost: 3}},
		{name: "not published yet", events: 3, topic: []int{1}, change: incomplete},
		{name: "a gap is lost even when the publisher stands still", events: 4, topic: []int{1, 3}, change: incomplete, want: counts{verify.Lost: 1}},

		{name: "2 before 1", events: 2, topic: []int{2, 1}, want: counts{verify.OutOfOrder: 1, verify.VersionInverted: 1}},
		{name: "one record displaced is one violation", events: 5, topic: []int{1, 3, 4, 2, 5}, want: counts{verify.OutOfOrder: 1, verify.VersionInverted: 1}},
		{name: "passed, then healed by a repeat", events: 3, topic: []int{1, 3, 2, 3}, want: counts{verify.OutOfOrder: 1, verify.VersionInverted: 1}},
		{name: "passed before a restart", events: 3, topic: []int{1, 3, 1, 2, 3}, want: counts{verify.OutOfOrder: 1, verify.VersionInverted: 1}},
		{name: "the repeated run leaves one out", events: 4, topic: []int{1, 2, 3, 1, 3, 4}, want: counts{verify.OutOfOrder: 1}},
		{name: "the repeated run stops short of the end", events: 4, topic: []int{1, 2, 3, 1, 4}, want: counts{verify.OutOfOrder: 1}},
		{name: "the repeated run in another order", events: 3, topic: []int{1, 2, 3, 1, 3, 2}, want: counts{verify.OutOfOrder: 1}},
		{name: "disorder between aggregates of a partition", events: 2, topic: []int{2, 1}, change: func(s *scenario) {
			s.rows[1].AggregateType, s.rows[1].Version = "other", 9
			s.opts.Expect.Topic = func(verify.Row) string { return orderTopic }
			s.records[0].Headers[1].Value = []byte("9")
		}, want: counts{verify.OutOfOrder: 1}},

		{name: "disorder before any higher version", events: 3, topic: []int{2, 1, 3}, change: func(s *scenario) {
			s.rows[1].AggregateType = "other"
			s.opts.Expect.Topic = func(verify.Row) string { return orderTopic }
		}, want: counts{verify.OutOfOrder: 1}},

		{name: "an aggregate over two topics has no order between them", events: 4, topic: []int{1, 3, 2, 4}, change: func(s *scenario) {
			s.rows[2].AggregateType = "other"
			s.opts.Partitions["b"] = 12
			s.opts.Expect.Topic = func(r verify.Row) string {
				if r.EventID == "e1" || r.EventID == "e4" {
					return "b"
				}
				return orderTopic
			}
			s.records[0].Topic, s.records[3].Topic = "b", "b"
			s.records[1].Topic = orderTopic
		}, want: counts{verify.OutOfOrder: 1}},
		{name: "disorder beside a topic without a partition count", events: 3, topic: []int{2, 1, 3}, change: func(s *scenario) {
			s.rows[1].AggregateType = "other"
			s.opts.Expect.Topic = func(r verify.Row) string {
				if r.EventID == "e3" {
					return "unknown"
				}
				return orderTopic
			}
		}, want: counts{verify.OutOfOrder: 1, verify.Input: 1}},

		{name: "restarted once, rewound once", events: 2, topic: []int{1, 1, 2}, change: rewinds(1)},
		{name: "rewound without a restart", events: 2, topic: []int{1, 1, 2}, change: rewinds(0), want: counts{verify.ExcessRewinds: 1}},
		{name: "a repeat that runs backwards needs more restarts than there were", events: 3, topic: []int{1, 2, 3, 3, 2, 3}, change: rewinds(1), want: counts{verify.ExcessRewinds: 1}},

		{name: "a record of nobody", events: 1, topic: []int{1, 1}, change: func(s *scenario) { s.records[1].Headers[0].Value = []byte("x") }, want: counts{verify.Foreign: 1}},
		{name: "a record without an id", events: 1, topic: []int{1, 1}, change: func(s *scenario) { s.records[1].Headers = nil }, want: counts{verify.Foreign: 1}},
		{name: "a record with a null id", events: 1, topic: []int{1, 1}, change: func(s *scenario) { s.records[1].Headers[0].Value = nil }, want: counts{verify.Foreign: 1}},
		{name: "a record with an empty id", events: 1, topic: []int{1, 1}, change: func(s *scenario) { s.records[1].Headers[0].Value = []byte{} }, want: counts{verify.Foreign: 1}},
		{name: "a record of nobody in a shared topic", events: 1, topic: []int{1, 1}, change: func(s *scenario) {
			s.records[1].Headers = nil
			s.opts.Shared = func(name string) bool { return name == orderTopic }
		}},
		{name: "the wrong id loses the row too", events: 2, topic: []int{1, 2}, change: func(s *scenario) { s.records[1].Headers[0].Value = []byte("x") }, want: counts{verify.Foreign: 1, verify.Lost: 1}},

		{name: "another key", events: 1, topic: []int{1}, change: alter(func(r *verify.Record) { r.Key = []byte("43") }), want: counts{verify.Altered: 1}},
		{name: "another value", events: 1, topic: []int{1}, change: alter(func(r *verify.Record) { r.Value = []byte(`{"n":  1}`) }), want: counts{verify.Altered: 1}},
		{name: "a tombstone for a payload", events: 1, topic: []int{1}, change: alter(func(r *verify.Record) { r.Value = nil }), want: counts{verify.Altered: 1}},
		{name: "an empty value for a tombstone", events: 1, topic: []int{1}, change: func(s *scenario) {
			s.rows[0].Payload, s.records[0].Value = nil, []byte{}
		}, want: counts{verify.Altered: 1}},
		{name: "a tombstone for NULL", events: 1, topic: []int{1}, change: func(s *scenario) { s.rows[0].Payload, s.records[0].Value = nil, nil }},
		{name: "another header value", events: 1, topic: []int{1}, change: alter(func(r *verify.Record) { r.Headers[1].Value = []byte("7") }), want: counts{verify.Altered: 1}},
		{name: "a null header", events: 1, topic: []int{1}, change: alter(func(r *verify.Record) { r.Headers[2].Value = nil }), want: counts{verify.Altered: 1}},
		{name: "another header name", events: 1, topic: []int{1}, change: alter(func(r *verify.Record) { r.Headers[2].Key = "type" }), want: counts{verify.Altered: 1}},
		{name: "headers in another order", events: 1, topic: []int{1}, change: alter(func(r *verify.Record) { slices.Reverse(r.Headers) }), want: counts{verify.Altered: 1}},
		{name: "one more header", events: 1, topic: []int{1}, change: alter(func(r *verify.Record) {
			r.Headers = append(r.Headers, verify.Header{Key: "host", Value: []byte("a")})
		}), want: counts{verify.Altered: 1}},
		{name: "one millisecond late", events: 1, topic: []int{1}, change: alter(func(r *verify.Record) { r.Timestamp = r.Timestamp.Add(time.Millisecond) }), want: counts{verify.Altered: 1}},
		{name: "the time of day in another zone", events: 1, topic: []int{1}, change: alter(func(r *verify.Record) { r.Timestamp = r.Timestamp.In(time.FixedZone("", 3600)) })},
		{name: "only the repeat is altered", events: 1, topic: []int{1, 1}, change: func(s *scenario) { s.records[1].Timestamp = s.records[1].Timestamp.Add(time.Second) }, want: counts{verify.Altered: 1}},

		{name: "another partition", events: 2, topic: []int{1, 2}, change: func(s *scenario) { s.records[1].Partition = 5 }, want: counts{verify.WrongPartition: 1}},
		{name: "another topic", events: 2, topic: []int{1, 2}, change: func(s *scenario) { s.records[1].Topic = "outbox.event.orders" }, want: counts{verify.WrongPartition: 1}},
		{name: "the repeat in another partition", events: 2, topic: []int{1, 2, 2}, change: func(s *scenario) { s.records[2].Partition = 5 }, want: counts{verify.WrongPartition: 1}},

		{name: "in the quarantine and not in the topic", events: 3, topic: []int{1, 3}, change: quarantine("e2")},
		{name: "in the quarantine and in the topic", events: 3, topic: []int{1, 2, 3}, change: quarantine("e2"), want: counts{verify.QuarantinedPublished: 1}},
		{name: "rows without an id in the quarantine", events: 3, topic: []int{1}, change: func(s *scenario) {
			s.rows[1].EventID, s.rows[2].EventID = "", ""
			quarantine("")(s)
		}},
		{name: "rows without an id nowhere", events: 3, topic: []int{1}, change: func(s *scenario) { s.rows[1].EventID, s.rows[2].EventID = "", "" }, want: counts{verify.Lost: 2}},

		{name: "confirmed when it was there", events: 2, topic: []int{1, 2}, change: confirmed(verify.Sample{Confirmed: 32, End: end(2)})},
		{name: "confirmed between two commits", events: 2, topic: []int{1, 2}, change: confirmed(verify.Sample{Confirmed: 31, End: end(1)})},
		{name: "confirmed before it was there", events: 2, topic: []int{1, 2}, change: confirmed(verify.Sample{Confirmed: 32, End: end(1)}), want: counts{verify.EarlyConfirmed: 1}},
		{name: "confirmed while the partition was empty", events: 2, topic: []int{1, 2}, change: confirmed(verify.Sample{Confirmed: 32}), want: counts{verify.EarlyConfirmed: 2}},
		{name: "several early samples of one row are one violation", events: 2, topic: []int{1, 2}, change: confirmed(
			verify.Sample{Confirmed: 32, End: end(1)}, verify.Sample{Confirmed: 40, End: end(1)}, verify.Sample{Confirmed: 16, End: end(1)},
		), want: counts{verify.EarlyConfirmed: 1}},
		{name: "confirmed and never sent, though the publisher stands still", events: 2, topic: []int{1}, change: func(s *scenario) {
			incomplete(s)
			confirmed(verify.Sample{Confirmed: 32, End: end(1)})(s)
		}, want: counts{verify.EarlyConfirmed: 1}},
		{name: "confirmed while only a misplaced record was there", events: 1, topic: []int{1}, change: func(s *scenario) {
			s.records[0].Partition = 5
			confirmed(verify.Sample{Confirmed: 16, End: end(9)})(s)
		}, want: counts{verify.EarlyConfirmed: 1, verify.WrongPartition: 1}},

		{name: "a restart repeats what was not confirmed", events: 3, topic: []int{1, 2, 2, 3}, change: restarts(verify.Sample{Confirmed: 16, End: end(2)})},
		{name: "a restart repeats what was confirmed", events: 3, topic: []int{1, 2, 1, 2, 3}, change: restarts(verify.Sample{Confirmed: 16, End: end(2)}), want: counts{verify.NeedlessRepeat: 1}},
		{name: "the second of two restarts", events: 3, topic: []int{1, 2, 1, 2, 2, 3}, change: restarts(
			verify.Sample{Confirmed: 32, End: end(4)}, verify.Sample{Confirmed: 0, End: end(2)},
		), want: counts{verify.NeedlessRepeat: 1}},

		{name: "the slot fell back in a crash of the server", events: 3, topic: []int{1, 2, 2, 3}, change: restarts(
			verify.Sample{Confirmed: 32, End: end(2)}, verify.Sample{Confirmed: 16, End: end(2)},
		)},

		{name: "nothing to check", events: 0, topic: nil, want: counts{verify.Input: 1}},
		{name: "nothing to check, on purpose", events: 0, topic: nil, change: func(s *scenario) { s.opts.AllowEmpty = true }},
		{name: "two rows with one event id", events: 2, topic: []int{1}, change: func(s *scenario) { s.rows[1].EventID = "e1" }, want: counts{verify.Input: 1, verify.Lost: 1}},
		{name: "a history out of commit order", events: 2, topic: []int{1, 2}, change: func(s *scenario) { s.rows[1].CommitEnd = 15 }, want: counts{verify.Input: 1}},
		{name: "a topic without a partition count", events: 1, topic: []int{1}, change: func(s *scenario) { s.opts.Partitions = nil }, want: counts{verify.Input: 1}},
		{name: "an offset read twice", events: 2, topic: []int{1, 2, 2}, change: func(s *scenario) { s.records[2].Offset = 1 }, want: counts{verify.Input: 1}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rows := history(c.events)
			s := scenario{rows: rows, records: topic(rows, c.topic...), opts: options()}
			if c.change != nil {
				c.change(&s)
			}
			report := verify.Check(s.rows, s.records, s.opts)
			if got := broken(report); !maps.Equal(got, c.want) {
				t.Errorf("got %v, want %v\n%s", got, c.want, report.Table())
			}
			requireListed(t, report)
		})
	}
}

func incomplete(s *scenario) { s.opts.Incomplete = true }

func rewinds(n int) func(*scenario) { return func(s *scenario) { s.opts.Rewinds = n } }

func alter(change func(*verify.Record)) func(*scenario) {
	return func(s *scenario) { change(&s.records[0]) }
}

func quarantine(id string) func(*scenario) {
	return func(s *scenario) { s.opts.Quarantined = map[string]bool{id: true} }
}

func confirmed(samples ...verify.Sample) func(*scenario) {
	return func(s *scenario) { s.opts.Confirmed = samples }
}

func restarts(samples ...verify.Sample) func(*scenario) {
	return func(s *scenario) { s.opts.Restarts = samples }
}

func TestInversionsOfTheWritersAreTheirs(t *testing.T) {
	rows := history(4)
	rows[1].Version, rows[2].Version, rows[3].Version = 3, 2, 3
	r := verify.Check(rows, topic(rows, 1, 2, 3, 4), options())
	if !r.OK() || r.WriterInversions != 1 {
		t.Errorf("in commit order: %s, %d inversions by the writers", r, r.WriterInversions)
	}
	r = verify.Check(rows, topic(rows, 1, 3, 2, 4), options())
	if want := (counts{verify.OutOfOrder: 1}); !maps.Equal(broken(r), want) || r.WriterInversions != 1 {
		t.Errorf("versions put right against the commit order: %s, %d inversions by the writers", r, r.WriterInversions)
	}
}

func TestWhatIsAllowedIsCounted(t *testing.T) {
	rows := history(5)
	rows[4].AggregateID = "ord-1"
	opts := options()
	opts.Incomplete = true
	opts.Quarantined = map[string]bool{"e2": true}
	opts.Shared = func(string) bool { return true }
	opts.Confirmed = []verify.Sample{{Confirmed: 16, End: end(1)}}
	opts.Restarts = []verify.Sample{{}, {}}
	records := append(topic(rows, 1, 3, 1, 3), verify.Record{Topic: "other"})
	r := verify.Check(rows, records, opts)
	want := verify.Report{
		Events: 5, Aggregates: 2, Records: 5, Partitions: 2, Repeated: 2, Rewinds: 1,
		Quarantined: 1, Pending: 2, Others: 1, ConfirmedSamples: 1, RestartSamples: 2,
	}
	if got, want := asJSON(t, r), asJSON(t, want); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func asJSON(t *testing.T, r verify.Report) string {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestListIsCappedPerKindAndCountsAreComplete(t *testing.T) {
	rows := history(100)
	opts := options()
	opts.MaxPerKind = 3
	records := append(topic(rows, 2, 1), verify.Record{Topic: "x"})
	r := verify.Check(rows, records, opts)
	if r.Lost != 98 || r.Foreign != 1 || len(r.Violations) != 3+1+1+1 {
		t.Errorf("%s\n%d listed", r, len(r.Violations))
	}
}

func TestAReportMayBeTakenAtAnyTime(t *testing.T) {
	rows := history(3)
	c := verify.NewChecker(rows, options())
	for _, r := range topic(rows, 1, 2) {
		c.Add(r)
	}
	if before := c.Report(); before.Lost != 1 {
		t.Errorf("before the last record: %s", before)
	}
	c.Add(record(rows[2], partitionOf42, 2))
	if after := c.Report(); !after.OK() {
		t.Errorf("after the last record: %s", after)
	}
}

func TestCheckConfirmedNamesEveryRowThatIsMissing(t *testing.T) {
	rows := history(60)
	opts := options()
	opts.Quarantined = map[string]bool{"e3": true}
	unrelated := topic(rows, 1, 2, 4, 4)
	unrelated[3].Value = nil
	got := verify.CheckConfirmed(rows, rows[49].CommitEnd, unrelated, opts)
	if len(got) != 46 || got[0].Kind != verify.EarlyConfirmed || got[0].EventID != "e5" {
		t.Errorf("%d violations, the first is %+v", len(got), got[0])
	}
	if got := verify.CheckConfirmed(rows, rows[3].CommitEnd, topic(rows, 1, 2, 4), opts); len(got) != 0 {
		t.Errorf("all confirmed rows are there, but %+v", got)
	}
	opts.Partitions = nil
	if got := verify.CheckConfirmed(rows, rows[3].CommitEnd, nil, opts); len(got) == 0 || got[0].Kind != verify.Input {
		t.Errorf("cannot be judged, but %+v", got)
	}
}
