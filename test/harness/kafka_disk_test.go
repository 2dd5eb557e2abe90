package harness_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/cdcpub/cdcpub/test/harness"
)

// The broker gives up by itself, and keeps what it has acknowledged.
func TestBrokerWithAFullDiskEndsAndComesBack(t *testing.T) {
	cluster := harness.Kafka(t, harness.KafkaOptions{})
	topic := harness.Topic(t, cluster, 1, nil)
	c := client(t, cluster.Brokers(), kgo.DefaultProduceTopic(topic))
	produce(t, c, topic, 0, "before", strings.Repeat("x", 8<<10))
	c.Produce(limit(t), kgo.StringRecord("meanwhile"), nil)
	must(t, cluster.FillDisk(limit(t), 0))
	must(t, cluster.Start(limit(t), 0))
	produce(t, c, topic, 0, "after")
	records, err := harness.ReadAll(limit(t), cluster.Direct(), topic)
	must(t, err)
	for _, value := range []string{"before", "meanwhile", "after"} {
		if !slices.Contains(values(records, 0), value) {
			t.Errorf("%q is not there", value)
		}
	}
}
