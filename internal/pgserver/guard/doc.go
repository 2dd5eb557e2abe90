// Package guard starts child processes that cannot outlive the process that
// owns them, not even when that one is killed with SIGKILL.
//
// A Guard is one small sh process. Its standard input is a pipe that only the
// owner holds open, so the kernel closes it however the owner ends. Over the
// pipe the owner names the children that live ("+PID", "-PID"). At end of file
// the sh signals the children that are left, waits until all of them and their
// descendants are gone, and removes the directories it was given.
//
// No child can slip through between fork and registration: it starts as a sh
// that blocks on its own pipe, and turns into the wanted program only after
// the guard knows its PID.
//
// Two more pipes tell when a whole family of processes is gone: descendants
// inherit the write end, so the reader sees end of file only after the last
// one of them. This needs no process list and works on every Unix.
//
// Guard and children have process groups of their own: an interrupt typed at
// the terminal reaches the owner only, which then stops them in its own order.
package guard
