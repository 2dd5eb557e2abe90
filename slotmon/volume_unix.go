//go:build linux || darwin

package slotmon

import (
	"errors"
	"math"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// statfs returns what is free for the server, which is not root, and the size
// of the file system that holds path, in bytes.
func statfs(path string) (free, size int64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, 0, err
	}
	return blocks(s.Bavail, blockSize(&s)), blocks(s.Blocks, blockSize(&s)), nil
}

// blocks multiplies. Some file systems have no end: they are as large as can be
// said.
func blocks(n uint64, size int64) int64 {
	if size <= 0 || n > uint64(math.MaxInt64/size) {
		return math.MaxInt64
	}
	return int64(n) * size
}

// alive tells if the process runs on this machine.
func alive(pid int) bool {
	err := unix.Kill(pid, 0)
	return err == nil || errors.Is(err, unix.EPERM)
}

// ownGroup makes the command's end the end of what it started.
func ownGroup(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return unix.Kill(-command.Process.Pid, unix.SIGKILL) }
}
