package kafka

import (
	"slices"

	"github.com/IBM/sarama"
)

// missingReplicas names the brokers that a partition waits for, as its
// metadata has it: " (replicas on brokers 1, 2, 3; down: 2)". It is "" when all
// replicas are in sync.
func missingReplicas(p *sarama.PartitionMetadata) string {
	var late []int32
	for _, id := range p.Replicas {
		if !slices.Contains(p.Isr, id) && !slices.Contains(p.OfflineReplicas, id) {
			late = append(late, id)
		}
	}
	if len(p.OfflineReplicas) == 0 && len(late) == 0 {
		return ""
	}
	text := "replicas on brokers " + listed(slices.Clone(p.Replicas))
	if len(p.OfflineReplicas) > 0 {
		text += "; down: " + listed(slices.Clone(p.OfflineReplicas))
	}
	if len(late) > 0 {
		text += "; not in sync: " + listed(late)
	}
	return " (" + text + ")"
}
