package kafka

import "sync"

// mailbox is an unbounded queue with one reader. Putting never blocks, so it
// may be called from sarama's response readers. What it can hold is bounded by
// what its writers may have outstanding.
type mailbox[T any] struct {
	mu    sync.Mutex
	items []T
	// wake has a token when items may be waiting.
	wake chan struct{}
}

func newMailbox[T any]() *mailbox[T] {
	return &mailbox[T]{wake: make(chan struct{}, 1)}
}

func (m *mailbox[T]) put(item T) {
	m.mu.Lock()
	m.items = append(m.items, item)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// take returns what is waiting, in order, and leaves spare in its place.
func (m *mailbox[T]) take(spare []T) []T {
	clear(spare)
	m.mu.Lock()
	defer m.mu.Unlock()
	items := m.items
	m.items = spare[:0]
	return items
}
