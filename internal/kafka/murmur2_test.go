package kafka

import (
	"math/rand/v2"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The vectors of org.apache.kafka.common.utils.UtilsTest.testMurmur2.
func TestMurmur2AgreesWithTheJavaClient(t *testing.T) {
	for key, want := range map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		if got := int32(murmur2([]byte(key))); got != want {
			t.Errorf("murmur2(%q) = %d, expected %d", key, got, want)
		}
	}
}

func TestPartitionAgreesWithOtherClients(t *testing.T) {
	franz := kgo.StickyKeyPartitioner(nil).ForTopic("orders")
	java := sarama.NewMurmur2Partitioner("orders")
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		key := make([]byte, 1+r.IntN(40))
		for i := range key {
			key[i] = byte(r.Uint32())
		}
		count := int32(1 + r.IntN(200))
		got := partitionOf(key, count)
		if want := franz.Partition(&kgo.Record{Key: key}, int(count)); int32(want) != got {
			t.Fatalf("key %x of %d partitions: %d, franz-go says %d", key, count, got, want)
		}
		if want, err := java.Partition(&sarama.ProducerMessage{Key: sarama.ByteEncoder(key)}, count); err != nil || want != got {
			t.Fatalf("key %x of %d partitions: %d, sarama says %d (%v)", key, count, got, want, err)
		}
	}
}

func TestKeyFortyTwoOfTwelvePartitionsIsFour(t *testing.T) {
	if got := partitionOf([]byte("42"), 12); got != 4 {
		t.Errorf("partition %d", got)
	}
}

func TestNilKeyHasThePartitionOfTheEmptyKey(t *testing.T) {
	if a, b := partitionOf(nil, 12), partitionOf([]byte{}, 12); a != b || a != 9 {
		t.Errorf("nil: %d, empty: %d", a, b)
	}
}

func FuzzMurmur2(f *testing.F) {
	java := sarama.NewMurmur2Partitioner("orders")
	f.Add([]byte("42"), uint8(12))
	f.Fuzz(func(t *testing.T, key []byte, n uint8) {
		count := int32(n) + 1
		want, err := java.Partition(&sarama.ProducerMessage{Key: sarama.ByteEncoder(key)}, count)
		if len(key) > 0 && (err != nil || want != partitionOf(key, count)) {
			t.Errorf("key %x of %d: %d, sarama says %d (%v)", key, count, partitionOf(key, count), want, err)
		}
	})
}
