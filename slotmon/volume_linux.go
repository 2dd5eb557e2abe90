package slotmon

import "golang.org/x/sys/unix"

// blockSize is the unit in which the file system counts its blocks; Bsize is
// what it likes to transfer.
func blockSize(s *unix.Statfs_t) int64 { return s.Frsize }
