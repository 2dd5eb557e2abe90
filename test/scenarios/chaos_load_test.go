package scenarios

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// insertChange locks the aggregates, in their order, and gives each its next
// version in the outbox.
const insertChange = `WITH changed AS (
		INSERT INTO aggregates AS a (id, version) SELECT id, 1 FROM unnest($1::text[]) id ORDER BY id
		ON CONFLICT (id) DO UPDATE SET version = a.version + 1 RETURNING id, version)
	INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type, payload)
	SELECT 'order', id, version, 'Changed', jsonb_build_object('text', repeat('x', $2)) FROM changed`

// chaosWriters write until ctx ends, whatever the server does meanwhile.
func (w *chaosWorld) writers(ctx context.Context, n int) *sync.WaitGroup {
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			r := rand.New(rand.NewPCG(w.schedule.seed, uint64(i)))
			for ctx.Err() == nil {
				w.write(ctx, r) // until the connection breaks
				pause(ctx, 50*time.Millisecond)
			}
		})
	}
	return &running
}

// write writes on two connections. What becomes of a COMMIT that the server
// did not answer, the history tells.
func (w *chaosWorld) write(ctx context.Context, r *rand.Rand) {
	var conns [2]*pgx.Conn
	for i := range conns {
		conn, err := pgx.Connect(ctx, w.url)
		if err != nil {
			return
		}
		defer conn.Close(context.WithoutCancel(ctx))
		conns[i] = conn
	}
	for ctx.Err() == nil {
		var err error
		if r.IntN(5) == 0 {
			err = swapped(ctx, conns, r)
		} else {
			err = change(ctx, conns[0], r)
		}
		if err != nil {
			return
		}
		pause(ctx, time.Duration(r.IntN(20))*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// change is one transaction: mostly of a row, sometimes of hundreds, sometimes
// rolled back.
func change(ctx context.Context, conn *pgx.Conn, r *rand.Rand) error {
	size := pick(r, 1, 1, 1, 1, 1, 1, 3, 3, 20, 300)
	ids := []string{"hot"}
	for i := range size - 1 {
		ids = append(ids, fmt.Sprintf("cold-%d", (i*7+r.IntN(7))%1000))
	}
	if size == 1 && r.IntN(3) > 0 {
		ids[0] = fmt.Sprintf("cold-%d", r.IntN(50))
	}
	return transaction(ctx, conn, r.IntN(10) > 0, distinct(ids), r.IntN(800))
}

func distinct(ids []string) []string {
	seen := map[string]bool{}
	kept := ids[:0]
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			kept = append(kept, id)
		}
	}
	return kept
}

func transaction(ctx context.Context, conn *pgx.Conn, commit bool, ids []string, bytes int) error {
	for _, step := range []func() error{
		func() error { _, err := conn.Exec(ctx, "BEGIN"); return err },
		func() error { _, err := conn.Exec(ctx, insertChange, ids, bytes); return err },
		func() error {
			_, err := conn.Exec(ctx, map[bool]string{true: "COMMIT", false: "ROLLBACK"}[commit])
			return err
		},
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// swapped: who inserts first commits last.
func swapped(ctx context.Context, conns [2]*pgx.Conn, r *rand.Rand) error {
	for i, conn := range conns {
		if _, err := conn.Exec(ctx, "BEGIN"); err != nil {
			return err
		}
		// Aggregates that no other transaction has with a second one: no deadlock.
		id := fmt.Sprintf("swapped-%d-%d", i, r.IntN(5))
		if _, err := conn.Exec(ctx, insertChange, []string{id}, r.IntN(100)); err != nil {
			return err
		}
	}
	for i := range conns {
		if _, err := conns[len(conns)-1-i].Exec(ctx, "COMMIT"); err != nil {
			return err
		}
	}
	return nil
}
