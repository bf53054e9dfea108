package server

import (
	"sync"
	"sync/atomic"
)

// budget bounds the bytes of all frames. Takers wait while it is spent; one at
// a time may go beyond it, so that there is always one that comes to its end
// and gives back.
type budget struct {
	left atomic.Int64
	mu   struct {
		sync.Mutex
		waiting  []chan struct{} // oldest first; closed to try again
		overdraw *claim          // who may go beyond
	}
	waiters atomic.Int32
}

// claim is what one frame has taken.
type claim struct {
	n    int64
	over bool // may go beyond the budget until it is released
}

func newBudget(n int64) *budget {
	b := &budget{}
	b.left.Store(n)
	return b
}

// take adds n bytes to a claim. It waits while the budget is spent, until
// stop is closed; then it returns false.
func (b *budget) take(c *claim, n int64, stop <-chan struct{}) bool {
	if n <= 0 || b.try(c, n) {
		return true
	}
	for {
		b.mu.Lock()
		if b.mu.overdraw == nil || b.mu.overdraw == c {
			b.mu.overdraw, c.over = c, true
			b.mu.Unlock()
			b.left.Add(-n)
			c.n += n
			return true
		}
		again := make(chan struct{})
		b.mu.waiting = append(b.mu.waiting, again)
		b.waiters.Add(1)
		b.mu.Unlock()
		if b.try(c, n) { // given back in between
			return true
		}
		select {
		case <-again:
		case <-stop:
			return false
		}
		if b.try(c, n) {
			return true
		}
	}
}

// try takes n bytes if they are there, or if the claim may go beyond.
func (b *budget) try(c *claim, n int64) bool {
	for {
		left := b.left.Load()
		if left < n && !c.over {
			return false
		}
		if b.left.CompareAndSwap(left, left-n) {
			c.n += n
			return true
		}
	}
}

// release gives a claim back.
func (b *budget) release(c *claim) {
	if c.n == 0 && !c.over {
		return
	}
	b.left.Add(c.n)
	c.n = 0
	if c.over {
		b.mu.Lock()
		if b.mu.overdraw == c {
			b.mu.overdraw = nil
		}
		b.mu.Unlock()
		c.over = false
	}
	b.wake()
}

func (b *budget) wake() {
	if b.waiters.Load() == 0 {
		return
	}
	b.mu.Lock()
	waiting := b.mu.waiting
	b.mu.waiting = nil
	b.waiters.Store(0)
	b.mu.Unlock()
	for _, w := range waiting {
		close(w)
	}
}

// short tells whether somebody waits.
func (b *budget) short() bool { return b.waiters.Load() > 0 }

// moveOverdraft tells the budget that a claim lives elsewhere now.
func (b *budget) moveOverdraft(c *claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.overdraw != nil {
		b.mu.overdraw = c
	}
}
