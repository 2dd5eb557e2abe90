package page

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/internal/publisher"
	"github.com/cdcpub/cdcpub/slotmon"
)

func TestWhatIsNotKnownIsAbsent(t *testing.T) {
	o := newWorld().watched(359, 359, noon)
	answer := describe(&o, "1.0", 5*time.Second)
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	var read map[string]any
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	lost := read["slots"].([]any)[0].(map[string]any)
	for _, name := range []string{"retained", "lag", "seconds_to_full", "holder"} {
		if value, there := lost[name]; there {
			t.Errorf("a lost slot has %s: %v", name, value)
		}
	}
	if lost["slot"] != "migration_2024" || lost["wal_status"] != "lost" || lost["seconds_to_lost"] != 0.0 {
		t.Errorf("%v", lost)
	}
	if _, there := read["publisher"]; there {
		t.Error("there is a publisher where none runs")
	}
	if partitions := read["partitions"].([]any); len(partitions) != 0 {
		t.Errorf("%v", partitions)
	}
}

func TestASlotOfAnUnreachableServerIsOld(t *testing.T) {
	o := newWorld().watched(359, 359, noon)
	answer := describe(&o, "1.0", time.Second)
	for _, s := range answer.Slots {
		if want := s.Server != "orders-db:5432/orders"; s.Fresh != want {
			t.Errorf("%s on %s: fresh %t", s.Name, s.Server, s.Fresh)
		}
	}
	if s := answer.Servers[0]; s.Trouble == "" || s.Verdict != slotmon.Unknown || s.TakenMS >= answer.NowMS {
		t.Errorf("%+v", s)
	}
	if s := answer.Servers[1]; s.Trouble != "" {
		t.Errorf("%+v", s)
	}
}

func TestPartitionsAreListedOldestFirstAndBounded(t *testing.T) {
	o := newWorld().healthy(0, 1, noon)
	o.publisher.Kafka.Partitions = nil
	for i := range 250 {
		o.publisher.Kafka.Partitions = append(o.publisher.Kafka.Partitions, publisher.Partition{
			Topic: fmt.Sprint("topic", i%7), Partition: int32(i), OldestSince: noon.Add(-time.Duration(i) * time.Second),
		})
	}
	answer := describe(&o, "1.0", time.Second)
	if len(answer.Partitions) != 100 || answer.PartitionsHidden != 150 {
		t.Fatalf("%d listed, %d hidden", len(answer.Partitions), answer.PartitionsHidden)
	}
	if first, last := answer.Partitions[0].Partition, answer.Partitions[99].Partition; first != 249 || last != 150 {
		t.Errorf("from %d to %d", first, last)
	}
}

func TestHolderSaysWhatIsKnown(t *testing.T) {
	for want, h := range map[string]*slotmon.Holder{
		"":                        nil,
		"pid 7":                   {PID: 7},
		"cdcpub@10.0.0.1 pid 7":   {PID: 7, ApplicationName: "cdcpub", User: "u", Address: "10.0.0.1"},
		"replicator pid 7":        {PID: 7, User: "replicator"},
		"replicator@::1 pid 4711": {PID: 4711, User: "replicator", Address: "::1"},
	} {
		if got := holder(h); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestOnlyFailingSinksAreShown(t *testing.T) {
	w := newWorld()
	o := w.dying(359, 359, noon)
	if sinks := describe(&o, "", time.Second).Sinks; len(sinks) != 1 || sinks[0].Name != "webhook" || sinks[0].Error == "" {
		t.Errorf("%+v", sinks)
	}
	o = w.healthy(0, 1, noon)
	if sinks := describe(&o, "", time.Second).Sinks; len(sinks) != 0 {
		t.Errorf("%+v", sinks)
	}
}
