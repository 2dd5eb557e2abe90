package hedge

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

var errFirst, errLater = errors.New("the first has failed"), errors.New("a later one has failed")

// plan is how an attempt goes.
type plan struct {
	lasts time.Duration
	err   error
	deaf  bool // to the end of its context
}

// bench makes attempts as planned; those without a plan never end by themselves.
type bench struct {
	plans     []plan
	began     []time.Duration
	contexts  map[int]context.Context
	discarded []int
	running   int
	most      int
}

func (b *bench) do(ctx context.Context, p Policy) (int, error) {
	start := time.Now()
	turn := make(chan struct{}, 1) // guards b
	b.contexts = map[int]context.Context{}
	attempt := func(ctx context.Context, number int) (int, error) {
		turn <- struct{}{}
		b.began = append(b.began, time.Since(start))
		b.contexts[number] = ctx
		b.running++
		b.most = max(b.most, b.running)
		<-turn
		defer func() {
			turn <- struct{}{}
			b.running--
			<-turn
		}()
		planned := plan{lasts: time.Hour}
		if number < len(b.plans) {
			planned = b.plans[number]
		}
		var given <-chan struct{}
		if !planned.deaf {
			given = ctx.Done()
		}
		select {
		case <-time.After(planned.lasts):
			return number, planned.err
		case <-given:
			return -1, context.Cause(ctx)
		}
	}
	result, err := Do(ctx, p, attempt, func(n int) { b.discarded = append(b.discarded, n) })
	return result, err
}

func TestWhatIsReadyFirstIsTaken(t *testing.T) {
	const s = time.Second
	for name, test := range map[string]struct {
		plans     []plan
		want      int
		err       error
		after     time.Duration
		discarded []int
	}{
		"at once":                               {[]plan{{lasts: s}}, 0, nil, s, nil},
		"slow, and the others too":              {[]plan{{lasts: 9 * s}, {lasts: 9 * s}, {lasts: 9 * s}}, 0, nil, 9 * s, nil},
		"the first hangs":                       {[]plan{{lasts: time.Hour}, {lasts: s}}, 1, nil, 4 * s, nil},
		"the first two hang":                    {[]plan{{lasts: time.Hour}, {lasts: time.Hour}, {lasts: s}}, 2, nil, 7 * s, nil},
		"a later one fails":                     {[]plan{{lasts: 5 * s}, {lasts: s, err: errLater}}, 0, nil, 5 * s, nil},
		"one that failed makes room":            {[]plan{{lasts: time.Hour}, {lasts: time.Hour}, {lasts: s, err: errLater}, {lasts: s}}, 3, nil, 10 * s, nil},
		"the first fails":                       {[]plan{{lasts: 5 * s, err: errFirst}, {lasts: time.Hour}}, 0, errFirst, 5 * s, nil},
		"the first fails at once":               {[]plan{{err: errFirst}}, 0, errFirst, 0, nil},
		"what comes nevertheless is discarded":  {[]plan{{lasts: 4 * s}, {lasts: 3 * s, deaf: true}}, 0, nil, 6 * s, []int{1}},
		"also when the first fails":             {[]plan{{lasts: 4 * s, err: errFirst}, {lasts: 3 * s, deaf: true}}, 0, errFirst, 6 * s, []int{1}},
		"a failure that comes nevertheless not": {[]plan{{lasts: 4 * s}, {lasts: 3 * s, deaf: true, err: errLater}}, 0, nil, 6 * s, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				b, began := &bench{plans: test.plans}, time.Now()
				got, err := b.do(ctx, Policy{Interval: 3 * s, Most: 3})
				if got != test.want || err != test.err || time.Since(began) != test.after {
					t.Errorf("attempt %d, %v, after %s", got, err, time.Since(began))
				}
				if !slices.Equal(b.discarded, test.discarded) || b.running != 0 {
					t.Errorf("discarded %v, %d are running", b.discarded, b.running)
				}
				for number, of := range b.contexts {
					if taken := err == nil && number == got; taken == (of.Err() != nil) {
						t.Errorf("the context of attempt %d: %v", number, of.Err())
					}
				}
				cancel()
				if err == nil && b.contexts[got].Err() == nil {
					t.Error("what was taken outlives the caller's context")
				}
			})
		})
	}
}

func TestNoMoreThanMostLastAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second+time.Nanosecond)
		defer cancel()
		b := &bench{}
		if _, err := b.do(ctx, Policy{Interval: 3 * time.Second, Most: 3}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if want := []time.Duration{0, 3 * time.Second, 6 * time.Second}; !slices.Equal(b.began, want) || b.most != 3 {
			t.Errorf("began at %v, %d at a time", b.began, b.most)
		}
	})
}
