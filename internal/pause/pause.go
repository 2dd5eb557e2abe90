// Package pause waits. It is one function, so that every wait of the program
// can be ended.
package pause

import (
	"context"
	"time"
)

// For returns nil after d, or the cause of ctx if that ends before. A d that is
// not positive does not wait, but still says whether ctx has ended.
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
