package publisher

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cdcpub/cdcpub/wal"
)

// However long PostgreSQL was away, it is found soon after it is back, and it is
// not asked without end meanwhile.
func TestALongOutageDoesNotMakeTheTriesRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := observed(nil)
		p.config.WAL.Slot = "outbox_slot"
		var tries []time.Time
		p.config.WAL.Connect = func(context.Context) (*wal.ConnConfig, error) {
			tries = append(tries, time.Now())
			return nil, errors.New("connection refused")
		}
		over := errors.New("the test is over")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, over)
		defer cancel()
		if err := p.Run(ctx, nil); !errors.Is(err, over) {
			t.Fatal(err)
		}
		longest := time.Duration(0)
		for i := 1; i < len(tries); i++ {
			longest = max(longest, tries[i].Sub(tries[i-1]))
		}
		if longest > 3*time.Second {
			t.Errorf("%s passed between two tries", longest)
		}
		if n := len(tries); n > 60*60 {
			t.Errorf("%d tries within an hour", n)
		}
	})
}
