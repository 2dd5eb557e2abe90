// Command cdcpub publishes a PostgreSQL outbox to Kafka: it reads a logical
// replication slot in commit order and confirms an LSN only after the broker
// has acknowledged every record up to it.
//
// Exit codes: 0 done; 1 failure that a restart may cure; 2 usage or
// configuration; 3 a check before the start refused; 4 a human must decide
// before the next start.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	os.Exit(run(context.Background(), process{
		args: os.Args[1:], env: os.Environ(), stdout: os.Stdout, stderr: os.Stderr, signals: signals, stdin: terminal(os.Stdin),
	}))
}

// terminal returns the file if it is a terminal. Other character devices, such
// as /dev/null, are none.
func terminal(file *os.File) io.Reader {
	if _, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ); err != nil {
		return nil
	}
	return file
}
