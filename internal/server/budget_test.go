package server

import (
	"sync"
	"testing"
)

func TestBudgetLetsOneGoBeyondAndTheOthersWait(t *testing.T) {
	b := newBudget(100)
	stop := make(chan struct{})
	var first, second, third claim
	if !b.take(&first, 80, stop) || !b.take(&second, 50, stop) { // beyond
		t.Fatal("refused")
	}
	if !second.over || b.left.Load() != -30 {
		t.Fatalf("over %v, left %d", second.over, b.left.Load())
	}
	got := make(chan bool)
	go func() { got <- b.take(&third, 30, stop) }()
	b.release(&second)
	b.release(&first)
	if !<-got || b.left.Load() != 70 {
		t.Fatalf("left %d, want 70", b.left.Load())
	}
	b.release(&third)
	if b.left.Load() != 100 {
		t.Fatalf("left %d, want 100", b.left.Load())
	}
}

func TestBudgetWaitEndsWhenTheServerStops(t *testing.T) {
	b := newBudget(1)
	stop := make(chan struct{})
	var over, waits claim
	b.take(&over, 10, stop)
	close(stop)
	if b.take(&waits, 10, stop) {
		t.Fatal("took what is not there")
	}
}

func TestBudgetIsWholeAfterManyTakers(t *testing.T) {
	b := newBudget(1000)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for n := range 500 {
				var c claim
				for range 3 {
					b.take(&c, int64(1+(n*i)%700), stop)
				}
				b.release(&c)
			}
		})
	}
	wg.Wait()
	if b.left.Load() != 1000 {
		t.Fatalf("left %d, want 1000", b.left.Load())
	}
}
