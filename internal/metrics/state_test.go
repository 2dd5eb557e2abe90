package metrics

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cdcpub/cdcpub/internal/kafka"
	"github.com/cdcpub/cdcpub/internal/monitor"
	"github.com/cdcpub/cdcpub/internal/publisher"
	"github.com/cdcpub/cdcpub/slotmon"
)

// series are the exposed values by series.
func series(t *testing.T, s situation) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(exposed(t, s)) {
		if !strings.HasPrefix(line, "#") {
			i := strings.LastIndexByte(line, ' ')
			all[line[:i]] = strings.TrimSpace(line[i:])
		}
	}
	return all
}

func TestLosingASlotRaisesASeriesAndMakesNoneDisappear(t *testing.T) {
	before, after := series(t, healthy()), series(t, withLostSlot())
	for name := range before {
		if _, there := after[name]; !there {
			t.Errorf("%s has disappeared", name)
		}
	}
	label := fmt.Sprintf("{server=%q,slot=%q}", server, "shop")
	for name, want := range map[string]string{
		"cdcpub_slot_up" + label: "0", "cdcpub_slot_verdict" + label: "2", "cdcpub_slot_retained_wal_bytes" + label: "0",
		"cdcpub_slot_safe_wal_size_bytes" + label: "0", "cdcpub_slot_seconds_to_lost" + label: "0",
		"cdcpub_slot_seconds_to_full" + label: "+Inf", "cdcpub_slot_confirmed_lag_bytes" + label: "+Inf",
		"cdcpub_slot_inactive_seconds" + label:                                                                           "3600",
		fmt.Sprintf("cdcpub_slot_wal_status{server=%q,slot=%q,wal_status=%q}", server, "shop", "lost"):                   "1",
		fmt.Sprintf("cdcpub_slot_finding{id=%q,server=%q,severity=%q,slot=%q}", "slot_lost", server, "critical", "shop"): "1",
	} {
		if after[name] != want {
			t.Errorf("%s is %q, want %s", name, after[name], want)
		}
	}
}

var stateSet = regexp.MustCompile(`^(cdcpub_publisher_state|cdcpub_publisher_role|cdcpub_slot_wal_status)\{`)

func TestStateSetsHaveOneState(t *testing.T) {
	for name, make := range map[string]func() situation{"healthy": healthy, "lost": withLostSlot, "stalled": stalled} {
		present := map[string]int{}
		for series, value := range series(t, make()) {
			if match := stateSet.FindStringSubmatch(series); match != nil && value == "1" {
				present[match[1]]++
			}
		}
		for _, set := range []string{"cdcpub_publisher_state", "cdcpub_publisher_role", "cdcpub_slot_wal_status"} {
			if present[set] != 1 {
				t.Errorf("%s: %d states of %s", name, present[set], set)
			}
		}
	}
}

func TestPartitionsAreBoundedToTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := healthy()
		s.status.Kafka.Partitions = nil
		for i := range 500 {
			s.status.Kafka.Partitions = append(s.status.Kafka.Partitions, publisher.Partition{Topic: "orders", Partition: int32(i), OldestSince: ago(time.Duration(i) * time.Second)})
		}
		all := series(t, s)
		n := 0
		for name := range all {
			if strings.HasPrefix(name, "cdcpub_partition_oldest") {
				n++
			}
		}
		if n != maxPartitions {
			t.Errorf("%d partitions", n)
		}
		for name, want := range map[string]string{
			`cdcpub_partition_oldest_unacknowledged_seconds{partition="499",topic="orders"}`: "499",
			`cdcpub_partition_oldest_unacknowledged_seconds{partition="400",topic="orders"}`: "400",
			`cdcpub_partition_oldest_unacknowledged_seconds{partition="399",topic="orders"}`: "",
			`cdcpub_oldest_unacknowledged_seconds`:                                           "499",
		} {
			if all[name] != want {
				t.Errorf("%s is %q, want %q", name, all[name], want)
			}
		}
	})
}

func TestAStandbyHasEveryPublisherMetricThatNeedsNoSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := ago(time.Minute)
		all := series(t, situation{
			status:   &publisher.Status{State: publisher.Standby, Role: "standby", Ready: true, Stall: &publisher.Stall{Kind: publisher.StallStandby, Since: began}},
			counters: &kafka.Counters{},
		})
		for name, want := range map[string]string{
			`cdcpub_publisher_state{state="standby"}`: "1", `cdcpub_publisher_role{role="active"}`: "0", "cdcpub_publisher_ready": "1",
			`cdcpub_publisher_stall_seconds{cause="standby"}`: "60", `cdcpub_publisher_stall_seconds{cause="partition"}`: "0",
			"cdcpub_in_flight_records": "0", "cdcpub_kafka_connected": "0", "cdcpub_oldest_unacknowledged_seconds": "0",
			`cdcpub_reader_session_ends_total{cause="terminated"}`: "0", "cdcpub_commit_to_ack_seconds_count": "0",
			"cdcpub_last_confirm_timestamp_seconds": "",
		} {
			if all[name] != want {
				t.Errorf("%s is %q, want %q", name, all[name], want)
			}
		}
	})
}

// The monitor forgets nothing when the server is down: its slots keep what was
// seen last, but for the times, which nobody knows then.
func TestAServerThatIsDownKeepsItsSlots(t *testing.T) {
	s := healthy()
	s.snapshot.Servers[0].Up = false
	s.snapshot.Servers[0].Slots[0].Report = slotmon.Judge(slotmon.DefaultLimits(), slotmon.Subject{Name: "shop", Unreachable: "refused"})
	before, after := series(t, healthy()), series(t, s)
	for name := range before {
		timeLeft := strings.HasPrefix(name, "cdcpub_slot_seconds_to_")
		if _, there := after[name]; there == timeLeft {
			t.Errorf("%s is there: %t", name, there)
		}
	}
	if up := after[fmt.Sprintf("cdcpub_server_up{server=%q}", server)]; up != "0" {
		t.Errorf("server up is %q", up)
	}
}

func TestOfEqualSeriesTheFirstCounts(t *testing.T) {
	s := situation{snapshot: &monitor.Snapshot{Servers: []monitor.Server{
		{Name: "a\xff", Up: true, Slots: []monitor.Slot{{Name: "s"}, {Name: "s"}}},
		{Name: "a\xfe", Slots: []monitor.Slot{{Name: "s"}}},
	}}}
	all := series(t, s)
	if up := all["cdcpub_server_up{server=\"a\uFFFD\"}"]; up != "1" {
		t.Errorf("%q", all)
	}
}
