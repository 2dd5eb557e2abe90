package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// workers write at the same time, each on its own connection.
const workers = 6

// openOrders is how many orders are worked on before another one is placed.
const openOrders = 5

// shop is an order shop in the manner of services that share a database: the
// handlers of payment, packing and cancellation know nothing of each other and
// meet at the row lock of the order. Whoever comes too early, or too late,
// rolls back.
type shop struct {
	sql        *pgx.ConnConfig
	ledger     *ledger
	rolledBack atomic.Int64

	mu     sync.Mutex // guards what follows
	tasks  []task
	active map[string]int // tasks left by order
	placed int
}

// task is a handler that is due for an order.
type task struct {
	order  string
	handle handler
	places bool // the order itself
}

func newShop(sql *pgx.ConnConfig, ledger *ledger) *shop {
	return &shop{sql: sql, ledger: ledger, active: map[string]int{}}
}

// run writes one event for each permit, and returns when there are no more, or
// at the first error. When stop is closed it gives up what it did not commit.
func (s *shop) run(ctx context.Context, stop <-chan struct{}, permits <-chan struct{}) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var staff sync.WaitGroup
	for range workers {
		staff.Go(func() {
			if err := s.work(ctx, stop, permits); err != nil {
				cancel(fmt.Errorf("the shop: %w", err))
			}
		})
	}
	staff.Wait()
	return context.Cause(ctx)
}

func (s *shop) work(ctx context.Context, stop <-chan struct{}, permits <-chan struct{}) error {
	conn, err := connect(ctx, s.sql)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for {
		select {
		case _, more := <-permits:
			if !more {
				return nil
			}
		case <-ctx.Done():
			return nil
		}
		for done := false; !done; {
			select {
			case <-stop:
				return nil
			default:
			}
			if done, err = s.attempt(ctx, conn, s.take()); err != nil {
				return err
			}
		}
	}
}

// attempt runs a task in a transaction of its own and says whether it committed
// an event.
func (s *shop) attempt(ctx context.Context, conn *pgx.Conn, t task) (bool, error) {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return false, err
	}
	event, err := t.handle(ctx, tx, t.order)
	if again := errors.Is(err, errAgain); again || errors.Is(err, errOver) {
		s.rolledBack.Add(1)
		s.settle(t, again)
		return false, tx.Rollback(ctx)
	}
	if err != nil {
		return false, errors.Join(err, tx.Rollback(context.WithoutCancel(ctx)))
	}
	s.ledger.committing(event)
	if err := tx.Commit(ctx); err != nil {
		return false, fmt.Errorf("commit of event %s: %w", event, err)
	}
	s.settle(t, false)
	return true, nil
}

// crowd is how many of the oldest tasks one is picked from: enough for orders
// to mix, few enough for the handlers of one order to come together.
const crowd = 4

// take picks a task, or places a new order.
func (s *shop) take() task {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tasks) == 0 || len(s.active) < openOrders {
		s.placed++
		order := fmt.Sprintf("ord-%d", s.placed)
		s.active[order] = 1
		return task{order: order, handle: place, places: true}
	}
	i := rand.IntN(min(crowd, len(s.tasks)))
	picked := s.tasks[i]
	s.tasks = slices.Delete(s.tasks, i, i+1)
	return picked
}

// cancelled is the share of orders that their customers try to cancel: 1 in 8.
const cancelled = 8

// settle notes that a task is over, or due again. After an order was placed,
// its other handlers are due, all at the same time.
func (s *shop) settle(t task, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if again {
		s.tasks = append(s.tasks, t)
		return
	}
	if s.active[t.order]--; s.active[t.order] == 0 && t.places {
		due := []task{{order: t.order, handle: pay}, {order: t.order, handle: pack}}
		if rand.IntN(cancelled) == 0 {
			due = append(due, task{order: t.order, handle: cancel})
		}
		rand.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
		s.tasks, s.active[t.order] = append(s.tasks, due...), len(due)
	}
	if s.active[t.order] == 0 {
		delete(s.active, t.order)
	}
}
