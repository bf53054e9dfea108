package client

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// ErrQueueFull is the error of a record for which the queue had no room, at
// once or in time (kafka.common.QueueFullException).
var ErrQueueFull = errors.New("client: the producer's queue is full")

// ErrClosed is the error of calls on a producer or consumer that was closed, and
// of records that Close could not send in time.
var ErrClosed = errors.New("client: closed")

// room counts what an asynchronous producer holds. Who finds no room waits in
// line: the first to come is the first to enter. Acknowledgements come in
// bursts, so the line is let in once a sixteenth of the room is free, or after
// a tick if any is: a sender then runs for a while instead of waking for each
// record.
//
// Lock: mu, over everything, held for a few instructions.
type room struct {
	maxRecords, maxBytes int
	full                 func() // told when somebody has to wait; may be nil

	mu struct {
		sync.Mutex
		records, bytes int
		line           list.List // of *waiter
	}
}

// tick is how long a place may stay free while somebody waits.
const tick = time.Millisecond

type waiter struct {
	bytes int
	enter chan struct{} // closed when it has its place
}

func (q *room) fitsLocked(bytes int) bool {
	return q.mu.records == 0 || q.mu.records < q.maxRecords && q.mu.bytes+bytes <= q.maxBytes
}

// enter takes a place for a record of so many bytes. With a full queue it waits
// without limit (limit < 0), for at most limit, or not at all (0). waited tells
// whether it had to.
func (q *room) enter(ctx context.Context, bytes int, limit time.Duration) (waited bool, err error) {
	q.mu.Lock()
	if q.mu.line.Len() == 0 && q.fitsLocked(bytes) {
		q.mu.records++
		q.mu.bytes += bytes
		q.mu.Unlock()
		return false, nil
	}
	if limit == 0 {
		q.mu.Unlock()
		return false, ErrQueueFull
	}
	w := &waiter{bytes, make(chan struct{})}
	place := q.mu.line.PushBack(w)
	q.mu.Unlock()
	if q.full != nil {
		q.full()
	}

	var late <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		late = timer.C
	}
	look := time.NewTicker(tick)
	defer look.Stop()
	for err == nil {
		select {
		case <-w.enter:
			return true, nil
		case <-look.C:
			q.mu.Lock()
			q.admitLocked()
			q.mu.Unlock()
		case <-late:
			err = ErrQueueFull
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-w.enter: // the place came just now
		return true, nil
	default:
	}
	q.mu.line.Remove(place)
	q.admitLocked() // the next in line may be smaller
	return true, err
}

// leave gives a place back.
func (q *room) leave(bytes int) {
	q.mu.Lock()
	q.mu.records--
	q.mu.bytes -= bytes
	if q.mu.line.Len() > 0 && q.maxRecords-q.mu.records > q.maxRecords/16 && q.maxBytes-q.mu.bytes > q.maxBytes/16 {
		q.admitLocked()
	}
	q.mu.Unlock()
}

func (q *room) admitLocked() {
	for front := q.mu.line.Front(); front != nil; front = q.mu.line.Front() {
		w := front.Value.(*waiter)
		if !q.fitsLocked(w.bytes) {
			return
		}
		q.mu.records++
		q.mu.bytes += w.bytes
		q.mu.line.Remove(front)
		close(w.enter)
	}
}

func (q *room) held() (records, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.records, q.mu.bytes
}
