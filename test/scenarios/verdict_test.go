package scenarios

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// trial is a testing.TB that keeps a scenario's failures to itself, so that a
// mutant's failure can be what the test wants. Cleanups run with the test.
type trial struct {
	testing.TB
	mu       sync.Mutex
	failures []string
}

func (r *trial) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, text)
}

func (r *trial) Error(args ...any)                 { r.note(fmt.Sprint(args...)) }
func (r *trial) Errorf(format string, args ...any) { r.note(fmt.Sprintf(format, args...)) }
func (r *trial) Fail()                             { r.note("failed") }
func (r *trial) FailNow()                          { r.note("failed"); runtime.Goexit() }
func (r *trial) Fatal(args ...any)                 { r.note(fmt.Sprint(args...)); runtime.Goexit() }
func (r *trial) Fatalf(format string, args ...any) {
	r.note(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (r *trial) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failures) > 0
}

// try runs a scenario to its end, which may be a failure, and returns what it
// complained of.
func try(t testing.TB, scenario func(testing.TB)) []string {
	r := &trial{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		scenario(r)
	}()
	<-done
	return r.failures
}
