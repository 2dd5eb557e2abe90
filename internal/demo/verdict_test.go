package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/internal/verify"
)

// proof is a run without fault: two versions of one order.
func proof() *evidence {
	e := &evidence{
		topic: "orders", partitions: 1, sessions: 1,
		position: slotPosition{confirmed: 0x200, retained: 4096},
		samples:  []verify.Sample{{Confirmed: 0x200, End: map[verify.TopicPartition]int64{{Topic: "orders"}: 2}}},
	}
	at := time.UnixMilli(1_700_000_000_000)
	for i, event := range []string{"a", "b"} {
		row := verify.Row{
			CommitEnd: 0x100, CommitTime: at, EventID: event, AggregateType: "order", AggregateID: "ord-1",
			Version: int64(i + 1), EventType: "OrderPaid", Payload: []byte("{}"),
		}
		e.rows = append(e.rows, row)
		e.records = append(e.records, verify.Record{
			Topic: "orders", Offset: int64(i), Key: []byte("ord-1"), Value: []byte("{}"), Timestamp: at, Headers: verify.DefaultHeaders(row),
		})
	}
	e.rows[1].CommitEnd = 0x200
	return e
}

func text(t *testing.T, s *Summary) string {
	t.Helper()
	var b strings.Builder
	if err := s.Write(&b, Look{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAFlawlessRunIsConfirmed(t *testing.T) {
	s := proof().judge(newLedger())
	if !s.OK || s.Events != 2 || s.Unconfirmed != 0 || s.ConfirmedLSN != "0/200" || s.ConfirmedSamples != 1 {
		t.Fatalf("%+v", s)
	}
	if out := text(t, s); !strings.Contains(out, "Guarantees held") || strings.Contains(out, "BROKEN") {
		t.Error(out)
	}
}

func TestEachBrokenGuaranteeFailsTheVerdict(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(*evidence)
		count func(*Summary) int
		kind  verify.Kind
	}{
		"a record is missing": {
			func(e *evidence) { e.records = e.records[:1] },
			func(s *Summary) int { return s.Lost }, verify.Lost,
		},
		"two records changed places": {
			func(e *evidence) {
				r := e.records
				r[0], r[1] = r[1], r[0]
				r[0].Offset, r[1].Offset = 0, 1
			},
			func(s *Summary) int { return s.OutOfOrder }, verify.OutOfOrder,
		},
		"an event of a rolled back transaction": {
			func(e *evidence) { e.rows = e.rows[:1] },
			func(s *Summary) int { return s.Foreign }, verify.Foreign,
		},
		"another value": {
			func(e *evidence) { e.records[1].Value = []byte("{ }") },
			func(s *Summary) int { return s.Altered }, verify.Altered,
		},
		"confirmed before it was there": {
			func(e *evidence) { e.samples[0].End = nil },
			func(s *Summary) int { return s.EarlyConfirmed }, verify.EarlyConfirmed,
		},
		"the topic began again without a restart": {
			func(e *evidence) {
				again := e.records[0]
				again.Offset = 2
				e.records = append(e.records, again)
			},
			func(s *Summary) int { return s.ExcessRewinds }, verify.ExcessRewinds,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := proof()
			test.spoil(e)
			s := e.judge(newLedger())
			if s.OK || test.count(s) == 0 {
				t.Fatalf("not noticed: %+v", s)
			}
			if out := text(t, s); !strings.Contains(out, "BROKEN") || !strings.Contains(out, string(test.kind)+": ") {
				t.Error(out)
			}
		})
	}
}

func TestRepeatsAfterARestartAreNoFault(t *testing.T) {
	e := proof()
	e.sessions = 2
	again := e.records[1]
	again.Offset = 2
	e.records = append(e.records, again)
	if s := e.judge(newLedger()); !s.OK || s.Repeated != 1 {
		t.Errorf("%+v", s)
	}
}

func TestUnconfirmedEventsAreCounted(t *testing.T) {
	e := proof()
	e.position.confirmed = 0x1ff
	if s := e.judge(newLedger()); s.Unconfirmed != 1 {
		t.Errorf("%d unconfirmed, want 1", s.Unconfirmed)
	}
}
