package kafka

import (
	"testing"

	"github.com/IBM/sarama"
)

func TestMissingReplicasAreNamed(t *testing.T) {
	ids := func(ids ...int32) []int32 { return ids }
	for _, c := range []struct {
		replicas, inSync, offline []int32
		want                      string
	}{
		{ids(3, 1, 2), ids(1, 2, 3), nil, ""},
		{ids(2, 10, 1), ids(1), nil, " (replicas on brokers 1, 2, 10; not in sync: 2, 10)"},
		{ids(1, 2, 3), ids(1, 3), ids(2), " (replicas on brokers 1, 2, 3; down: 2)"},
		{ids(1, 2, 3), ids(3), ids(2), " (replicas on brokers 1, 2, 3; down: 2; not in sync: 1)"},
		// The last leader stays in sync though it is gone.
		{ids(7), ids(7), ids(7), " (replicas on brokers 7; down: 7)"},
	} {
		p := &sarama.PartitionMetadata{Replicas: c.replicas, Isr: c.inSync, OfflineReplicas: c.offline}
		if got := missingReplicas(p); got != c.want {
			t.Errorf("%v, in sync %v, offline %v: %q, want %q", c.replicas, c.inSync, c.offline, got, c.want)
		}
	}
}
