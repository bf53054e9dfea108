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
// bursts, so the line is let in once a quarter of the room is free, or after
// a tick if any is: a sender then runs for a while instead of waking for each
// record.
//
// A place may come with memory for a record's way, that of an earlier one. It
// goes round in the order of the records, so that all who see them on their way
// read it as it lies, ahead of which a processor reads.
//
// Lock: mu, over everything, held for a few instructions.
type room struct {
	maxRecords, maxBytes int
	full                 func() // told when somebody has to wait; may be nil

	mu struct {
		sync.Mutex
		records, bytes int
		line           list.List // of *waiter
		sent, failed   int64
		idle, back     []*sending // of idle the first are used; back is idle next
		used           int
	}
}

// maxIdle bounds the memory that a queue keeps when it is empty, to some
// megabytes.
const maxIdle = 1 << 14

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
// whether it had to. s is memory for the record's way, zero, or nil.
func (q *room) enter(ctx context.Context, bytes int, limit time.Duration) (s *sending, waited bool, err error) {
	q.mu.Lock()
	if q.mu.line.Len() == 0 && q.fitsLocked(bytes) {
		q.mu.records++
		q.mu.bytes += bytes
		if q.mu.used == len(q.mu.idle) {
			q.mu.idle, q.mu.back, q.mu.used = q.mu.back, q.mu.idle[:0], 0
		}
		if q.mu.used < len(q.mu.idle) {
			s, q.mu.idle[q.mu.used] = q.mu.idle[q.mu.used], nil
			q.mu.used++
		}
		q.mu.Unlock()
		return s, false, nil
	}
	if limit == 0 {
		q.mu.Unlock()
		return nil, false, ErrQueueFull
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
			return nil, true, nil
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
		return nil, true, nil
	default:
	}
	q.mu.line.Remove(place)
	q.admitLocked() // the next in line may be smaller
	return nil, true, err
}

// comeBack is leave for a record that was taken: it counts it, and takes the
// memory of its way, all zero, or nil.
func (q *room) comeBack(bytes int, sent bool, s *sending) {
	q.mu.Lock()
	if sent {
		q.mu.sent++
	} else {
		q.mu.failed++
	}
	if s != nil && len(q.mu.back) < maxIdle {
		q.mu.back = append(q.mu.back, s)
	}
	q.leaveLocked(bytes)
	q.mu.Unlock()
}

// leave gives a place back.
func (q *room) leave(bytes int) {
	q.mu.Lock()
	q.leaveLocked(bytes)
	q.mu.Unlock()
}

func (q *room) leaveLocked(bytes int) {
	q.mu.records--
	q.mu.bytes -= bytes
	if q.mu.line.Len() > 0 && q.maxRecords-q.mu.records > q.maxRecords/4 && q.maxBytes-q.mu.bytes > q.maxBytes/4 {
		q.admitLocked()
	}
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

// count counts records that took no place.
func (q *room) count(sent, failed int) {
	q.mu.Lock()
	q.mu.sent += int64(sent)
	q.mu.failed += int64(failed)
	q.mu.Unlock()
}

func (q *room) stats() ProducerStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	return ProducerStats{Queued: q.mu.records, QueuedBytes: q.mu.bytes, Sent: q.mu.sent, Failed: q.mu.failed}
}
