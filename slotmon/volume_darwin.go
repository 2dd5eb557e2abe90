package slotmon

import "golang.org/x/sys/unix"

// blockSize is the unit in which the file system counts its blocks.
func blockSize(s *unix.Statfs_t) int64 { return int64(s.Bsize) }
