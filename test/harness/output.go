package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

// LogLine is one JSON line of the program's log.
type LogLine map[string]any

// Event is the line's event name: the field "event" or else the message.
func (l LogLine) Event() string {
	for _, field := range []string{"event", "msg"} {
		if name, ok := l[field].(string); ok {
			return name
		}
	}
	return ""
}

// output collects what a process prints.
type output struct {
	ended chan struct{} // closed when both streams are at their end

	mu      sync.Mutex
	changed sync.Cond // on mu
	stdout  bytes.Buffer
	stderr  []string
	log     []LogLine
	next    int  // first line of log that WaitForLog has not passed
	closed  bool // both streams ended
}

// capture reads both streams until the last holder of each has closed it.
func capture(stdout, stderr io.ReadCloser) *output {
	o := &output{ended: make(chan struct{})}
	o.changed.L = &o.mu
	var readers sync.WaitGroup
	readers.Go(func() {
		defer stdout.Close()
		buffer := make([]byte, 32<<10)
		for {
			n, err := stdout.Read(buffer)
			o.mu.Lock()
			o.stdout.Write(buffer[:n])
			o.mu.Unlock()
			if err != nil {
				return
			}
		}
	})
	readers.Go(func() {
		defer stderr.Close()
		lines := bufio.NewReader(stderr) // lines have no limit
		for {
			line, err := lines.ReadString('\n')
			if line != "" {
				o.add(strings.TrimSuffix(line, "\n"))
			}
			if err != nil {
				return
			}
		}
	})
	go func() {
		readers.Wait()
		o.mu.Lock()
		o.closed = true
		o.changed.Broadcast()
		o.mu.Unlock()
		close(o.ended)
	}()
	return o
}

func (o *output) add(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stderr = append(o.stderr, line)
	var parsed LogLine
	if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &parsed) == nil {
		o.log = append(o.log, parsed)
		o.changed.Broadcast()
	}
}

func (o *output) tail(n int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := strings.Join(o.stderr[max(0, len(o.stderr)-n):], "\n")
	if o.stdout.Len() > 0 {
		text += "\nstandard output:\n" + o.stdout.String()
	}
	return text
}

// WaitForLog waits for the next log line with the given event name or message.
// Lines up to and including the one returned are passed over by the next call.
// It fails when ctx or the process ends first; all lines are then passed over.
func (p *Process) WaitForLog(ctx context.Context, event string) (LogLine, error) {
	return p.WaitForLine(ctx, "event "+strconv.Quote(event), func(l LogLine) bool { return l.Event() == event })
}

// WaitForLine is WaitForLog for any condition; what names it in the error.
func (p *Process) WaitForLine(ctx context.Context, what string, match func(LogLine) bool) (LogLine, error) {
	o := p.output
	wake := context.AfterFunc(ctx, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.changed.Broadcast()
	})
	defer wake()
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		for o.next < len(o.log) {
			line := o.log[o.next]
			o.next++
			if match(line) {
				return line, nil
			}
		}
		switch {
		case o.closed:
			return nil, fmt.Errorf("process %d ended without %s in its log", p.PID(), what)
		case ctx.Err() != nil:
			return nil, fmt.Errorf("wait for %s in the log of process %d: %w", what, p.PID(), context.Cause(ctx))
		}
		o.changed.Wait()
	}
}

// Log returns all JSON lines of standard error so far.
func (p *Process) Log() []LogLine {
	p.output.mu.Lock()
	defer p.output.mu.Unlock()
	return append([]LogLine(nil), p.output.log...)
}

// Stderr is all of standard error so far.
func (p *Process) Stderr() string {
	p.output.mu.Lock()
	defer p.output.mu.Unlock()
	return strings.Join(p.output.stderr, "\n")
}

// Stdout is all of standard output so far.
func (p *Process) Stdout() string {
	p.output.mu.Lock()
	defer p.output.mu.Unlock()
	return p.output.stdout.String()
}

// parsePeak finds "VmHWM:     1234 kB" in /proc/PID/status.
func parsePeak(status []byte) (bytesUsed int64, ok bool) {
	_, rest, found := strings.Cut(string(status), "\nVmHWM:")
	if !found {
		return 0, false
	}
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kib, err := strconv.ParseInt(number, 10, 64)
	return kib * 1024, err == nil
}
