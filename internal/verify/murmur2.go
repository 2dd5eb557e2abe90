package verify

import "encoding/binary"

// PartitionOf returns the partition that Kafka's Java client gives a record
// with this key: the 31 low bits of murmur2 over the key's bytes, modulo the
// number of partitions. It panics when partitions is 0.
func PartitionOf(key []byte, partitions int32) int32 {
	return int32(murmur2(key)&0x7fffffff) % partitions
}

// murmur2 is the 32-bit MurmurHash2 with the seed that Kafka's clients share.
// It is written here again, from the algorithm's definition, so that an error
// in the publisher's partitioner cannot hide in the one that judges it.
func murmur2(data []byte) uint32 {
	const (
		seed  = 0x9747b28c
		mult  = 0x5bd1e995
		shift = 24
	)
	h := uint32(seed) ^ uint32(len(data))
	for ; len(data) >= 4; data = data[4:] {
		k := binary.LittleEndian.Uint32(data) * mult
		k ^= k >> shift
		h = h*mult ^ k*mult
	}
	if len(data) > 0 {
		for i := len(data) - 1; i >= 0; i-- {
			h ^= uint32(data[i]) << (8 * i)
		}
		h *= mult
	}
	h ^= h >> 13
	h *= mult
	return h ^ h>>15
}
