package kafka

// murmur2 is the 32-bit MurmurHash2 with the seed of Kafka's Java client
// (org.apache.kafka.common.utils.Utils.murmur2). It decides the partition, so
// it must never change.
func murmur2(data []byte) uint32 {
	const (
		seed = 0x9747b28c
		m    = 0x5bd1e995
		r    = 24
	)
	h := seed ^ uint32(len(data))
	for len(data) >= 4 {
		k := uint32(data[0]) | uint32(data[1])<<8 | uint32(data[2])<<16 | uint32(data[3])<<24
		k *= m
		k ^= k >> r
		k *= m
		h = h*m ^ k
		data = data[4:]
	}
	for i := len(data) - 1; i >= 0; i-- {
		h ^= uint32(data[i]) << (8 * i)
	}
	if len(data) > 0 {
		h *= m
	}
	h ^= h >> 13
	h *= m
	h ^= h >> 15
	return h
}

// partitionOf is the partition that the Java client's default partitioner
// chooses for key among count partitions. A nil key counts as the empty one,
// where the Java client would choose at random: a repeat must find the same
// partition.
func partitionOf(key []byte, count int32) int32 {
	return int32(murmur2(key)&0x7fffffff) % count
}
