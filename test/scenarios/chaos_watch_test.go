package scenarios

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/test/harness"
)

// calm is a moment at which the last active fault had ended, and how far the
// WAL was.
type calm struct {
	at      time.Time
	written pglogrepl.LSN
	// disturbed is when the next fault began; zero if none did.
	disturbed time.Time
}

type looked struct {
	at        time.Time
	confirmed pglogrepl.LSN
}

func (w *chaosWorld) faultBegins(f chaosFault) {
	w.note("%s %d", f.kind, f.target)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.active++; len(w.calms) > 0 && w.calms[len(w.calms)-1].disturbed.IsZero() {
		w.calms[len(w.calms)-1].disturbed = time.Now()
	}
}

func (w *chaosWorld) faultEnds(ctx context.Context, f chaosFault) {
	w.note("%s %d is over", f.kind, f.target)
	w.mu.Lock()
	w.active--
	calm := w.active == 0
	w.mu.Unlock()
	if calm {
		w.calmDown(ctx)
	}
}

// calmDown notes that no fault is active.
func (w *chaosWorld) calmDown(ctx context.Context) {
	c := calm{at: time.Now()}
	err := w.again(func() error {
		conn, err := pgx.Connect(ctx, w.url)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(ctx))
		return conn.QueryRow(ctx, "SELECT pg_current_wal_insert_lsn()").Scan(&c.written)
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && w.active == 0 {
		w.calms = append(w.calms, c)
	}
}

func (w *chaosWorld) watchSlot(ctx context.Context) {
	for ctx.Err() == nil {
		if lsn, err := harness.ConfirmedFlushLSN(ctx, w.url, w.slot); err == nil {
			w.mu.Lock()
			w.samples = append(w.samples, looked{time.Now(), lsn})
			w.mu.Unlock()
		}
		pause(ctx, 100*time.Millisecond)
	}
}

// recovery is how long it took, after the last active fault had ended, until
// anything was confirmed that was not before, and until everything was that had
// been written by then. With a backlog the second is a matter of speed.
type recovery struct{ first, whole time.Duration }

// slowestRecovery has the longest of both, of those that no fault disturbed.
func (w *chaosWorld) slowestRecovery() recovery {
	w.mu.Lock()
	defer w.mu.Unlock()
	var slowest recovery
	for _, c := range w.calms {
		before := pglogrepl.LSN(0)
		for _, s := range w.samples {
			if s.at.Before(c.at) {
				before = s.confirmed
				continue
			}
			if !c.disturbed.IsZero() && !s.at.Before(c.disturbed) {
				break
			}
			if s.confirmed > before && before < c.written {
				slowest.first = max(slowest.first, s.at.Sub(c.at))
				before = c.written
			}
			if s.confirmed >= c.written {
				slowest.whole = max(slowest.whole, s.at.Sub(c.at))
				break
			}
		}
	}
	return slowest
}

func (w *chaosWorld) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timeline = append(w.timeline, fmt.Sprintf("%6.2fs ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

func (w *chaosWorld) problem(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

func (w *chaosWorld) log() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.schedule.String() + strings.Join(w.timeline, "\n") + "\n"
}
