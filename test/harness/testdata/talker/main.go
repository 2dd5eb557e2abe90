// Command talker is what the tests of package harness run: it prints log lines
// as cdcpub does, holds some memory, and ends when it is told to.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGUSR1)
	if len(os.Args) > 1 {
		config, err := os.ReadFile(os.Args[1])
		fmt.Printf("%s %v\n", config, err)
	}
	memory := make([]byte, 64<<20)
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
	fmt.Fprintln(os.Stderr, "not JSON")
	fmt.Fprintf(os.Stderr, `{"msg":"ready","greeting":%q}`+"\n", os.Getenv("GREETING"))
	for n := 1; ; n++ {
		if <-told == syscall.SIGTERM {
			fmt.Fprintln(os.Stderr, `{"event":"stopping","msg":"told to stop"}`)
			os.Exit(int(memory[0]) + 6)
		}
		fmt.Fprintf(os.Stderr, `{"msg":"signal","n":%d}`+"\n", n)
	}
}
