package guard

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
)

// script is the guard. $1 is the signal for children whose owner died, the
// rest are the directories to remove then. Descriptor 3 is the read end of the
// pipe that all children hold. Each child leads a process group, and the whole
// group gets the signal. A frozen child is continued, or it could not take the
// signal; one that ignores it for 7 s gets SIGKILL
// (PostgreSQL itself needs 5 s to give up on a child). The last line ends what is
// left of the guard's own group: the sleep.
const script = `trap '' HUP INT TERM QUIT
sig=$1; shift
children=
while read -r word; do
	case $word in
	done) exit 0 ;;
	+*) children="$children -${word#+}" ;;
	-*) left=
		for c in $children; do [ "$c" = "$word" ] || left="$left $c"; done
		children=$left ;;
	esac
done
if [ -n "$children" ]; then
	kill -s "$sig" -- $children
	kill -s CONT -- $children
	(sleep 7; kill -s KILL -- $children) &
	cat <&3
fi
[ $# -eq 0 ] || rm -rf -- "$@"
kill -s KILL 0
`

// Options say what happens to the children when the owner died.
type Options struct {
	// Signal is sent to every child that is left. Zero means SIGKILL.
	Signal syscall.Signal
	// Remove are directories to remove after the last child is gone.
	Remove []string
}

// Guard watches over the children of one throw-away thing, a server or a
// cluster. Its methods are safe from any goroutine.
type Guard struct {
	cmd      *exec.Cmd
	children *os.File // write end of the pipe that every child inherits

	mu     sync.Mutex
	orders io.WriteCloser // nil after Close
}

// New starts a guard. It must be closed, or it acts as if the owner had died
// when the process ends.
func New(o Options) (*Guard, error) {
	signal := "KILL"
	switch o.Signal {
	case 0, syscall.SIGKILL:
	case syscall.SIGQUIT:
		signal = "QUIT"
	case syscall.SIGTERM:
		signal = "TERM"
	default:
		return nil, fmt.Errorf("guard: signal %v is not supported", o.Signal)
	}
	alive, children, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	defer alive.Close()
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, "cdcpub-guard", signal}, o.Remove...)...)
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{alive}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	orders, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		children.Close()
		return nil, fmt.Errorf("guard: %w", err)
	}
	return &Guard{cmd: cmd, children: children, orders: orders}, nil
}

func (g *Guard) order(word string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.orders == nil {
		return errors.New("guard: already closed")
	}
	if _, err := io.WriteString(g.orders, word+"\n"); err != nil {
		return fmt.Errorf("guard: the guard process is gone: %w", err)
	}
	return nil
}

func (g *Guard) add(pid int) error  { return g.order("+" + strconv.Itoa(pid)) }
func (g *Guard) drop(pid int) error { return g.order("-" + strconv.Itoa(pid)) }

// Close dismisses the guard: it removes nothing and signals nobody. Call it
// after the children have ended and the directories are removed.
func (g *Guard) Close() error {
	err := g.order("done")
	g.mu.Lock()
	orders := g.orders
	g.orders = nil
	g.mu.Unlock()
	if orders == nil {
		return nil
	}
	orders.Close()
	g.children.Close()
	if waitErr := g.cmd.Wait(); err == nil && waitErr != nil {
		err = fmt.Errorf("guard: %w", waitErr)
	}
	return err
}
