package kafka

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

var (
	wrongPassword = needsOperator("k1:9092", errors.New("58"), "does not accept the user")
	closed        = unreachable("k2:9092", errors.New("refused"))
	proxied       = hungUp("k3:9092", io.EOF, "closes the connection")
)

func TestOneWrongPasswordAmongBrokersNeedsAHuman(t *testing.T) {
	for want, errs := range map[bool][]error{
		true:  {wrongPassword, fmt.Errorf("look: %w", wrongPassword), &noBrokerError{[]error{closed, wrongPassword}}, &toldError{"x", wrongPassword}, proxied},
		false: {nil, closed, errors.New("x"), &noBrokerError{[]error{closed, closed}}, &noBrokerError{}},
	} {
		for _, err := range errs {
			if needsHuman(err) != want {
				t.Errorf("%v: %v", err, !want)
			}
		}
	}
}

// A password that is tried every second may lock an account. Who hangs up before
// it was sent may be a proxy whose broker is away, and is not the reason why nothing
// goes on for ten seconds after that is back.
func TestAfterAWrongPasswordLookupsBackOffToTheOperatorsMaximum(t *testing.T) {
	for _, c := range []struct {
		err     error
		longest time.Duration
	}{{closed, time.Second}, {proxied, time.Second}, {wrongPassword, 10 * time.Second}} {
		if slow := classifyError(c.err).class == classOperator; slow != (c.longest > time.Second) {
			t.Errorf("%v: a partition waits as for a human: %v", c.err, slow)
		}
		p := &Producer{config: &Config{}, loop: loop{report: reporter{log: zap.NewNop()}}, policy: policy{
			backoffMin: 50 * time.Millisecond, backoffMax: time.Second, operatorMax: 10 * time.Second, jitter: func() float64 { return 1 },
		}}
		now, pause := time.Unix(0, 0), time.Duration(0)
		for range 12 {
			p.lookedUp(controlled{err: &noBrokerError{[]error{c.err}}}, now)
			if next := p.lookupAt.Sub(now); next < pause {
				t.Fatalf("%v: the pause falls from %s to %s", c.err, pause, next)
			} else {
				pause = next
			}
			now = p.lookupAt
		}
		if pause != c.longest {
			t.Errorf("%v: tried every %s, want %s", c.err, pause, c.longest)
		}
	}
}

func TestTheLogTellsOfEachChangeAndNotOfEachTry(t *testing.T) {
	core, lines := observer.New(zap.InfoLevel)
	r := reporter{log: zap.New(core)}
	for _, err := range []error{closed, closed, wrongPassword, wrongPassword, nil, nil, wrongPassword, closed} {
		r.reach(err)
	}
	var events []any
	for _, line := range lines.All() {
		events = append(events, line.ContextMap()["event"])
	}
	if got := fmt.Sprint(events); got != "[kafka_unreachable kafka_unreachable kafka_connected kafka_unreachable kafka_unreachable]" {
		t.Error(got)
	}
}
