package api

import (
	"sync"
	"time"

	"barnabas/internal/replica"
	"barnabas/internal/wire"
)

// pendingAck is a partition of an acks=all request whose records are appended
// and not yet replicated. Its error code in the answer is written when the wait
// ends; nothing else of the answer depends on it.
type pendingAck struct {
	part   *replica.Partition
	offset int64 // exclusive
	at     int   // where the code lies in the answer
	ended  bool
}

// delayedProduce is a request that waits for replication (Kafka's
// DelayedProduce).
type delayedProduce struct {
	q     *Request
	timer *time.Timer
	mu    struct {
		sync.Mutex
		waits []pendingAck
		left  int
		over  bool
	}
}

// awaitAcks parks a request until each wait has ended or the client's timeout
// has passed, which is REQUEST_TIMED_OUT for the partitions that are left.
func awaitAcks(q *Request, waits []pendingAck, timeout time.Duration) {
	d := &delayedProduce{q: q}
	d.mu.waits, d.mu.left = waits, len(waits)+1 // one for this function
	q.Cancel = d.expire
	q.ReleaseFrame()
	d.timer = time.AfterFunc(max(timeout, 0), d.expire)
	for i := range waits {
		if code, done := waits[i].part.Await(waits[i].offset, d, i); done {
			d.Acked(i, code)
		}
	}
	d.mu.Lock()
	if d.mu.left--; d.mu.over { // expired already: leave nothing entered
		d.mu.Unlock()
		for i := range waits {
			waits[i].part.CancelAwait(d)
		}
		return
	}
	d.endIfOverLocked()
}

// Acked is called when one wait has ended.
func (d *delayedProduce) Acked(i int, code wire.Code) {
	d.mu.Lock()
	if w := &d.mu.waits[i]; !w.ended && !d.mu.over {
		w.ended = true
		putCode(d.q.W.B[w.at:], code)
		d.mu.left--
	}
	d.endIfOverLocked()
}

// endIfOverLocked answers when nothing is left, and unlocks.
func (d *delayedProduce) endIfOverLocked() {
	end := d.mu.left == 0 && !d.mu.over
	d.mu.over = d.mu.over || end
	d.mu.Unlock()
	if end {
		d.timer.Stop()
		d.q.Done()
	}
}

// expire ends all waits that are left.
func (d *delayedProduce) expire() {
	d.mu.Lock()
	if d.mu.over {
		d.mu.Unlock()
		return
	}
	d.mu.over = true
	var parts []*replica.Partition
	for i := range d.mu.waits {
		if w := &d.mu.waits[i]; !w.ended {
			putCode(d.q.W.B[w.at:], wire.RequestTimedOut)
			parts = append(parts, w.part)
		}
	}
	d.mu.Unlock()
	for _, p := range parts {
		p.CancelAwait(d)
	}
	d.q.Done()
}
