package verify_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cdcpub/cdcpub/internal/verify"
)

func TestReportForPeople(t *testing.T) {
	rows := history(3)
	opts := options()
	opts.Confirmed = []verify.Sample{{Confirmed: 16, End: end(1)}}
	good := verify.Check(rows, topic(rows, 1, 2, 2, 3), opts)

	bad := topic(rows, 1, 2, 2)
	bad[2].Value = []byte(`{"n": 3}`)
	bad[2].Headers[2].Value = nil
	opts.MaxPerKind = 1
	opts.Partitions[orderTopic] = 13
	broken := verify.Check(rows, bad, opts)

	requireText(t, good.String(), "ok; 3 events, 4 records, 1 aggregates, 1 partitions, 0 lost, 0 out of order, 1 repeated, 1 rewinds")
	requireText(t, broken.String(), "BROKEN: lost 1, altered 1, wrong_partition 3, early_confirmed 1; 3 events, 3 records, 1 aggregates, 1 partitions, 1 lost, 0 out of order, 1 repeated, 0 rewinds")
	requireText(t, good.Table(), `
promise                          verdict      seen
nothing lost                     ok           3 of 3 events delivered, 0 quarantined, 0 pending
nothing foreign                  ok           4 records, 0 of other producers
commit order per partition       ok           1 partitions
versions in order per aggregate  ok           1 aggregates, 0 inversions by the writers
right partition                  ok           1 partitions
right content, repeats exact     ok           1 repeated
repeats only after restarts      ok           a partition started over at most 1 times
confirmed after acknowledged     ok           1 samples
nothing confirmed is repeated    not checked  0 restarts sampled
input could be judged            ok           history, records, options
`[1:])
	requireText(t, broken.Table(), `
promise                          verdict      seen
nothing lost                     BROKEN (1)   2 of 3 events delivered, 0 quarantined, 0 pending
nothing foreign                  ok           3 records, 0 of other producers
commit order per partition       ok           1 partitions
versions in order per aggregate  ok           1 aggregates, 0 inversions by the writers
right partition                  BROKEN (3)   1 partitions
right content, repeats exact     BROKEN (1)   1 repeated
repeats only after restarts      ok           a partition started over at most 0 times
confirmed after acknowledged     BROKEN (1)   1 samples
nothing confirmed is repeated    not checked  0 restarts sampled
input could be judged            ok           history, records, options
wrong_partition: event e1 (order 42 version 1, commit end LSN 0/10) is at outbox.event.order/4 offset 0, but belongs in outbox.event.order/0
altered: record outbox.event.order/4 offset 2 differs from event e2 (order 42 version 2, commit end LSN 0/20): value: 8 bytes, but they differ from byte 6 on; headers: "eventType": expected 11 bytes, found null
lost: event e3 (order 42 version 3, commit end LSN 0/30) was committed, but no topic read has it; it belongs in outbox.event.order/0
early_confirmed: event e1 (order 42 version 1, commit end LSN 0/10) was confirmed (confirmed_flush_lsn 0/10) while outbox.event.order/0 ended at offset 0 without it; it never came
and 2 more violations
`[1:])
}

func TestReportNeverShowsAPayload(t *testing.T) {
	rows := history(2)
	rows[0].Payload = []byte("secret one")
	records := topic(rows, 1, 2, 1)
	records[0].Value = []byte("secret two")
	records[2].Headers = append(records[2].Headers, verify.Header{Key: "note", Value: []byte("secret three")})
	r := verify.Check(rows, records, options())
	if r.OK() || strings.Contains(r.Table(), "secret") || strings.Contains(asJSON(t, r), "secret") {
		t.Error(r.Table())
	}
}

func TestSummaryHasTheNamesThatTheDemoPromises(t *testing.T) {
	rows := history(3)
	r := verify.Check(rows, topic(rows, 2, 1, 1), options())
	var got map[string]any
	if err := json.Unmarshal([]byte(asJSON(t, r)), &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		"events": 3, "aggregates": 1, "partitions": 1, "lost": 1, "out_of_order": 1, "repeated": 1,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}

func requireText(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
