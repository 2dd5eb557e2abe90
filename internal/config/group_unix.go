//go:build unix

package config

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the command's end the end of what it started.
func ownGroup(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
}
