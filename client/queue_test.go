package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAFullQueueAdmitsInTheOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &room{maxRecords: 1, maxBytes: 100}
		ctx := t.Context()
		if _, waited, err := q.enter(ctx, 10, -1); waited || err != nil {
			t.Fatal(waited, err)
		}
		entered := make(chan int, 3)
		for i := range 3 {
			go func() {
				if _, _, err := q.enter(ctx, 10, -1); err == nil {
					entered <- i
				}
			}()
			synctest.Wait()
		}
		for want := range 3 {
			select {
			case <-entered:
				t.Fatal("entered a full queue")
			default:
			}
			q.leave(10)
			synctest.Wait()
			if got := <-entered; got != want {
				t.Fatalf("%d entered before %d", got, want)
			}
		}
	})
}

func TestAFullQueueIsLeftInTimeOrAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &room{maxRecords: 10, maxBytes: 100}
		if _, _, err := q.enter(t.Context(), 1000, 0); err != nil {
			t.Fatal("a record larger than the queue must pass alone:", err)
		}
		start := time.Now()
		if _, waited, err := q.enter(t.Context(), 1, 0); waited || !errors.Is(err, ErrQueueFull) || time.Since(start) != 0 {
			t.Fatal(waited, err)
		}
		if _, waited, err := q.enter(t.Context(), 1, 50*time.Millisecond); !waited || !errors.Is(err, ErrQueueFull) || time.Since(start) != 50*time.Millisecond {
			t.Fatal(waited, err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := q.enter(ctx, 1, -1); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		q.leave(1000)
		if _, waited, err := q.enter(t.Context(), 1, 0); waited || err != nil {
			t.Fatal(waited, err)
		}
	})
}

// One that gives up must let a smaller one behind it in.
func TestTheNextInLineEntersWhenTheFirstGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &room{maxRecords: 10, maxBytes: 100}
		_, _, _ = q.enter(t.Context(), 60, 0)
		go func() { _, _, _ = q.enter(t.Context(), 90, time.Second) }()
		synctest.Wait()
		done := make(chan error, 1)
		go func() {
			_, _, err := q.enter(t.Context(), 10, -1)
			done <- err
		}()
		start := time.Now()
		if err := <-done; err != nil || time.Since(start) != time.Second {
			t.Fatal(err, time.Since(start))
		}
	})
}
