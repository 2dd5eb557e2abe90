// Package hedge repeats what takes long without giving it up: hedged requests
// (Dean and Barroso, "The Tail at Scale", 2013), for what has no effect until it
// is used, such as a connection.
//
// A network that swallows bytes leaves connections behind on which nothing ever
// comes, also when it is healthy again, and whoever has begun one waits until his
// timeout. A short timeout would never get through to a server that is only slow.
// With a hedge the timeout can be long: what began first goes on, and what is
// ready first is taken.
package hedge

import (
	"context"
	"time"
)

// Policy says when an attempt is repeated.
type Policy struct {
	// Interval is the time from one attempt to the next. Positive.
	Interval time.Duration
	// Most bounds the attempts that last at the same time.
	Most int
}

// Do returns the result of attempt. While the first attempt lasts, further ones
// begin, numbered from 1, and the first success of any is the result. When the
// first attempt fails so does Do, with its error: the further ones can only help.
//
// Every attempt has a context of its own, below ctx. That of the result which is
// returned ends with ctx and not before, so that a connection may go on depending
// on it. Those of the others end at once, Do waits for them, and gives what they
// bring nevertheless to discard. attempt is called from goroutines of their own,
// discard from the caller's.
func Do[T any](ctx context.Context, p Policy, attempt func(ctx context.Context, number int) (T, error), discard func(T)) (T, error) {
	var (
		running = map[int]context.CancelFunc{}
		ended   = make(chan end[T])
		begun   int
		ticker  = time.NewTicker(p.Interval)
	)
	defer ticker.Stop()
	begin := func() {
		number := begun
		begun++
		ctx, cancel := context.WithCancel(ctx)
		running[number] = cancel
		go func() {
			result, err := attempt(ctx, number)
			ended <- end[T]{number, result, err}
		}()
	}
	begin()
	for {
		select {
		case <-ticker.C:
			if len(running) < p.Most {
				begin()
			}
			continue
		case e := <-ended:
			cancel := running[e.number]
			delete(running, e.number)
			if e.err != nil {
				cancel()
			}
			if e.err != nil && e.number > 0 {
				continue
			}
			for _, cancel := range running {
				cancel()
			}
			for range running {
				if late := <-ended; late.err == nil {
					discard(late.result)
				}
			}
			return e.result, e.err
		}
	}
}

// end is how an attempt has ended.
type end[T any] struct {
	number int
	result T
	err    error
}
