package pause

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestForLastsAsLongAsItSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := For(t.Context(), 3*time.Second); err != nil || time.Since(began) != 3*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if err := For(t.Context(), -time.Second); err != nil || time.Since(began) != 3*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

func TestForEndsWithTheCauseOfItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, cause := time.Now(), errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		if err := For(ctx, time.Hour); err != cause || time.Since(began) != time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		for _, d := range []time.Duration{time.Hour, 0} {
			if err := For(ctx, d); err != cause {
				t.Errorf("%s: %v", d, err)
			}
		}
	})
}
