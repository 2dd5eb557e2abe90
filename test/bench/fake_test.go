package bench

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
)

// fakeBroker is kfake in a process of its own: this test program again.
type fakeBroker struct {
	command *exec.Cmd
	address string
}

const beFake = "CDCPUB_BENCH_FAKE_BROKER"

func TestMain(m *testing.M) {
	if os.Getenv(beFake) != "" {
		serveFake()
		return
	}
	os.Exit(m.Run())
}

// serveFake says where it listens and ends with its standard input.
func serveFake() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer cluster.Close()
	fmt.Println(cluster.ListenAddrs()[0])
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
}

func startFake(b *testing.B) *fakeBroker {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	f := &fakeBroker{command: exec.Command(self)}
	f.command.Env = append(os.Environ(), beFake+"=1")
	f.command.Stderr = os.Stderr
	stdin, err := f.command.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = stdin.Close() })
	stdout, err := f.command.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := f.command.Start(); err != nil {
		b.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		b.Fatalf("the fake broker did not start: %v", err)
	}
	f.address = strings.TrimSpace(line)
	return f
}

func (f *fakeBroker) PID() int { return f.command.Process.Pid }

func (f *fakeBroker) stop(*testing.B) {
	_ = f.command.Process.Kill()
	_ = f.command.Wait()
}
